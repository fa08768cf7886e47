import { canonicalJson } from '../../audit/canonical_json.ts';
import { MAX_TOOL_NAME, MAX_TOOL_TEXT, type ReviewedKind } from '../../model/mcp_tool.ts';

/** A tool or a prompt as its server describes it. Members that this version does not know count too: a client may show them to a model. */
export interface ToolDefinition {
  readonly name: string;
  readonly [member: string]: unknown;
}

/** `_meta` is for programs and may change with each list. Icons are images. */
export const UNREAD_MEMBERS: ReadonlySet<string> = new Set(['_meta', 'icons']);

/** The tool without the members that nobody reads. */
export function readMembers(tool: ToolDefinition): ToolDefinition {
  const read = Object.entries(tool).filter(([member]) => !UNREAD_MEMBERS.has(member));
  return { ...Object.fromEntries(read), name: tool.name };
}

/**
 * What a person looks at, and what the hash of a tool is made of: canonical JSON of the name, title, description, schemas,
 * annotations and every other member but `_meta` and `icons`. Null if the tool cannot be looked at: it has no name, or its text
 * is too long or not Unicode.
 */
export function toolText(tool: ToolDefinition): string | null {
  const read = readMembers(tool);
  if (tool.name === '' || tool.name.length > MAX_TOOL_NAME || !isCanonical(read)) return null;
  const text = canonicalJson(read);
  return text.length > MAX_TOOL_TEXT ? null : text;
}

/**
 * What the hash is made of, for the text of a definition. JSON of a tool begins with a brace, so nothing of one kind has the hash
 * of another kind.
 */
export function hashedText(kind: ReviewedKind, text: string): string {
  return kind === 'tool' ? text : `${kind} ${text}`;
}

/** True if the value has only finite numbers and whole characters, down to a depth that no schema needs. */
function isCanonical(value: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false;
  if (typeof value === 'string') return !/\p{Cs}/u.test(value);
  if (typeof value === 'number') return Number.isFinite(value);
  if (value === null || typeof value === 'boolean') return true;
  if (Array.isArray(value)) return value.every((item) => isCanonical(item, depth + 1));
  if (typeof value !== 'object') return false;
  return Object.entries(value).every(([key, member]) => isCanonical(key, depth) && isCanonical(member, depth + 1));
}

const MAX_DEPTH = 200;
