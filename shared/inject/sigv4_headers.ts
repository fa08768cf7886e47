import { fieldValues, headerField } from '../net/http/http1_head.ts';
import type { HeaderField } from '../net/http/http1_head.ts';
import { isSameHeader } from './credential_header.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import { canonicalValue } from './sigv4_signer.ts';

/** Headers of the client's own signature; they are neither trusted nor forwarded. */
const REPLACED = ['authorization', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token', 'x-amz-region-set'];

const ALWAYS_SIGNED: ReadonlySet<string> = new Set(['host', 'content-type', 'content-md5']);

/** Headers that this proxy or the next hop may change or drop, which would break a signature over them. */
const NEVER_SIGNED =
  /^(?:accept-encoding|authorization|connection|expect|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent|via|x-amzn-trace-id|x-forwarded-.*|proxy-.*|sec-.*)$/;

/** The client's fields without those of its signature. */
export function withoutSigning(fields: readonly HeaderField[]): HeaderField[] {
  return fields.filter(({ name }) => !REPLACED.some((place) => isSameHeader(name, place)));
}

/** `fields` with others appended; names as they will be sent. */
export function withFields(
  fields: readonly HeaderField[],
  added: readonly (readonly [name: string, value: string])[],
): HeaderField[] {
  return [...fields, ...added.map(([name, value]) => headerField(name, value))];
}

/** The headers to sign: host, content-type, content-md5, every x-amz- header, and every other header that the client had signed itself. */
export function headersToSign(request: OutgoingRequest, clientSigned: ReadonlySet<string>): Map<string, string> {
  const headers = new Map<string, string>([['host', request.host]]);
  for (const { name } of request.fields) {
    const wanted = ALWAYS_SIGNED.has(name) || name.startsWith('x-amz-') || clientSigned.has(name);
    if (wanted && !NEVER_SIGNED.test(name)) headers.set(name, canonicalValue(fieldValues(request.fields, name)));
  }
  return headers;
}

/** The names in an Authorization value's SignedHeaders, or in a presigned URL's. */
export function parseSignedHeaderNames(text: string): Set<string> {
  return new Set(text.toLowerCase().split(';'));
}

/** `SignedHeaders` for `headers`. */
export function formatSignedHeaderList(headers: ReadonlyMap<string, string>): string {
  return [...headers.keys()].toSorted().join(';');
}
