import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** A signed request as received. */
export interface SignedRequest {
  readonly method: string;
  readonly target: string;
  headers(name: string): string[];
  readonly body: Buffer;
}

export type Verdict =
  | { readonly ok: true; readonly accessKeyId: string; readonly region: string; readonly service: string }
  | { readonly ok: false; readonly code: string; readonly canonicalRequest?: string };

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\/(\d{8})\/([^/,\s]+)\/([^/,\s]+)\/aws4_request, ?SignedHeaders=([^,\s]+), ?Signature=([0-9a-f]{64})$/;
const FIFTEEN_MINUTES_MS = 15 * 60_000;

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: Buffer | string, data: string): Buffer => createHmac('sha256', key).update(data).digest();

/**
 * Checks a Signature Version 4 as a service does, from the published description of the algorithm and with none of the
 * libraries that sign in this project. `now` is milliseconds since the epoch.
 */
export function verifySigV4(request: SignedRequest, secrets: ReadonlyMap<string, string>, now: number): Verdict {
  const authorizations = request.headers('authorization');
  const parts = AUTHORIZATION.exec(authorizations[0] ?? '');
  if (parts === null || authorizations.length !== 1) return { ok: false, code: 'AuthorizationHeaderMalformed' };
  const [, accessKeyId = '', date = '', region = '', service = '', signedHeaders = '', signature = ''] = parts;
  const secret = secrets.get(accessKeyId);
  if (secret === undefined) return { ok: false, code: 'InvalidAccessKeyId' };
  const time = request.headers('x-amz-date')[0] ?? '';
  if (!time.startsWith(date) || Math.abs(parseTime(time) - now) > FIFTEEN_MINUTES_MS) {
    return { ok: false, code: 'RequestTimeTooSkewed' };
  }
  const payload = payloadHash(request, service);
  if (payload === null) return { ok: false, code: 'XAmzContentSHA256Mismatch' };
  if (!coversEveryAmzHeader(request, signedHeaders)) return { ok: false, code: 'AccessDenied' };
  const canonical = canonicalRequest(request, service, signedHeaders, payload);
  const scope = `${date}/${region}/${service}/aws4_request`;
  const stringToSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), service), 'aws4_request');
  if (!timingSafeEqual(hmac(key, stringToSign), Buffer.from(signature, 'hex'))) {
    return { ok: false, code: 'SignatureDoesNotMatch', canonicalRequest: canonical };
  }
  return { ok: true, accessKeyId, region, service };
}

/** Checks a presigned URL as S3 does: the signature and everything it covers are in the query, and the body is not hashed. */
export function verifyPresigned(request: SignedRequest, secrets: ReadonlyMap<string, string>, now: number): Verdict {
  const query = new URL(request.target, 'https://signed.test').searchParams;
  const [accessKeyId = '', date = '', region = '', service = ''] = (query.get('X-Amz-Credential') ?? '').split('/');
  const secret = secrets.get(accessKeyId);
  if (secret === undefined) return { ok: false, code: 'InvalidAccessKeyId' };
  const time = query.get('X-Amz-Date') ?? '';
  const age = now - parseTime(time);
  const expiresMs = 1000 * Number(query.get('X-Amz-Expires'));
  if (!time.startsWith(date) || !(age > -FIFTEEN_MINUTES_MS && age < expiresMs))
    return { ok: false, code: 'AccessDenied' };
  const target = request.target.replace(/&X-Amz-Signature=[0-9a-f]{64}$/, '');
  const signedHeaders = query.get('X-Amz-SignedHeaders') ?? '';
  const canonical = canonicalRequest({ ...request, target }, service, signedHeaders, 'UNSIGNED-PAYLOAD');
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), service), 'aws4_request');
  const signature = hmac(key, text).toString('hex');
  if (target === request.target || signature !== query.get('X-Amz-Signature')) {
    return { ok: false, code: 'SignatureDoesNotMatch', canonicalRequest: canonical };
  }
  return { ok: true, accessKeyId, region, service };
}

function parseTime(time: string): number {
  return Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/** The hash that the signature covers; null if the header states another hash than the body has. */
function payloadHash(request: SignedRequest, service: string): string | null {
  const announced = request.headers('x-amz-content-sha256')[0];
  const actual = sha256(request.body);
  if (announced === undefined) return service === 's3' ? null : actual;
  return /^[0-9a-f]{64}$/.test(announced) && announced !== actual ? null : announced;
}

function coversEveryAmzHeader(request: SignedRequest, signedHeaders: string): boolean {
  const signed = signedHeaders.split(';');
  return ['x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token']
    .filter((name) => request.headers(name).length > 0)
    .concat('host')
    .every((name) => signed.includes(name));
}

function canonicalRequest(request: SignedRequest, service: string, signedHeaders: string, payload: string): string {
  const question = request.target.indexOf('?');
  const path = question < 0 ? request.target : request.target.slice(0, question);
  const query = question < 0 ? '' : request.target.slice(question + 1);
  const headers = signedHeaders.split(';').map((name) => {
    const values = request.headers(name).map((value) => value.trim().replace(/ +/g, ' '));
    return `${name}:${values.join(',')}\n`;
  });
  return [
    request.method,
    canonicalPath(path, service),
    canonicalQuery(query),
    headers.join(''),
    signedHeaders,
    payload,
  ].join('\n');
}

/** S3 encodes the path once; every other service normalises it and encodes what is on the wire once more. */
function canonicalPath(path: string, service: string): string {
  if (service === 's3')
    return path
      .split('/')
      .map((segment) => encode(decodeURIComponent(segment)))
      .join('/');
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(encode(segment));
  }
  return `/${kept.join('/')}${path.endsWith('/') && kept.length > 0 ? '/' : ''}`;
}

function canonicalQuery(query: string): string {
  if (query === '') return '';
  return query
    .split('&')
    .map((pair) => {
      const equals = pair.indexOf('=');
      const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))] as const;
    })
    .toSorted(([a, av], [b, bv]) => (a === b ? compare(av, bv) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}
