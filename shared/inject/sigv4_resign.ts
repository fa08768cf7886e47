import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { SchemeAdapter, InjectionOf, WriteInput } from './scheme_adapter.ts';
import { ChunkResigner } from './sigv4_chunks.ts';
import { isPresigned, findPresentedSignature } from './sigv4_presented.ts';
import { isS3, SIGV4, SIGV4A, Signer, type SigningAlgorithm } from './sigv4_signer.ts';
import { SigV4aSigner } from './sigv4a_signer.ts';
import { isRegionSet } from '../model/region_set.ts';
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
 * Re-signs the outgoing request (AWS Signature Version 4, or 4a if the client used it or the binding's region is a set) with the
 * binding's key, region and service. The credential is key material and appears nowhere else.
 */
export const SIGV4_RESIGN: SchemeAdapter<'sigv4-resign'> = {
  placeHeader: () => 'authorization',
  deriveSecrets: () => [],
  findPresented: findPresentedSignature,
  async write(injection, input) {
    const { request, credential, accessKeyId, now, hash } = input;
    if (!request.target.startsWith('/') || request.target.includes('#')) return err(NOT_SIGNABLE);
    if (isExpress(injection, request) && queryOf(request.target).has('session')) return err(GIVES_A_KEY);
    const signedAs = accessKeyId === null ? injection : { ...injection, accessKeyId };
    const presigned = isPresigned(request.target);
    if (presigned && findPresentedSignature(injection, request, input.sentinel) === 'foreign_presigned')
      return err(FOREIGN);
    const algorithm = presigned ? algorithmOfUrl(request.target) : algorithmOfHeader(request.fields);
    if (!algorithm.ok) return algorithm;
    const Kind = algorithm.value === SIGV4A || isRegionSet(injection.region) ? SigV4aSigner : Signer;
    const signer = new Kind({ injection: signedAs, secretAccessKey: credential, now, hash });
    const signed = await (presigned ? resignPresigned : signAuthorization)(injection, signer, input);
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

/** `CreateSession` of S3: its reply has a key, which would be the client's. */
const GIVES_A_KEY = refusal(
  'invalid_request',
  'A session of S3 Express would give the client a key: set AWS_S3_DISABLE_EXPRESS_SESSION_AUTH=true for it, so that it asks for none.',
);

/** Whether S3 Express is called: its hosts count too, because a binding may name them with the service `s3`. */
function isExpress({ service }: InjectionOf<'sigv4-resign'>, { host }: OutgoingRequest): boolean {
  return service === 's3express' || (isS3(service) && /(?:^|\.)s3express-/i.test(host));
}

/** Signs a request in its Authorization header, in place of any the client sent. */
async function signAuthorization(
  { region, service }: InjectionOf<'sigv4-resign'>,
  signer: Signer,
  { request, sessionToken, body }: WriteInput,
): Promise<SignResult> {
  const claimed = fieldValues(request.fields, 'x-amz-content-sha256');
  const payload = await hashPayload(signer, claimed, body, isS3(service) ? 'UNSIGNED-PAYLOAD' : null);
  if (!payload.ok) return payload;
  const payloadHash = payload.value.hash;
  const added: [string, string][] = [['X-Amz-Date', signer.longDate]];
  if (signer.algorithm === SIGV4A) added.push(['X-Amz-Region-Set', region]);
  if (isS3(service) || claimed.length > 0) added.push(['x-amz-content-sha256', payloadHash]);
  if (sessionToken !== null) added.push(['X-Amz-Security-Token', byteTextOf(sessionToken)]);
  const fields = withFields(withoutSigning(request.fields), added);
  const headers = headersToSign({ ...request, fields }, clientSignedHeaders(request.fields));
  const { method, target } = request;
  const signature = await signer.signatureOf({ method, target, headers, payloadHash });
  const value = `${signer.algorithm} Credential=${signer.accessKeyId}/${signer.scope}, SignedHeaders=${formatSignedHeaderList(headers)}, Signature=${signature}`;
  const signed = { ...request, fields: withFields(fields, [['Authorization', value]]) };
  return ok({ request: signed, payload: payload.value, signature });
}

/** The algorithm of the client's own signature; version 4 if there is none, or an earlier one. */
function algorithmOfHeader(fields: readonly HeaderField[]): Result<SigningAlgorithm, Refusal> {
  const named = fieldValues(fields, 'authorization').map((value) => /^AWS4-\S+/i.exec(value)?.[0] ?? SIGV4);
  const known = named.map((algorithm) => ALGORITHMS.find((each) => each === algorithm.toUpperCase()) ?? null);
  const unknown = named[known.indexOf(null)];
  return unknown === undefined ? ok(known.includes(SIGV4A) ? SIGV4A : SIGV4) : err(refuseForm(unknown));
}

/** The same for a signed URL, in which an earlier signature cannot be replaced. */
function algorithmOfUrl(target: string): Result<SigningAlgorithm, Refusal> {
  const query = queryOf(target);
  const named = query.has('x-amz-signature') ? (query.get('x-amz-algorithm') ?? SIGV4) : 'AWS2 in the URL';
  const known = ALGORITHMS.find((each) => each === named);
  return known === undefined ? err(refuseForm(named)) : ok(known);
}

const ALGORITHMS: readonly SigningAlgorithm[] = [SIGV4, SIGV4A];

/** The parameters of a target by their names in lower case. */
function queryOf(target: string): ReadonlyMap<string, string> {
  return new Map(pairsOf(target).map((pair) => [nameOf(pair).toLowerCase(), valueOf(pair)]));
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
  { request, sessionToken, body }: WriteInput,
): Promise<SignResult> {
  const query = queryOf(request.target);
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
    'X-Amz-Algorithm': signer.algorithm,
    'X-Amz-Credential': `${signer.accessKeyId}/${signer.scope}`,
    'X-Amz-Date': signer.longDate,
    'X-Amz-SignedHeaders': formatSignedHeaderList(headers),
    ...(query.has('x-amz-content-sha256') ? { 'X-Amz-Content-Sha256': payloadHash } : {}),
    ...(sessionToken === null ? {} : { 'X-Amz-Security-Token': sessionToken }),
    ...(signer.algorithm === SIGV4A ? { 'X-Amz-Region-Set': injection.region } : {}),
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
