import {
  mcpRulesCheck,
  type McpRulesCheck,
  type McpRulesInput,
  mcpRulesRecord,
  type McpRulesRecord,
} from '../../shared/wire/mcp/mcp_rules.ts';
import { NO_MCP_RULES } from '../../shared/model/mcp_rules.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import { requireOutsideForTools } from './mcp_outside.ts';
import { toolRules } from './mcp_tools.ts';

export interface McpRulesOptions {
  readonly source?: string[];
  readonly anySource?: boolean;
  readonly isolation?: McpRulesInput['isolation'];
  readonly pinned?: boolean;
  readonly allowTool?: string[];
  readonly denyTool?: string[];
  readonly approveTool?: string[];
  readonly reset?: boolean;
  readonly check?: boolean;
  readonly yes?: boolean;
}

/** `svc mcp rules`: prints the rules of the enterprise. With options, shows what a change would stop, asks, and makes it. */
export async function mcpRules(call: Call<McpRulesOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const client = controlClient(context, options);
  const before = await client.call('GET', '/v1/mcp-rules', mcpRulesRecord);
  const { yes: _yes, check, ...changes } = options;
  if (!CHANGES.some((name) => changes[name] !== undefined)) {
    if (check === true) throw new CliError(EXIT.usage, '--check needs a rule to check, such as --pinned');
    print.data(before, () => rulesText(before));
    return undefined;
  }
  const body = changeRules(before, changes);
  const stopped = await client.call('POST', '/v1/mcp-rules/check', mcpRulesCheck, { body });
  if (check === true) {
    print.data(stopped, () => stoppedText(stopped));
    return undefined;
  }
  requireOutsideForTools(call);
  if (!print.json) print.note(stoppedText(stopped).trimEnd());
  await confirm(call);
  const { revision } = before;
  const replacement = revision === undefined ? body : { ...body, revision };
  const after = await client.call('PUT', '/v1/mcp-rules', mcpRulesRecord, { body: replacement });
  print.data(after, () => rulesText(after));
  return undefined;
}

const CHANGES = [
  'source',
  'anySource',
  'isolation',
  'pinned',
  'allowTool',
  'denyTool',
  'approveTool',
  'reset',
] as const satisfies readonly (keyof McpRulesOptions)[];

/** Each option replaces its rule; the others stay. */
function changeRules(before: McpRulesRecord, options: McpRulesOptions): McpRulesInput {
  const { tools, ...rest } = options.reset === true ? { ...NO_MCP_RULES, sources: null } : before;
  const { source, anySource, isolation, pinned, allowTool, denyTool, approveTool } = options;
  return {
    sources: anySource === true ? null : (source ?? rest.sources),
    isolation: isolation ?? rest.isolation,
    pinned_only: pinned ?? rest.pinned_only,
    tools: {
      allow: allowTool ?? (tools.allow && [...tools.allow]),
      deny: denyTool ?? [...tools.deny],
      approval: approveTool ?? [...tools.approval],
    },
  };
}

async function confirm({ context, options, print }: Call<McpRulesOptions>): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive || print.json) {
    throw new CliError(EXIT.usage, 'stdin is not a terminal, so the rules cannot be confirmed', [
      'See what they would stop with --check, then save them with --yes.',
    ]);
  }
  if (!(await askYes(context, 'Save these rules for every member?'))) throw new CliError(EXIT.failed, 'not saved');
}

/** Which servers rules would stop, for a person. */
export function stoppedText({ items }: McpRulesCheck): string {
  if (items.length === 0) return 'No server that exists would be stopped.\n';
  const lines = items.map(({ name, owner, email, problem }) => {
    const whose = owner === 'enterprise' ? 'of the enterprise' : `of ${email ?? 'a member'}`;
    return `  ${toPrintable(`${name} (${whose}): ${problem}`)}\n`;
  });
  return [`${items.length === 1 ? 'This server' : `These ${items.length} servers`} would be stopped:\n`, ...lines].join(
    '',
  );
}

function rulesText(rules: McpRulesRecord): string {
  const { sources, isolation, pinned_only: isPinnedOnly } = rules;
  const named = sources === null ? 'any' : sources.length === 0 ? 'none' : sources.join(', ');
  const lines = [
    `servers: ${named}`,
    ...(isolation === 'container' ? ['local servers run in a container'] : []),
    ...(isPinnedOnly ? ['only exact versions'] : []),
    ...toolRules(rules),
  ];
  return lines.map((line) => `${toPrintable(line)}\n`).join('');
}
