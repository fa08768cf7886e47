import { refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import { fieldValues } from '../net/http1_head.ts';
import { percentEncode } from './byte_text.ts';
import { nameOf, pairsOf, valueOf, withPairs } from './query_pairs.ts';
import type { InjectionOf, WriteInput } from './scheme_adapter.ts';
import {
  headersToSign,
  formatSignedHeaderList,
  parseSignedHeaderNames,
  withFields,
  withoutSigning,
} from './sigv4_headers.ts';
import { hashPayload, refuseForm } from './sigv4_payload.ts';
import { findPresentedSignature } from './sigv4_presented.ts';
import type { SignResult } from './sigv4_signed_request.ts';
import { ALGORITHM, isS3 } from './sigv4_signer.ts';
import type { Signer } from './sigv4_signer.ts';

/**
 * Re-signs a presigned URL. Credential, date, signed headers, session token and signature are replaced; other parameters
 * (X-Amz-Expires, response headers, part numbers ...) and the order stay.
 */
export async function resignPresigned(
  injection: InjectionOf<'sigv4-resign'>,
  signer: Signer,
  { request, sentinel, sessionToken, body }: WriteInput,
): Promise<SignResult> {
  if (findPresentedSignature(injection, request, sentinel) === 'foreign_presigned') return err(FOREIGN);
  const query = new Map(pairsOf(request.target).map((pair) => [nameOf(pair).toLowerCase(), valueOf(pair)]));
  const algorithm = query.has('x-amz-signature') ? (query.get('x-amz-algorithm') ?? ALGORITHM) : 'AWS2 in the URL';
  if (algorithm !== ALGORITHM) return err(refuseForm(algorithm));
  const inHeader = fieldValues(request.fields, 'x-amz-content-sha256');
  const claimed = [...inHeader, ...[query.get('x-amz-content-sha256') ?? []].flat()];
  const unsigned = isS3(injection.service) ? 'UNSIGNED-PAYLOAD' : null;
  const stated = claimed.length === 0 && unsigned !== null ? [unsigned] : claimed;
  const payload = await hashPayload(signer, stated, body, unsigned);
  if (!payload.ok) return payload;
  const payloadHash = payload.value.hash;
  const restated: [string, string][] = inHeader.length > 0 ? [['x-amz-content-sha256', payloadHash]] : [];
  const outgoing = { ...request, fields: withFields(withoutSigning(request.fields), restated) };
  const headers = headersToSign(outgoing, parseSignedHeaderNames(query.get('x-amz-signedheaders') ?? ''));
  const target = replaceSignature(request.target, {
    'X-Amz-Credential': `${signer.accessKeyId}/${signer.scope}`,
    'X-Amz-Date': signer.longDate,
    'X-Amz-SignedHeaders': formatSignedHeaderList(headers),
    ...(query.has('x-amz-content-sha256') ? { 'X-Amz-Content-Sha256': payloadHash } : {}),
    ...(sessionToken === null ? {} : { 'X-Amz-Security-Token': sessionToken }),
  });
  const signature = await signer.signatureOf({ method: request.method, target, headers, payloadHash });
  const signed = { ...outgoing, target: `${target}&X-Amz-Signature=${signature}` };
  return ok({ request: signed, payload: payload.value, signature });
}

const FOREIGN = refusal(
  'invalid_request',
  "The URL is signed with another access key than the binding's: it can be sent unchanged, but not re-signed.",
);

/** Parameters that belong to the client's signature. */
const DROPPED: ReadonlySet<string> = new Set(['x-amz-signature', 'x-amz-security-token']);

/** The target with `values` in place of its own, in the same positions, and without its signature. */
function replaceSignature(target: string, values: Readonly<Record<string, string>>): string {
  const missing = new Map(Object.entries(values).map(([name, value]) => [name.toLowerCase(), { name, value }]));
  const replaced = new Map(missing);
  const pairs = pairsOf(target).flatMap((pair) => {
    const name = nameOf(pair).toLowerCase();
    if (DROPPED.has(name)) return [];
    missing.delete(name);
    const ours = replaced.get(name);
    return [ours === undefined ? pair : pairOf(ours)];
  });
  return withPairs(target, [...pairs, ...[...missing.values()].map(pairOf)]);
}

function pairOf({ name, value }: { readonly name: string; readonly value: string }): string {
  return `${name}=${percentEncode(value)}`;
}
