import { parseJson } from '../../model/json.ts';
import { readMembers, type ToolDefinition } from './tool_definition.ts';

/** One member that differs; null if one side does not have it. */
interface ToolDifference {
  /** Such as `inputSchema.properties.path.description`. */
  readonly where: string;
  readonly before: string | null;
  readonly after: string | null;
}

/**
 * Every member of a tool that differs from its reviewed form, in the order of their names. Nothing that differs is left out:
 * each place and each value is written in a way that no other place or value has. Only the equal ends of two long texts are cut.
 */
export function toolDifferences(before: ToolDefinition, after: ToolDefinition): readonly ToolDifference[] {
  const [old, fresh] = [leavesOf(before), leavesOf(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .toSorted()
    .filter((where) => old.get(where) !== fresh.get(where))
    .map((where) => ({ where, ...cutEqualEnds(old.get(where) ?? null, fresh.get(where) ?? null) }));
}

/** Each value that has no members, by its place: a text as it is, anything else as JSON. */
function leavesOf(tool: ToolDefinition): ReadonlyMap<string, string> {
  const leaves = new Map<string, string>();
  const visit = (value: unknown, where: string): void => {
    const isBranch = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
    if (!isBranch) {
      leaves.set(where, valueText(value));
      return;
    }
    const isList = Array.isArray(value);
    for (const [key, member] of Object.entries(value))
      visit(member, where + (isList ? `[${key}]` : placeOf(key, where)));
  };
  visit(readMembers(tool), '');
  return leaves;
}

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/;

/** A key with a dot or a bracket is quoted: otherwise a server could name one so that it stands for another place. */
function placeOf(key: string, where: string): string {
  if (!PLAIN_KEY.test(key)) return `[${JSON.stringify(key)}]`;
  return where === '' ? key : `.${key}`;
}

/** A text that reads like other JSON, such as `true`, is quoted. */
function valueText(value: unknown): string {
  return typeof value === 'string' && parseJson(value) === undefined ? value : JSON.stringify(value);
}

/** Equal ends are cut if they are longer, and this much of them stays. */
const MAX_EQUAL = 400;
const KEPT_EQUAL = 80;

/** A change in a long text must not be hidden in text that is the same on both sides. */
function cutEqualEnds(before: string | null, after: string | null): Pick<ToolDifference, 'before' | 'after'> {
  if (before === null || after === null) return { before, after };
  const [old, fresh] = [Array.from(before), Array.from(after)];
  const most = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < most && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const [from, until] = [start > MAX_EQUAL ? start - KEPT_EQUAL : 0, end > MAX_EQUAL ? end - KEPT_EQUAL : 0];
  const cut = (text: readonly string[]): string =>
    [
      from > 0 ? `${from} equal characters … ` : '',
      text.slice(from, text.length - until).join(''),
      until > 0 ? ` … ${until} equal characters` : '',
    ].join('');
  return { before: cut(old), after: cut(fresh) };
}
