import { err, ok, type Result } from '../model/result.ts';
import type { ToolChoice } from '../model/mcp_tool.ts';
import type { McpToolPolicy } from '../model/mcp_server.ts';

/** A server's tool policy for a call; `approval` holds it for a person. */
type ToolDecision = 'allowed' | 'approval' | 'denied';

/** A tool as far as a policy looks at it: its server's own name for it, and what the server says about its effects. */
interface JudgedTool {
  readonly name: string;
  readonly annotations?: unknown;
}

/**
 * Decides a call. Deny beats approval, and approval beats allow. A tool that its server calls destructive needs an approval,
 * unless `allow` has its whole name. What a server says can only make the decision stricter.
 */
export function toolDecision(policy: McpToolPolicy, tool: JudgedTool): ToolDecision {
  const { name } = tool;
  if (matchesAny(policy.deny, name)) return 'denied';
  if (policy.allow !== null && !matchesAny(policy.allow, name)) return 'denied';
  if (matchesAny(policy.approval, name)) return 'approval';
  return isDestructive(tool) && !isNamed(policy, name) ? 'approval' : 'allowed';
}

/** A tool whose own name looks like a pattern cannot be named: the pattern was written for others. */
function isNamed({ allow }: McpToolPolicy, name: string): boolean {
  return !isPattern(name) && allow?.includes(name) === true;
}

/** True if the tool is listed: everything that is not denied. */
export function isToolListed(policy: McpToolPolicy, tool: JudgedTool): boolean {
  return toolDecision(policy, tool) !== 'denied';
}

/** True if the server itself says that the tool can destroy something. */
export function isDestructive({ annotations }: JudgedTool): boolean {
  return (
    typeof annotations === 'object' &&
    annotations !== null &&
    'destructiveHint' in annotations &&
    annotations.destructiveHint === true
  );
}

/** The choice that a policy makes for a tool. */
export function choiceOf(policy: McpToolPolicy, tool: JudgedTool): ToolChoice {
  const decision = toolDecision(policy, tool);
  return decision === 'denied' ? 'deny' : decision === 'approval' ? 'ask' : 'allow';
}

/**
 * The policy with another choice for one tool; the others keep theirs. Refuses with the pattern that decides about more tools
 * than this one, because only a person can say what it should become, and with a name that would itself be such a pattern.
 */
export function withChoice(policy: McpToolPolicy, name: string, choice: ToolChoice): Result<McpToolPolicy, string> {
  if (isPattern(name)) return err(name);
  const [deny, approval] = [without(policy.deny, name), without(policy.approval, name)];
  const stricter = choice === 'deny' ? [] : choice === 'ask' ? deny : [...deny, ...approval];
  const inTheWay = stricter.find((pattern) => toolMatches(pattern, name));
  if (inTheWay !== undefined) return err(inTheWay);
  const { allow } = policy;
  if (choice === 'deny') return ok({ allow, deny: [...deny, name], approval });
  if (choice === 'allow') return ok({ allow: [...without(allow ?? ['*'], name), name], deny, approval });
  const isAllowed = allow === null || matchesAny(allow, name);
  return ok({ allow: isAllowed ? allow : [...allow, name], deny, approval: [...approval, name] });
}

function without(patterns: readonly string[], name: string): readonly string[] {
  return patterns.filter((pattern) => pattern !== name);
}

function isPattern(text: string): boolean {
  return text.endsWith('*');
}

/** Whether a pattern matches the tool: the whole name, or a prefix if the pattern ends with `*`. */
export function toolMatches(pattern: string, tool: string): boolean {
  if (isPattern(pattern)) return tool.startsWith(pattern.slice(0, -1));
  return pattern === tool;
}

function matchesAny(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => toolMatches(pattern, tool));
}
