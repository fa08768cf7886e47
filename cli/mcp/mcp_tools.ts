import { dropUndefined } from '../command_options.ts';
import { MARK_WORDS } from '../../shared/mcp/tools/text_marks.ts';
import { toolDifferences } from '../../shared/mcp/tools/tool_difference.ts';
import { withChoice } from '../../shared/mcp/tool_policy.ts';
import { TOOL_CHOICES } from '../../shared/model/mcp_tool.ts';
import { showHidden, toPrintable, toShownLine } from '../../shared/model/shown_text.ts';
import type { McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { type McpToolRecord, mcpToolsReply, nameOfRecord } from '../../shared/wire/mcp/mcp_tools.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { replace } from './mcp_change.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { fetchTools, requireOutsideForTools } from './mcp_outside.ts';

export interface McpToolsOptions extends OwnerOption {
  readonly allow?: string[];
  readonly deny?: string[];
  readonly approve?: string[];
  readonly set?: readonly string[];
  readonly reset?: boolean;
  /** True without a name: every tool that waits. */
  readonly accept?: true | readonly string[];
  readonly yes?: boolean;
}

type ToolPolicy = McpServerRecord['tools'];

const EVERY_TOOL: ToolPolicy = { allow: null, deny: [], approval: [] };

/** `svc mcp tools SERVER`: prints the rules and the tools. With options, changes the rules or accepts tools that wait. */
export async function mcpTools(call: Call<McpToolsOptions>): Promise<number | undefined> {
  const { allow, deny, approve, set, reset, accept } = call.options;
  const isChange =
    reset === true || allow !== undefined || deny !== undefined || approve !== undefined || set !== undefined;
  if (isChange || accept !== undefined) requireOutsideForTools(call);
  const client = controlClient(call.context, call.options);
  const before = await findMcpServer(client, call.args[0] ?? '', call.options.owner);
  if (accept !== undefined) return acceptTools(call, client, before, accept);
  const rules = reset === true ? EVERY_TOOL : before.tools;
  const tools = chooseTools({ ...rules, ...dropUndefined({ allow, deny, approval: approve }) }, set ?? []);
  const record = isChange ? await replace(client, before, { tools }) : before;
  if (isChange) await serversAfterChange(call);
  const items = isChange ? null : await fetchTools(client, before);
  call.print.data(items === null ? record.tools : { ...record.tools, items }, () => {
    const lines = toolRules(record).map((rule) => `${toPrintable(rule)}\n`);
    return [...lines, ...(items ?? []).map((tool) => toolLine(tool))].join('');
  });
  const waiting = (items ?? []).filter(({ state }) => state === 'waiting');
  if (!call.print.json) for (const tool of waiting) call.print.raw(`\n${waitingView(tool)}`);
  if (waiting.length > 0) call.print.note(`If that is as it should be: svc mcp tools ${record.name} --accept`);
  return undefined;
}

/** `--set TOOL=allow|ask|deny`, one after the other. */
function chooseTools(policy: ToolPolicy, choices: readonly string[]): ToolPolicy {
  let chosen: ToolPolicy = policy;
  for (const text of choices) {
    const at = text.lastIndexOf('=');
    const [name, word] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
    const choice = TOOL_CHOICES.find((one) => one === word);
    if (name === '' || choice === undefined)
      throw new CliError(EXIT.usage, '--set is TOOL=allow, TOOL=ask or TOOL=deny', ['Example: --set write_file=ask']);
    const changed = withChoice(chosen, name, choice);
    if (!changed.ok) {
      const rule = toPrintable(changed.error);
      throw new CliError(EXIT.usage, `the rule "${rule}" decides about ${toPrintable(name)} and others`, [
        'Change that rule with --allow, --deny or --approve, or remove it with --reset.',
      ]);
    }
    const { allow, deny, approval } = changed.value;
    chosen = { allow: allow && [...allow], deny: [...deny], approval: [...approval] };
  }
  return chosen;
}

/** `--accept [TOOL...]`: shows what waits, and accepts exactly that. */
async function acceptTools(
  call: Call<McpToolsOptions>,
  client: HttpClient,
  { id, name }: McpServerRecord,
  accept: true | readonly string[],
): Promise<number | undefined> {
  const { print, context, options } = call;
  const tools = await client.call('GET', `/v1/mcp-servers/${id}/tools`, mcpToolsReply);
  const waiting = tools.items.filter(
    (tool) => tool.state === 'waiting' && (accept === true || accept.includes(tool.name)),
  );
  const absent = accept === true ? undefined : accept.find((one) => !waiting.some((tool) => tool.name === one));
  if (absent !== undefined) throw new CliError(EXIT.usage, `no tool ${JSON.stringify(toPrintable(absent))} waits`);
  if (waiting.length === 0) {
    print.data({ items: [] }, () => (print.person ? `No tool of ${name} waits for a look.\n` : ''));
    return undefined;
  }
  if (!print.json) for (const tool of waiting) print.raw(`${waitingView(tool)}\n`);
  if (options.yes !== true && (print.json || !context.interactive)) {
    print.note('svc: stdin is not a terminal: run this at a terminal, or use --yes');
    return EXIT.failed;
  }
  const question = waiting.length === 1 ? 'Accept this tool?' : `Accept these ${waiting.length} tools?`;
  if (options.yes !== true && !(await askYes(context, question))) {
    print.note(`${name}: nothing was accepted`);
    return EXIT.failed;
  }
  const body = { hashes: waiting.map(({ hash }) => hash) };
  const accepted = await client.call('POST', `/v1/mcp-servers/${id}/tools/accept`, mcpToolsReply, { body });
  await serversAfterChange(call);
  print.data(accepted, () => `accepted ${waiting.map((tool) => toPrintable(nameOfRecord(tool))).join(', ')}\n`);
  return undefined;
}

function toolLine(tool: McpToolRecord): string {
  const { kind, state, choice, destructive } = tool;
  const words = state === 'waiting' ? 'waits for a look' : kind === 'tool' ? choice : 'accepted';
  const line = `  ${toPrintable(nameOfRecord(tool))}: ${words}${destructive ? ' (the server calls it destructive)' : ''}\n`;
  // What waits is shown whole below.
  return state === 'waiting' ? line : `${line}    ${summaryOf(tool)}\n`;
}

const HASH_CHARACTERS = 12;
const MOST_DESCRIPTION = 120;

/** The beginning of its hash and of its description. */
function summaryOf({ hash, definition: { description } }: McpToolRecord): string {
  const text = typeof description === 'string' ? toShownLine(description, MOST_DESCRIPTION) : '';
  return `${hash.slice(0, HASH_CHARACTERS)} ${text}`.trimEnd();
}

/**
 * A waiting tool for a person: all that differs from its reviewed form, or all of a new one, and what to be careful about.
 * Nothing is cut: a definition that is too long to be looked at is never offered.
 */
function waitingView(tool: McpToolRecord): string {
  const { name, before, definition, marks } = tool;
  const what = before === null ? 'is new' : 'has changed';
  const differences = toolDifferences(before ?? { name }, definition);
  const lines = differences.flatMap(({ where, before: old, after }) => [
    `  ${toPrintable(where)}`,
    ...(old === null ? [] : textLines('- ', old)),
    ...(after === null ? [] : textLines('+ ', after)),
  ]);
  const warnings = marks.map(({ mark, where }) => `  ! it ${MARK_WORDS[mark]}: ${toPrintable(where)}`);
  return [`${toPrintable(nameOfRecord(tool))} ${what}`, ...lines, ...warnings].map((line) => `${line}\n`).join('');
}

function textLines(sign: string, text: string): readonly string[] {
  return showHidden(text)
    .split('\n')
    .map((line) => `    ${sign}${toPrintable(line)}`);
}

/** The rules, one per line. */
export function toolRules({ tools }: Pick<McpServerRecord, 'tools'>): readonly string[] {
  const { allow, deny, approval } = tools;
  const allowed = allow === null ? 'all' : allow.length === 0 ? 'none' : allow.join(', ');
  return [
    `tools: ${allowed}`,
    ...(deny.length > 0 ? [`never: ${deny.join(', ')}`] : []),
    ...(approval.length > 0 ? [`with a person's approval: ${approval.join(', ')}`] : []),
  ];
}
