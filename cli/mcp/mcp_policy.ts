import { parse } from 'yaml';
import type { Result } from '../../shared/model/result.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { mcpRulesCheck, mcpRulesRecord } from '../../shared/wire/mcp/mcp_rules.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { readTextFile } from '../terminal/read_text_file.ts';
import { replace } from './mcp_change.ts';
import { listAllMcpServers } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { requireOutsideForTools } from './mcp_outside.ts';
import {
  formatPolicyFile,
  parsePolicyFile,
  planPolicy,
  type PolicyChanges,
  type PolicyInForce,
} from './mcp_policy_file.ts';
import { stoppedText } from './mcp_rules.ts';

export interface PolicyApplyOptions {
  readonly file: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `svc mcp policy export`: the rules of the enterprise and the tools of every server that the caller sees, as a file. */
export async function exportPolicy(call: Call): Promise<undefined> {
  const inForce = await fetchPolicy(controlClient(call.context, call.options));
  const text = formatPolicyFile(inForce);
  call.print.data(parse(text), () => text);
}

/** `svc mcp policy apply -f FILE`: checks the whole file, shows what would change and which servers that stops, asks, and saves it. */
export async function applyPolicy(call: Call<PolicyApplyOptions>): Promise<undefined> {
  const { options, print, context } = call;
  const file = valueOf(options, parsePolicyFile(await readTextFile(call.context, options.file)));
  if (options.dryRun !== true) requireOutsideForTools(call);
  const client = controlClient(context, options);
  const inForce = await fetchPolicy(client);
  const changes = valueOf(options, planPolicy(file, inForce));
  const hasChanges = changes.rules !== null || changes.servers.length > 0;
  if (changes.rules !== null && !print.json) {
    const body = changes.rules.input;
    print.note(stoppedText(await client.call('POST', '/v1/mcp-rules/check', mcpRulesCheck, { body })).trimEnd());
  }
  if (options.dryRun !== true && hasChanges) {
    if (!print.json) print.note(changesText(changes).trimEnd());
    await confirm(call);
    await carryOut(call, client, inForce, changes);
  }
  const shown = { rules: changes.rules?.fields ?? [], servers: changes.servers.map(serverChange) };
  print.data({ dry_run: options.dryRun === true, changes: shown }, () => {
    if (!hasChanges) return 'Nothing differs from the file.\n';
    return options.dryRun === true ? changesText(changes) : 'The policy is as the file says.\n';
  });
}

function valueOf<T>({ file }: PolicyApplyOptions, result: Result<T, readonly string[]>): T {
  if (result.ok) return result.value;
  throw new CliError(
    EXIT.failed,
    `${toPrintable(file)} was not applied:`,
    result.error.map((line) => toPrintable(line)),
  );
}

async function fetchPolicy(client: HttpClient): Promise<PolicyInForce> {
  const rules = await client.call('GET', '/v1/mcp-rules', mcpRulesRecord);
  return { rules, servers: await listAllMcpServers(client) };
}

async function confirm({ context, options, print }: Call<PolicyApplyOptions>): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive || print.json || options.file === '-') {
    throw new CliError(EXIT.usage, 'nobody can be asked here, so nothing was saved', [
      'See the changes with --dry-run, then save them with --yes.',
    ]);
  }
  if (!(await askYes(context, 'Save this policy?'))) throw new CliError(EXIT.failed, 'not saved');
}

/** The rules first. If a change fails, says which were saved: the file can be applied again. */
async function carryOut(
  call: Call<PolicyApplyOptions>,
  client: HttpClient,
  { rules }: PolicyInForce,
  changes: PolicyChanges,
): Promise<void> {
  const saved: string[] = [];
  try {
    if (changes.rules !== null) {
      const { revision } = rules;
      const body = { ...changes.rules.input, ...(revision !== undefined && { revision }) };
      await client.call('PUT', '/v1/mcp-rules', mcpRulesRecord, { body });
      saved.push('the rules');
    }
    for (const { server, tools } of changes.servers) {
      await replace(client, server, { tools });
      saved.push(server.name);
    }
  } catch (error) {
    if (saved.length > 0) call.print.note(`svc: saved before that: ${toPrintable(saved.join(', '))}`);
    throw error;
  } finally {
    if (saved.length > 0) await serversAfterChange(call);
  }
}

function serverChange({ server: { id, name, owner }, fields }: PolicyChanges['servers'][number]) {
  return { id, name, owner, fields };
}

function changesText({ rules, servers }: PolicyChanges): string {
  const groups = [
    ...(rules === null ? [] : [{ title: 'rules of the enterprise', fields: rules.fields }]),
    ...servers.map(({ server: { name, owner }, fields }) => ({ title: `${name} (${owner})`, fields })),
  ];
  const lines = groups.flatMap(({ title, fields }) => [
    `~ ${title}`,
    ...fields.map(({ field, from, to }) => `    ${field}: ${JSON.stringify(from)} -> ${JSON.stringify(to)}`),
  ]);
  return lines.map((line) => `${toPrintable(line)}\n`).join('');
}
