import { fieldsOf, type Fields, type Message } from './message.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** The parameter that `Mcp-Name` repeats (revision 2026-07-28, Streamable HTTP, standard headers). */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** A session, which exists only in revisions before 2026-07-28. */
export interface ClientSession {
  /** Null if the server uses none. */
  readonly id: string | null;
  readonly version: string;
}

/** The revision named in the message, as in every request since 2026-07-28; null for a message of a session. */
export function ownVersion(message: Message): string | null {
  if (message.kind === 'response') return null;
  const version = fieldsOf(message.params['_meta'])[VERSION_KEY];
  return typeof version === 'string' ? version : null;
}

/** The headers of a message, in addition to those of every call. */
export function messageHeaders(message: Message, session: ClientSession | null): Readonly<Record<string, string>> {
  const version = ownVersion(message);
  if (version !== null && message.kind !== 'response') {
    return {
      'mcp-protocol-version': headerText(version),
      'mcp-method': headerText(message.method),
      ...nameHeader(message),
    };
  }
  return message.kind === 'request' && message.method === 'initialize' ? {} : sessionHeaders(session);
}

/** The headers that identify a session. */
export function sessionHeaders(session: ClientSession | null): Readonly<Record<string, string>> {
  if (session === null) return {};
  return {
    'mcp-protocol-version': headerText(session.version),
    ...(session.id === null ? {} : { 'mcp-session-id': session.id }),
  };
}

function nameHeader({
  method,
  params,
}: {
  readonly method: string;
  readonly params: Fields;
}): Readonly<Record<string, string>> {
  const field = NAMED_BY.get(method);
  const value = field === undefined ? undefined : params[field];
  return typeof value === 'string' ? { 'mcp-name': headerText(value) } : {};
}

/** The value itself if a header can contain it, else in the revision's Base64 form. */
function headerText(value: string): string {
  const isPlain = /^[!-~](?:[\t -~]*[!-~])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return isPlain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}
