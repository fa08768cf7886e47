import type { McpToolPolicy } from '../model/mcp_server.ts';

/** A server's tool policy for a call; `approval` holds it for a person. */
type ToolDecision = 'allowed' | 'approval' | 'denied';

/** Looks a tool up by the name its server gave it. Deny beats approval, and approval beats allow. */
export function toolDecision(policy: McpToolPolicy, tool: string): ToolDecision {
  if (matchesAny(policy.deny, tool)) return 'denied';
  if (policy.allow !== null && !matchesAny(policy.allow, tool)) return 'denied';
  return matchesAny(policy.approval, tool) ? 'approval' : 'allowed';
}

/** True if the tool is listed: everything that is not denied. */
export function isToolListed(policy: McpToolPolicy, tool: string): boolean {
  return toolDecision(policy, tool) !== 'denied';
}

/** Whether a pattern matches the tool: the whole name, or a prefix if the pattern ends with `*`. */
function toolMatches(pattern: string, tool: string): boolean {
  if (pattern.endsWith('*')) return tool.startsWith(pattern.slice(0, -1));
  return pattern === tool;
}

function matchesAny(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => toolMatches(pattern, tool));
}
