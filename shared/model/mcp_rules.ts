import type { McpToolPolicy } from './mcp_server.ts';

/** What an enterprise's admin says about the MCP servers of all its members (decision 0096). */
export interface McpRules {
  /** The sources of servers that may run, such as `npm:@acme/*`; null: every source. */
  readonly sources: readonly string[] | null;
  /** The least isolation of a local server. */
  readonly isolation: 'process' | 'container';
  /** Code without an exact version may not run. */
  readonly pinned_only: boolean;
  /** A server's own policy can only be stricter. */
  readonly tools: McpToolPolicy;
}

/** An enterprise without rules. */
export const NO_MCP_RULES: McpRules = {
  sources: null,
  isolation: 'process',
  pinned_only: false,
  tools: { allow: null, deny: [], approval: [] },
};

/** The most patterns of a list of the rules. */
export const MAX_RULE_PATTERNS = 100;
