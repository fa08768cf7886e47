import { NO_MCP_RULES, type McpRules } from '../model/mcp_rules.ts';
import type { McpServer, McpToolPolicy } from '../model/mcp_server.ts';
import { coversSource } from '../net/mcp_source.ts';
import { commandDangers } from './command_dangers.ts';
import { isContainerCommand } from './server_isolation.ts';
import { sourcesOf } from './server_source.ts';
import { toolMatches } from './tool_policy.ts';

type JudgedServer = Pick<McpServer, 'name' | 'mode' | 'command' | 'env' | 'url' | 'isolation'>;

/**
 * Why the rules of an enterprise do not let a server run, as a sentence with the fix; null if they do. `registryName`: the entry
 * that the control plane itself derived this command or URL from; null if there is none.
 */
export function findRuleProblem(rules: McpRules, server: JudgedServer, registryName: string | null): string | null {
  const problems = [
    sourceProblem(rules, server, registryName),
    isolationProblem(rules, server),
    pinProblem(rules, server),
  ].filter((problem) => problem !== null);
  return problems.length === 0 ? null : `a rule of your enterprise does not allow it: ${problems.join('; ')}`;
}

function sourceProblem({ sources }: McpRules, server: JudgedServer, registryName: string | null): string | null {
  if (sources === null) return null;
  const own = sourcesOf(server);
  const isAllowed = (source: string) => sources.some((pattern) => coversSource(pattern, source));
  if (registryName !== null && own !== null && isAllowed(`registry:${registryName}`)) return null;
  const fix = 'ask an admin to add it to `svc mcp rules`';
  if (own === null) {
    return 'it is no plain start of a package or an image, so it cannot be compared with the list of servers that may run; install it with `svc mcp install`';
  }
  const [refused] = own.filter((source) => !isAllowed(source));
  return refused === undefined ? null : `${refused} is not on the list of servers that may run; ${fix}`;
}

function isolationProblem({ isolation }: McpRules, server: JudgedServer): string | null {
  const isBoxed = server.mode === 'remote' || server.isolation === 'container' || isContainerCommand(server.command);
  if (isolation === 'process' || isBoxed) return null;
  return `it has to run in a container: \`svc mcp update ${server.name} --isolation container\``;
}

function pinProblem({ pinned_only: isPinnedOnly }: McpRules, server: JudgedServer): string | null {
  if (!isPinnedOnly || server.mode === 'remote') return null;
  const isLoose = commandDangers(server.command, server.env).some(({ code }) => code === 'unpinned_version');
  return isLoose ? 'its command has to name an exact version of what it runs' : null;
}

/** True if the rules say nothing. */
export function areNoRules({ sources, isolation, pinned_only: isPinnedOnly, tools }: McpRules): boolean {
  const { allow, deny, approval } = tools;
  const isAnyTool = allow === null && deny.length === 0 && approval.length === 0;
  return sources === null && isolation === NO_MCP_RULES.isolation && !isPinnedOnly && isAnyTool;
}

/**
 * The policy that is in force for a server: what its own and the enterprise's both allow; denied or asked about if either says
 * so. A tool that the enterprise allows by its whole name counts as named by a person.
 */
export function tightenTools(own: McpToolPolicy, { tools: rule }: McpRules): McpToolPolicy {
  return {
    allow: bothAllow(own.allow, rule.allow),
    deny: union(own.deny, rule.deny),
    approval: union(own.approval, rule.approval),
  };
}

function bothAllow(a: readonly string[] | null, b: readonly string[] | null): readonly string[] | null {
  if (a === null) return b;
  if (b === null) return a;
  return union(within(a, b), within(b, a));
}

/** The patterns of one list that the other covers. */
function within(these: readonly string[], those: readonly string[]): readonly string[] {
  return these.filter((pattern) => those.some((other) => includesPattern(other, pattern)));
}

/** Whether every tool that the inner pattern matches is one of the outer pattern's. */
function includesPattern(outer: string, inner: string): boolean {
  if (!inner.endsWith('*')) return toolMatches(outer, inner);
  return outer.endsWith('*') && inner.startsWith(outer.slice(0, -1));
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  return [...new Set([...a, ...b])];
}
