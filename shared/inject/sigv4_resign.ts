import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { SchemeAdapter, InjectionOf, WriteInput } from './scheme_adapter.ts';
import { ChunkResigner } from './sigv4_chunks.ts';
import { isPresigned, findPresentedSignature } from './sigv4_presented.ts';
import { Signer, ALGORITHM, isS3 } from './sigv4_signer.ts';
import { fieldValues, type HeaderField } from '../net/http/http1_head.ts';
import { byteTextOf, percentEncode } from './byte_text.ts';
import {
  headersToSign,
  formatSignedHeaderList,
  parseSignedHeaderNames,
  withFields,
  withoutSigning,
} from './sigv4_headers.ts';
import { hashPayload, refuseForm, type SignedPayload } from './sigv4_payload.ts';
import { nameOf, pairsOf, valueOf, withPairs } from './query_pairs.ts';
import type { OutgoingRequest } from './outgoing_request.ts';

/**
 * Re-signs the outgoing request (AWS Signature Version 4) with the binding's key, region and service. The credential is HMAC
 * key material and appears nowhere else.
 */
export const SIGV4_RESIGN: SchemeAdapter<'sigv4-resign'> = {
  placeHeader: () => 'authorization',
  deriveSecrets: () => [],
  findPresented: findPresentedSignature,
  async write(injection, input) {
    const { request, credential, accessKeyId, now, hash } = input;
    if (!request.target.startsWith('/') || request.target.includes('#')) return err(NOT_SIGNABLE);
    const signedAs = accessKeyId === null ? injection : { ...injection, accessKeyId };
    const signer = new Signer({ injection: signedAs, secretAccessKey: credential, now, hash });
    const resign = isPresigned(request.target) ? resignPresigned : signAuthorization;
    const signed = await resign(injection, signer, input);
    if (!signed.ok) return signed;
    const { request: outgoing, payload, signature } = signed.value;
    if (payload.chunkForm === null) return ok(outgoing);
    return ok({ ...outgoing, bodyTransform: new ChunkResigner(signer, signature, payload.chunkForm) });
  },
};

const NOT_SIGNABLE = refusal(
  'invalid_request',
  'The request target cannot be signed: send an origin-form target without a "#".',
);

/** Signs a request in its Authorization header, in place of any the client sent. */
async function signAuthorization(
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

/**
 * Re-signs a presigned URL. Credential, date, signed headers, session token and signature are replaced; other parameters
 * (X-Amz-Expires, response headers, part numbers ...) and the order stay.
 */
async function resignPresigned(
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

/** A request with its new signature, which also seeds the first chunk's signature. */
interface SignedRequest {
  readonly request: OutgoingRequest;
  readonly payload: SignedPayload;
  readonly signature: string;
}

type SignResult = Result<SignedRequest, Refusal>;
