import { ProtocolError } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { markText } from '../../shared/mcp/tools/text_marks.ts';
import type { TextMark } from '../../shared/model/mcp_tool.ts';

/** The `_meta` key that says what a person should know of a tool, a result or an error. */
export const MARKS_META = 'svc/marks';
/** The `_meta` key with the number of characters of a result that were not searched. */
const UNSEARCHED_META = 'svc/unsearched';

/** How much text of a result is searched: its beginning and its end, because a long text in front hides nothing that way. */
const MAX_HEAD = 192 * 1024;
const MAX_TAIL = 64 * 1024 - 2;
const MAX_DEPTH = 64;

const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/**
 * A result of a tool, a prompt or a resource, with the marks of all its text in `_meta`. The text itself is for the model, and is
 * not changed.
 */
export function withResultMarks<T extends object>(result: T): T {
  const found = searchTexts(result);
  if (found.marks.length === 0 && found.unsearched === 0) return result;
  const { _meta: meta } = metaHolder.parse(result);
  const marks = found.marks.length === 0 ? {} : { [MARKS_META]: found.marks };
  const unsearched = found.unsearched === 0 ? {} : { [UNSEARCHED_META]: found.unsearched };
  return { ...result, _meta: { ...meta, ...marks, ...unsearched } };
}

/** A server's error, with the marks of its text in `data`. Every other error stays the same. */
export function withErrorMarks(error: unknown): unknown {
  if (!ProtocolError.isInstance(error)) return error;
  const { code, message, data } = error;
  const { marks } = searchTexts({ message, data });
  if (marks.length === 0) return error;
  const isRecord = typeof data === 'object' && data !== null && !Array.isArray(data);
  const own = isRecord ? data : data === undefined ? {} : { data };
  return ProtocolError.fromError(code, message, { ...own, [MARKS_META]: marks });
}

function searchTexts(value: object): { readonly marks: readonly TextMark[]; readonly unsearched: number } {
  const texts: string[] = [];
  collectTexts(value, texts, 0);
  const whole = texts.join('\n\n');
  const unsearched = Math.max(0, whole.length - MAX_HEAD - MAX_TAIL);
  const searched = unsearched === 0 ? whole : `${whole.slice(0, MAX_HEAD)}\n\n${whole.slice(-MAX_TAIL)}`;
  return { marks: markText(searched).filter((mark) => mark !== 'long_text'), unsearched };
}

/** Every text in a result and every name of a member, but for `_meta` and what is encoded: images, sounds and files. */
function collectTexts(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string') return void texts.push(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
  if (Array.isArray(value)) return value.forEach((item) => collectTexts(item, texts, depth + 1));
  const members = new Map<string, unknown>(Object.entries(value));
  for (const [name, member] of members) {
    if (name === '_meta' || isEncoded(name, members)) continue;
    if (!PROTOCOL_NAMES.has(name)) texts.push(name);
    collectTexts(member, texts, depth + 1);
  }
}

function isEncoded(name: string, members: ReadonlyMap<string, unknown>): boolean {
  if (name === 'blob') return members.has('uri');
  return name === 'data' && ENCODED.has(members.get('type'));
}

const ENCODED: ReadonlySet<unknown> = new Set(['image', 'audio']);
/** The protocol's own, which say nothing. */
const PROTOCOL_NAMES: ReadonlySet<string> = new Set([
  'content',
  'contents',
  'data',
  'description',
  'isError',
  'message',
  'messages',
  'mimeType',
  'name',
  'resource',
  'role',
  'structuredContent',
  'text',
  'title',
  'type',
  'uri',
]);
