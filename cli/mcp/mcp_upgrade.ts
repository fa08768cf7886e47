import type { McpServer } from '../../shared/model/mcp_server.ts';
import { marketplaceInstallReply, upgradeReply, type UpgradeReply } from '../../shared/wire/marketplace.ts';
import { type McpServerRecord, toMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import { askYes } from '../terminal/ask.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { giveConsentHere, hasConsentHere } from './mcp_consent_here.ts';
import { adviceLines, formatPublished, wordText } from './mcp_entry_text.ts';
import { askInputs, inputsOf, refuseTypedSecrets } from './mcp_inputs.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import type { Paint } from '../terminal/output.ts';

export type McpUpgradeOptions = OwnerOption & {
  readonly release?: string;
  readonly input?: readonly string[];
  readonly check?: boolean;
  readonly yes?: boolean;
};

/** `svc mcp upgrade SERVER`. */
export async function upgradeMcpServer(call: Call<McpUpgradeOptions>): Promise<number | undefined> {
  const { context, options, print } = call;
  const client = controlClient(context, options);
  const before = await findMcpServer(client, call.args[0] ?? '', options.owner);
  const path = `/v1/mcp-servers/${before.id}/upgrade`;
  const offered = await client.call('GET', path, upgradeReply, { query: { version: options.release } });
  if (!offered.available || options.check === true) {
    print.data(offered, () => textOf(before, offered, print.paint));
    return undefined;
  }
  if (!print.json) print.note(textOf(before, offered, print.paint).trimEnd());
  const inputs = await inputsFor(call, offered);
  await confirm(call);
  const wasRun = await hasConsentHere(call, toMcpServer(before));
  const body = { inputs, ...(offered.entry_version !== null && { version: offered.entry_version }) };
  const { server, required_credentials } = await client.call('POST', path, marketplaceInstallReply, { body });
  if (server === null) throw new CliError(EXIT.failed, 'the control plane did not return what it upgraded');
  // Values given just now change what runs, so the preview no longer covers it.
  const wasShown = offered.problems.length === 0 && Object.keys(inputs).length === 0;
  const isRun = await giveConsentHere(call, wasRun && wasShown ? toShownServer(before, offered) : null);
  print.data({ server, required_credentials }, () => formatUpgraded(server, print.person));
  if (print.json) return undefined;
  for (const { name } of required_credentials) {
    print.note(`A credential is missing: svc mcp credential set ${server.name} ${formatPublished(name)}`);
  }
  if (server.mode === 'local' && !isRun)
    print.note(`This machine needs your consent to run the new version: svc mcp consent ${server.name}`);
  print.note(`To undo it: svc mcp rollback ${server.name} --to ${before.revision}`);
  return undefined;
}

async function inputsFor(call: Call<McpUpgradeOptions>, offered: UpgradeReply) {
  const given = inputsOf(call.options.input);
  refuseTypedSecrets(offered.preview, given);
  const missing = offered.problems.filter(({ input }) => !Object.hasOwn(given, input));
  return missing.length === 0 ? given : { ...given, ...(await askInputs(call, offered.preview, missing)) };
}

async function confirm({ context, options, print }: Call<McpUpgradeOptions>): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive || print.json) {
    throw new CliError(EXIT.usage, 'stdin is not a terminal, so the upgrade cannot be confirmed', [
      'Review it with --check, then upgrade with --yes.',
    ]);
  }
  if (!(await askYes(context, 'Upgrade it?'))) throw new CliError(EXIT.failed, 'not upgraded');
}

/** The server as the upgrade preview showed it: if the control plane changed it, there is no consent. */
function toShownServer(before: McpServerRecord, { diff, to_version }: UpgradeReply): McpServer {
  const changes = Object.entries(diff.env).map(([name, { after }]) => [name, after] as const);
  const env = Object.entries({ ...before.env, ...Object.fromEntries(changes) });
  return {
    ...toMcpServer(before),
    version: to_version,
    command: diff.command?.after ?? before.command,
    env: Object.fromEntries(env.filter((entry): entry is [string, string] => entry[1] !== null)),
  };
}

function textOf({ name, registry_id: registryId }: McpServerRecord, offered: UpgradeReply, paint: Paint): string {
  const { from_version: from, to_version: to, available, customised, diff, preview } = offered;
  if (!available) return `${name} is up to date: ${formatPublished(`${registryId} ${from ?? ''}`)}\n`;
  const lines = [
    paint('bold', formatPublished(`${name}: ${from ?? '?'} -> ${to ?? '?'} (${registryId ?? ''})`)),
    ...(diff.command === null
      ? []
      : [
          `  - ${diff.command.before.map((word) => wordText(word)).join(' ')}`,
          `  + ${diff.command.after.map((word) => wordText(word)).join(' ')}`,
        ]),
    ...(diff.url === null ? [] : changeLines('url', diff.url)),
    ...Object.entries(diff.env).flatMap(([variable, change]) => changeLines(variable, change)),
    ...Object.entries(diff.headers).flatMap(([header, change]) => changeLines(header, change)),
    ...(customised ? [`${paint('yellow', 'warning:')} its command was changed manually and will be replaced`] : []),
    ...adviceLines({ ...preview, inputs: [] }, paint),
  ];
  return `${lines.join('\n')}\n`;
}

function changeLines(name: string, { before, after }: { before: string | null; after: string | null }): string[] {
  return [
    ...(before === null ? [] : [`  - ${formatPublished(`${name}: ${before}`)}`]),
    ...(after === null ? [] : [`  + ${formatPublished(`${name}: ${after}`)}`]),
  ];
}

function formatUpgraded({ name, version, revision }: McpServerRecord, person: boolean): string {
  return person
    ? `upgraded ${name} to ${formatPublished(version ?? '?')} (revision ${revision})\n`
    : `${version ?? ''}\n`;
}
