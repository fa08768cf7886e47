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

const metaHolder = z.looseObject({ _meta: z.looseObject({}).optional().catch(undefined) });

/**
 * A result of a tool, a prompt or a resource, with the marks of all its text in `_meta`. The text itself is for the model, and is
 * not changed.
 */
export function withResultMarks<T extends object>(result: T): T {
  const found = searchTexts(result, RESULT);
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
  const { marks } = searchTexts({ message, data }, ELSEWHERE);
  if (marks.length === 0) return error;
  const isRecord = typeof data === 'object' && data !== null && !Array.isArray(data);
  const own = isRecord ? data : data === undefined ? {} : { data };
  return ProtocolError.fromError(code, message, { ...own, [MARKS_META]: marks });
}

function searchTexts(
  value: object,
  place: Place,
): { readonly marks: readonly TextMark[]; readonly unsearched: number } {
  const whole = collectTexts(value, place).join('\n\n');
  const unsearched = Math.max(0, whole.length - MAX_HEAD - MAX_TAIL);
  const searched = unsearched === 0 ? whole : `${whole.slice(0, MAX_HEAD)}\n\n${whole.slice(-MAX_TAIL)}`;
  return { marks: markText(searched).filter((mark) => mark !== 'long_text'), unsearched };
}

/** What the protocol knows of an object: the places of its members, and those of its members that no model reads as a text. */
interface Place {
  readonly members: ReadonlyMap<string, Place>;
  readonly isSkipped: (name: string, members: ReadonlyMap<string, unknown>) => boolean;
}

/** A server's own data, at any depth: all of it is searched, whatever its names. */
const ELSEWHERE: Place = { members: new Map(), isSkipped: () => false };
const RESOURCE: Place = {
  members: new Map(),
  isSkipped: (name, members) => name === '_meta' || (name === 'blob' && members.has('uri')),
};
const ENCODED: ReadonlySet<unknown> = new Set(['image', 'audio']);
const BLOCK: Place = {
  members: new Map([['resource', RESOURCE]]),
  isSkipped: (name, members) => name === '_meta' || (name === 'data' && ENCODED.has(members.get('type'))),
};
const MESSAGE: Place = { members: new Map([['content', BLOCK]]), isSkipped: () => false };
const RESULT: Place = {
  members: new Map([
    ['content', BLOCK],
    ['contents', RESOURCE],
    ['messages', MESSAGE],
  ]),
  isSkipped: (name) => name === '_meta',
};

/**
 * Every text of a result, and every name of a member, in their order; but not `_meta` and what is encoded (images, sounds and
 * files) where the protocol has them. Without recursion, so that no depth hides a text.
 */
function collectTexts(whole: object, place: Place): readonly string[] {
  const texts: string[] = [];
  const pending: (readonly [unknown, Place])[] = [[whole, place]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [value, at] = next;
    if (typeof value === 'string') texts.push(value);
    if (typeof value !== 'object' || value === null) continue;
    const parts = Array.isArray(value) ? value.map((item: unknown) => [item, at] as const) : partsOf(value, at);
    // The last one that is put there is taken first.
    for (const part of parts.toReversed()) pending.push(part);
  }
  return texts;
}

/** The names and the members of an object. */
function partsOf(value: object, { members: places, isSkipped }: Place): readonly (readonly [unknown, Place])[] {
  const members = new Map<string, unknown>(Object.entries(value));
  return [...members].flatMap(([name, member]) => {
    if (isSkipped(name, members)) return [];
    const part = [member, places.get(name) ?? ELSEWHERE] as const;
    return PROTOCOL_NAMES.has(name) ? [part] : [[name, ELSEWHERE] as const, part];
  });
}

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
