import type { Problem } from '../../model/problem.ts';
import { err, ok } from '../../model/result.ts';
import type { Result } from '../../model/result.ts';
import { FIELD_TEXT, TARGET_TEXT, TOKEN_TEXT, isAllOfClass } from './http1_characters.ts';
import { REQUEST_LENGTH } from './http1_framing.ts';
import { trimWhitespace, type HeaderField, type ReplyHead, type RequestHead } from './http1_head.ts';

/**
 * Heads of HTTP/2 (RFC 9113 section 8.3) as heads of HTTP/1.1, so that every decision is made on one form, and back. The
 * order and duplicates of fields are kept.
 */

/** Names and values in turn, as node:http2 gives and takes them; pseudo-header fields come first. */
export type FieldList = readonly string[];

type Http2HeadProblemReason = 'invalid_fields' | 'too_many_headers' | 'head_too_large';

export interface Http2HeadLimits {
  readonly maxHeaders: number;
  readonly maxHeadBytes: number;
}

const AUTHORITY_LINE = ':authority: ';
const PROTOCOL_LINE = ':protocol: ';
const REQUEST_PSEUDO: ReadonlySet<string> = new Set([':method', ':scheme', ':authority', ':path', ':protocol']);
/** RFC 9113 section 8.2.2. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);
/** Separators of a header line, counted as in HTTP/1.1. */
const LINE_COST_BYTES = 4;

/**
 * Reads a request. Its `:authority` becomes the first field, named `host`, and its `:path` the target. `neverIndexed` are the
 * names that the client marked as never indexed (RFC 7541 section 6.2.3). An extended CONNECT for a WebSocket (RFC 8441 section
 * 5) becomes what it stands for: a GET whose last field, named `upgrade`, is its `:protocol`.
 */
export function parseRequestFields(
  list: FieldList,
  neverIndexed: readonly string[],
  limits: Http2HeadLimits,
): Result<RequestHead, Problem<Http2HeadProblemReason>> {
  const pseudo = readPseudoFields(list);
  if (!pseudo.ok) return pseudo;
  const { ':method': method, ':path': target, ':scheme': scheme, ':authority': authority } = pseudo.value.values;
  const { ':protocol': protocol } = pseudo.value.values;
  if (method === undefined || target === undefined || scheme !== 'https') {
    return invalid('a request has :method, :path and the :scheme https');
  }
  const unsupported = protocolProblem(method, protocol, authority);
  if (unsupported !== null) return invalid(unsupported);
  if (method === '' || !isAllOfClass(method, TOKEN_TEXT)) return invalid('the :method is not a token');
  if (target === '' || !isAllOfClass(target, TARGET_TEXT))
    return invalid('the :path has characters that it cannot have');
  if (!target.startsWith('/') && !(target === '*' && method === 'OPTIONS')) return invalid('the :path is not a path');
  const fields = parseFields(list, pseudo.value.end, limits);
  if (!fields.ok) return fields;
  const lengths = fields.value.filter((field) => field.name === 'content-length');
  // It frames nothing here, but an upstream may pass it on in HTTP/1.1, where it does.
  if (lengths.length > 1 || lengths.some(({ value }) => !REQUEST_LENGTH.test(value)))
    return invalid('a content-length is sent once, as plain decimal digits');
  if (authority !== undefined) fields.value.unshift(authorityField(authority));
  if (protocol !== undefined) {
    // A gateway would pass it on in HTTP/1.1, where the first bytes of the WebSocket would be a body.
    if (lengths.length > 0) return invalid('a WebSocket has no content-length');
    fields.value.push({ name: 'upgrade', line: PROTOCOL_LINE + protocol, value: protocol });
  }
  const asDecided = protocol === undefined ? method : 'GET';
  return ok({
    method: asDecided,
    target,
    version: '2',
    fields: fields.value,
    pseudo: pseudo.value.order,
    neverIndexed,
  });
}

/** A CONNECT without a protocol is one to a proxy, and only a WebSocket is known to stay with its host. */
function protocolProblem(method: string, protocol: string | undefined, authority: string | undefined): string | null {
  if (protocol === undefined) return method === 'CONNECT' ? 'CONNECT is not supported inside a tunnel' : null;
  if (method !== 'CONNECT') return 'a :protocol is sent with the :method CONNECT';
  if (protocol !== 'websocket') return 'the only :protocol that is supported is websocket';
  return authority === undefined ? 'an extended CONNECT has an :authority' : null;
}

/** Whether a head of HTTP/2 asks for a WebSocket, by an extended CONNECT (RFC 8441 section 4). */
export function isWebSocketConnect({ version, fields }: RequestHead): boolean {
  return version === '2' && fields.some(isProtocolField);
}

/** HTTP/2 has no Upgrade header, so nothing else can be read as one. */
function isProtocolField({ line }: HeaderField): boolean {
  return line.startsWith(PROTOCOL_LINE);
}

/** Reads a reply, also an interim one. `neverIndexed`: see {@link parseRequestFields}. */
export function parseReplyFields(
  list: FieldList,
  neverIndexed: readonly string[],
  limits: Http2HeadLimits,
): Result<ReplyHead, Problem<Http2HeadProblemReason>> {
  const text = list[0] === ':status' ? (list[1] ?? '') : '';
  if (!/^[1-5][0-9]{2}$/.test(text)) return invalid('a reply starts with its :status, from 100 to 599');
  // A credential of two parts is written with a colon alone, so the search finds one that is a name and its value.
  const fields = parseFields(list, 2, limits, ':');
  if (!fields.ok) return fields;
  return ok({
    version: '2',
    status: Number(text),
    reason: '',
    startLine: `HTTP/2 ${text}`,
    fields: fields.value,
    neverIndexed,
  });
}

/** The field list of a request. Fields without an `:authority` among them keep their `host`. */
export function requestFieldList({ method, target, fields, pseudo = DEFAULT_PSEUDO }: RequestHead): string[] {
  const authority = fields.find(isAuthorityField);
  const protocol = fields.find(isProtocolField);
  const list: string[] = [];
  for (const name of pseudo) {
    if (name === ':method') list.push(name, protocol === undefined ? method : 'CONNECT');
    else if (name === ':protocol') list.push(...(protocol === undefined ? [] : [name, protocol.value]));
    else if (name === ':path') list.push(name, target);
    else if (name === ':scheme') list.push(name, 'https');
    else if (authority !== undefined) list.push(':authority', authority.value);
  }
  for (const field of fields) if (field !== authority && field !== protocol) pushField(list, field);
  return list;
}

/** The first value of a name; undefined if there is none. */
export function fieldOf(list: FieldList, name: string): string | undefined {
  const at = list.findIndex((text, index) => index % 2 === 0 && text === name);
  return at === -1 ? undefined : list[at + 1];
}

/** The field list of a reply. */
export function replyFieldList({ status, fields }: ReplyHead): string[] {
  const list = [':status', String(status)];
  for (const field of fields) pushField(list, field);
  return list;
}

/** The `:authority` of a request of HTTP/2, as the field that decisions read. */
export function authorityField(value: string): HeaderField {
  return { name: 'host', line: AUTHORITY_LINE + value, value };
}

/** Whether a field is the `:authority` of a request of HTTP/2. */
export function isAuthorityField({ line }: HeaderField): boolean {
  return line.startsWith(AUTHORITY_LINE);
}

/** The fields of an interim reply. node:http2 takes these by name only, so duplicates become neighbours. */
export function interimFields({ status, fields }: ReplyHead): Record<string, string | string[]> {
  return { ...fieldsByName(fields), ':status': String(status) };
}

/** The fields of a trailer section, given as header lines, by name as well. */
export function trailerFields(lines: string): Record<string, string[]> {
  return fieldsByName(lines.split('\r\n').flatMap((line) => (line.indexOf(':') > 0 ? [{ line }] : [])));
}

function fieldsByName(fields: readonly Pick<HeaderField, 'line'>[]): Record<string, string[]> {
  const list: string[] = [];
  for (const field of fields) pushField(list, field);
  const byName = new Map<string, string[]>();
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at] ?? '';
    byName.set(name, [...(byName.get(name) ?? []), list[at + 1] ?? '']);
  }
  return Object.fromEntries(byName);
}

/** Trailers as header lines, each with its CRLF. */
export function formatTrailerList(list: FieldList): string {
  let text = '';
  for (let at = 0; at < list.length; at += 2) text += `${list[at]}:${list[at + 1]}\r\n`;
  return text;
}

const DEFAULT_PSEUDO = [':method', ':scheme', ':authority', ':path'];

interface PseudoFields {
  readonly order: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  /** Where the other fields start. */
  readonly end: number;
}

function readPseudoFields(list: FieldList): Result<PseudoFields, Problem<Http2HeadProblemReason>> {
  const order: string[] = [];
  const values: Record<string, string> = {};
  let at = 0;
  for (; list[at]?.startsWith(':') === true; at += 2) {
    const name = list[at] ?? '';
    if (!REQUEST_PSEUDO.has(name) || Object.hasOwn(values, name))
      return invalid('a pseudo-header field is unknown or twice');
    order.push(name);
    values[name] = list[at + 1] ?? '';
  }
  return ok({ order, values, end: at });
}

function parseFields(
  list: FieldList,
  start: number,
  { maxHeaders, maxHeadBytes }: Http2HeadLimits,
  separator: ': ' | ':' = ': ',
): Result<HeaderField[], Problem<Http2HeadProblemReason>> {
  const fields: HeaderField[] = [];
  let bytes = 0;
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at] ?? '';
    const value = list[at + 1] ?? '';
    bytes += name.length + value.length + LINE_COST_BYTES;
    if (at < start) continue;
    if (name === '' || !isAllOfClass(name, TOKEN_TEXT) || name !== name.toLowerCase()) {
      return invalid('a header name is not one in lower case');
    }
    if (!isAllOfClass(value, FIELD_TEXT)) return invalid('a header value has characters that it cannot have');
    if (OF_CONNECTION.has(name) || (name === 'te' && value !== 'trailers')) {
      return invalid(`HTTP/2 has no ${name} header for a connection`);
    }
    fields.push({ name, line: name + separator + value, value });
  }
  if (fields.length > maxHeaders) {
    return err({ reason: 'too_many_headers', message: `the request has more than ${maxHeaders} headers` });
  }
  if (bytes > maxHeadBytes) {
    return err({ reason: 'head_too_large', message: `the headers have more than ${maxHeadBytes} bytes` });
  }
  return ok(fields);
}

/** From the line, which is what is sent: a masked field differs from its value. */
function pushField(list: string[], { line }: Pick<HeaderField, 'line'>): void {
  const colon = line.indexOf(':');
  list.push(line.slice(0, colon).toLowerCase(), trimWhitespace(line, colon + 1, line.length));
}

function invalid(message: string): { readonly ok: false; readonly error: Problem<Http2HeadProblemReason> } {
  return err({ reason: 'invalid_fields', message });
}
