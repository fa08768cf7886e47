import { err, ok } from '../model/result.ts';
import { fieldValues } from '../net/http1_head.ts';
import type { HeaderField } from '../net/http1_head.ts';
import { byteTextOf } from './byte_text.ts';
import type { InjectionOf, WriteInput } from './scheme_adapter.ts';
import {
  headersToSign,
  formatSignedHeaderList,
  parseSignedHeaderNames,
  withFields,
  withoutSigning,
} from './sigv4_headers.ts';
import { hashPayload, refuseForm } from './sigv4_payload.ts';
import type { SignResult } from './sigv4_signed_request.ts';
import { ALGORITHM, isS3 } from './sigv4_signer.ts';
import type { Signer } from './sigv4_signer.ts';

/** Signs a request in its Authorization header, in place of any the client sent. */
export async function signAuthorization(
  { service }: InjectionOf<'sigv4-resign'>,
  signer: Signer,
  { request, sessionToken, body }: WriteInput,
): Promise<SignResult> {
  const unsupported = findUnsupportedAlgorithm(request.fields);
  if (unsupported !== null) return err(refuseForm(unsupported));
  const claimed = fieldValues(request.fields, 'x-amz-content-sha256');
  const payload = await hashPayload(signer, claimed, body, isS3(service) ? 'UNSIGNED-PAYLOAD' : null);
  if (!payload.ok) return payload;
  const payloadHash = payload.value.hash;
  const added: [string, string][] = [['X-Amz-Date', signer.longDate]];
  if (isS3(service) || claimed.length > 0) added.push(['x-amz-content-sha256', payloadHash]);
  if (sessionToken !== null) added.push(['X-Amz-Security-Token', byteTextOf(sessionToken)]);
  const fields = withFields(withoutSigning(request.fields), added);
  const headers = headersToSign({ ...request, fields }, clientSignedHeaders(request.fields));
  const { method, target } = request;
  const signature = await signer.signatureOf({ method, target, headers, payloadHash });
  const value = `${ALGORITHM} Credential=${signer.accessKeyId}/${signer.scope}, SignedHeaders=${formatSignedHeaderList(headers)}, Signature=${signature}`;
  const signed = { ...request, fields: withFields(fields, [['Authorization', value]]) };
  return ok({ request: signed, payload: payload.value, signature });
}

/** The client's algorithm if it is a version 4 one other than HMAC, which cannot be re-signed. */
function findUnsupportedAlgorithm(fields: readonly HeaderField[]): string | null {
  const algorithms = fieldValues(fields, 'authorization').map((value) => /^AWS4-\S+/i.exec(value)?.[0] ?? ALGORITHM);
  return algorithms.find((algorithm) => algorithm.toUpperCase() !== ALGORITHM) ?? null;
}

function clientSignedHeaders(fields: readonly HeaderField[]): Set<string> {
  const lists = fieldValues(fields, 'authorization').map((value) => /SignedHeaders=([^,\s]+)/i.exec(value)?.[1] ?? '');
  return parseSignedHeaderNames(lists.join(';'));
}
