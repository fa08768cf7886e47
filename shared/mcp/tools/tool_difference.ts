import { type ToolDefinition, UNREAD_MEMBERS } from './tool_definition.ts';

/** One member that differs; null if one side does not have it. */
export interface ToolDifference {
  /** Such as `inputSchema.properties.path.description`. */
  readonly where: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Every member of a tool that differs from its reviewed form, in the order of their names. */
export function toolDifferences(before: ToolDefinition, after: ToolDefinition): readonly ToolDifference[] {
  const [old, fresh] = [leavesOf(before), leavesOf(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .toSorted()
    .filter((where) => old.get(where) !== fresh.get(where))
    .map((where) => ({ where, before: old.get(where) ?? null, after: fresh.get(where) ?? null }));
}

/** Each value that has no members, by its place: a text as it is, anything else as JSON. */
function leavesOf(tool: ToolDefinition): ReadonlyMap<string, string> {
  const leaves = new Map<string, string>();
  const visit = (value: unknown, where: string): void => {
    const isBranch = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
    if (!isBranch) {
      leaves.set(where, typeof value === 'string' ? value : JSON.stringify(value));
      return;
    }
    for (const [key, member] of Object.entries(value)) visit(member, where === '' ? key : `${where}.${key}`);
  };
  const read = Object.fromEntries(Object.entries(tool).filter(([member]) => !UNREAD_MEMBERS.has(member)));
  visit(read, '');
  return leaves;
}
