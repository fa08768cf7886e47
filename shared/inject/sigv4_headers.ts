import { fieldValues, headerField } from '../net/http1_head.ts';
import type { HeaderField } from '../net/http1_head.ts';
import { isInPlace } from './header_place.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import { canonicalValue } from './sigv4_signer.ts';

/** What the client's own signing left in the headers; none of it is trusted or sent on. */
const REPLACED = ['authorization', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token'];

const ALWAYS_SIGNED: ReadonlySet<string> = new Set(['host', 'content-type', 'content-md5']);

/** Headers that this proxy or the next hop may change or drop, so that a signature over them could break. */
const NEVER_SIGNED =
  /^(?:accept-encoding|authorization|connection|expect|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent|via|x-amzn-trace-id|x-forwarded-.*|proxy-.*|sec-.*)$/;

/** The client's fields without what its signing put there. */
export function withoutSigning(fields: readonly HeaderField[]): HeaderField[] {
  return fields.filter(({ name }) => !REPLACED.some((place) => isInPlace(name, place)));
}

/** `fields` with others appended; names as they are to be sent. */
export function withFields(
  fields: readonly HeaderField[],
  added: readonly (readonly [name: string, value: string])[],
): HeaderField[] {
  return [...fields, ...added.map(([name, value]) => headerField(name, value))];
}

/**
 * What is signed of `request`'s headers: host, content-type, content-md5, every x-amz- header, and whatever else the client
 * had signed itself.
 */
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
