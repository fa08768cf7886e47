import { canonicalJson } from '../../../shared/audit/canonical_json.ts';
import { areNoRules, findRuleProblem, tightenTools } from '../../../shared/mcp/server_rules.ts';
import { NO_MCP_RULES, type McpRules } from '../../../shared/model/mcp_rules.ts';
import type { McpServer } from '../../../shared/model/mcp_server.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { mcpRulesInput } from '../../../shared/wire/mcp/mcp_rules.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findMcpRules, listMcpDerivations } from '../../store/mcp/mcp_rules.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';
import { configurationOf, serverOf } from './mcp_configuration.ts';

type JudgedRow = Pick<McpServerRow, 'id' | 'revision' | 'record'>;

/** The rules of an enterprise. Those that this version cannot read stop every server. */
export async function rulesOf({ database }: Pick<ServiceContext, 'database'>, enterpriseId: string): Promise<McpRules> {
  const stored = await findMcpRules(database, enterpriseId);
  if (stored === null) return NO_MCP_RULES;
  const parsed = mcpRulesInput.safeParse(JSON.parse(stored));
  return parsed.success ? parsed.data : NOTHING_RUNS;
}

/** Rules of a later version may be stricter than what can be read of them. */
const NOTHING_RUNS: McpRules = { ...NO_MCP_RULES, sources: [], tools: { allow: [], deny: [], approval: [] } };

/** What the rules mean for one server. */
export interface RuledServer {
  /** The server with the tool policy that is in force; disabled if a rule stops it. */
  readonly server: McpServer;
  readonly problem: string | null;
}

/** Servers of one enterprise as its rules let them be, by id. */
export async function applyRules(
  context: Pick<ServiceContext, 'database'>,
  rows: readonly (JudgedRow & Pick<McpServerRow, 'enterpriseId'>)[],
): Promise<ReadonlyMap<string, RuledServer>> {
  const [first] = rows;
  if (first === undefined) return new Map();
  const rules = await rulesOf(context, first.enterpriseId);
  const problems = await findProblems(context, rules, rows);
  return new Map(
    rows.map((row) => {
      const server = serverOf(row);
      const problem = problems.get(row.id) ?? null;
      const tools = tightenTools(server.tools, rules);
      const stopped = problem !== null && { enabled: false, ruleProblem: problem };
      return [row.id, { server: { ...server, tools, ...stopped }, problem }];
    }),
  );
}

/** The servers that these rules stop, with the reason. */
export async function findProblems(
  { database }: Pick<ServiceContext, 'database'>,
  rules: McpRules,
  rows: readonly JudgedRow[],
): Promise<ReadonlyMap<string, string>> {
  if (areNoRules(rules)) return new Map();
  const derived = await listMcpDerivations(
    database,
    rows.map(({ id }) => id),
  );
  const found = await Promise.all(
    rows.map(async (row) => {
      const isDerived = derived.has(`${row.id}/${derivationHash(row)}`);
      const problem = findRuleProblem(rules, serverOf(row), isDerived ? configurationOf(row).registry_id : null);
      return problem === null ? [] : [[row.id, problem] as const];
    }),
  );
  return new Map(found.flat());
}

/**
 * SHA-256 of what a registry entry decides about a server. Whoever changes one of these makes a server of their own, which no
 * longer counts as the entry's, whatever `registry_id` says.
 */
export function derivationHash(row: Pick<McpServerRow, 'record'>): string {
  const { registry_id: registryId, mode, command, url } = configurationOf(row);
  return sha256Hex(canonicalJson({ registry_id: registryId, mode, command, url }));
}

/** Refuses a configuration that a rule stops; a disabled one may be stored. `isDerived`: it comes from the registry entry now. */
export async function checkRules(
  context: Pick<ServiceContext, 'database'>,
  row: JudgedRow & Pick<McpServerRow, 'enterpriseId'>,
  isDerived: boolean,
): Promise<ApiError | null> {
  const rules = await rulesOf(context, row.enterpriseId);
  const server = serverOf(row);
  if (areNoRules(rules) || !server.enabled) return null;
  const problem = isDerived
    ? findRuleProblem(rules, server, server.registryId)
    : ((await findProblems(context, rules, [row])).get(row.id) ?? null);
  return problem === null ? null : apiError('mcp_rule', `${server.name}: ${problem}`);
}
