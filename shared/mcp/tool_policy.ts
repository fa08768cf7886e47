import type { McpToolPolicy } from '../model/mcp_server.ts';

/** What a server's tool policy says of a call; `approval` is held for a person. */
export type ToolDecision = 'allowed' | 'approval' | 'denied';

/** What the policy says of a tool, by the name its server gave it. Deny wins over allow, and over approval. */
export function toolDecision(policy: McpToolPolicy, tool: string): ToolDecision {
  if (matchesAny(policy.deny, tool)) return 'denied';
  if (policy.allow !== null && !matchesAny(policy.allow, tool)) return 'denied';
  return matchesAny(policy.approval, tool) ? 'approval' : 'allowed';
}

/** True when the tool is listed: everything but what is denied. */
export function isToolListed(policy: McpToolPolicy, tool: string): boolean {
  return toolDecision(policy, tool) !== 'denied';
}

/** Whether a pattern names the tool: by its whole name, or by a beginning when the pattern ends in `*`. */
function toolMatches(pattern: string, tool: string): boolean {
  if (pattern.endsWith('*')) return tool.startsWith(pattern.slice(0, -1));
  return pattern === tool;
}

function matchesAny(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => toolMatches(pattern, tool));
}
