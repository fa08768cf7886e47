import type { McpServer } from '../../shared/model/mcp_server.ts';
import {
  type MarketplaceDetail,
  marketplaceInstallReply,
  type MarketplaceInstallReply,
  marketplacePreviewReply,
  type MarketplacePreviewReply,
} from '../../shared/wire/marketplace.ts';
import { mcpCredentialReply, type McpServerRecord, toMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import { askYes } from '../terminal/ask.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { giveConsentHere } from './mcp_consent_here.ts';
import { chooseIsolation, isolationLine, refuseUnusedHosts, typedHosts } from './mcp_isolation.ts';
import { adviceLines, entryPath, formatPublished, formatStarted } from './mcp_entry_text.ts';
import { askInputs, type Inputs, inputsOf, refuseTypedSecrets } from './mcp_inputs.ts';
import { registryEntry } from './mcp_lookup.ts';
import { promptHidden, readSecret, type SecretSource } from '../terminal/read_secret.ts';

export type McpInstallOptions = SecretSource & {
  readonly release?: string;
  readonly package?: string;
  readonly remote?: string;
  readonly name?: string;
  readonly owner: string;
  readonly input?: readonly string[];
  readonly credential?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly isolation?: McpServer['isolation'];
  readonly allow?: readonly string[];
};

/** `svc mcp install ENTRY`: shows what will run, asks, installs, and prompts for credentials. */
export async function installMcpServer(call: Call<McpInstallOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const entry = call.args[0] ?? '';
  refuseUnanswerable(call);
  const hosts = typedHosts(call, options.allow);
  const client = controlClient(context, options);
  const detail = await registryEntry(client, entry, options.release);
  const there = findInstalledServer(detail, options);
  if (there !== undefined)
    print.note(`${formatPublished(entry)} is already installed as ${there.name}; nothing was changed`);
  const shown = there === undefined ? await confirmInstall(call, client, detail, hosts) : null;
  const isolation = shown?.isolation;
  const body = {
    ...choiceOf(options, detail),
    ...(shown && { inputs: shown.inputs }),
    ...targetOptions(options),
    ...(isolation !== undefined && { isolation }),
  };
  const reply = await client.call('POST', entryPath(entry, '/install'), marketplaceInstallReply, { body });
  if (reply.server === null) return tellDryRun(call, reply);
  const left = await storeCredentials(call, client, reply);
  const isNowRun = await giveConsentHere(
    call,
    shown && toShownServer(reply.server, detail, shown.preview, isolation),
    hosts,
  );
  const isRun = shown === null || isNowRun;
  return tell(call, reply, { left, isRun });
}

/** Without a terminal, --yes is required. */
function refuseUnanswerable({ context, options, print }: Call<McpInstallOptions>): void {
  if ((options.stdin === true || options.file !== undefined) !== (options.credential !== undefined)) {
    throw new CliError(EXIT.usage, '--credential NAME needs --stdin or --file, which supplies the value');
  }
  const isAsked = options.yes !== true && options.dryRun !== true;
  if (!isAsked || (context.interactive && !print.json)) return;
  throw new CliError(EXIT.usage, 'stdin is not a terminal, so the install cannot be confirmed', [
    'Review it with `svc mcp view ENTRY`, then install it with --yes.',
  ]);
}

function findInstalledServer({ installed_servers: servers }: MarketplaceDetail, { owner, name }: McpInstallOptions) {
  return servers.find((server) => server.owner === owner && (name === undefined || server.name === name));
}

/** The preview that the person confirmed. */
interface Shown {
  readonly inputs: Inputs;
  readonly preview: MarketplacePreviewReply;
  /** Undefined for a remote server, and if nothing is installed. */
  readonly isolation: McpServer['isolation'] | undefined;
}

async function confirmInstall(
  call: Call<McpInstallOptions>,
  client: HttpClient,
  detail: MarketplaceDetail,
  hosts: readonly string[],
): Promise<Shown> {
  const { context, options, print } = call;
  const fetched = await fetchPreview(call, client, detail, inputsOf(options.input));
  const { preview, outcome } = fetched.preview;
  if (outcome === null) throw new CliError(EXIT.failed, 'the control plane did not return what would be installed');
  const isolation = await isolationOf(call, fetched);
  refuseUnusedHosts(hosts, isolation);
  const shown = { ...fetched, isolation };
  if (!print.json) {
    const heading = print.paint('bold', formatPublished(`${detail.name} ${detail.version ?? ''}`.trim()));
    const lines = [heading, formatPublished(detail.description), ...formatStarted(outcome, print.paint)];
    const where = isolation === undefined ? [] : [isolationLine(isolation, hosts)];
    print.note([...lines, ...where, ...adviceLines(preview, print.paint)].join('\n'));
  }
  if (options.yes === true || options.dryRun === true) return shown;
  if (await askYes(context, 'Install this?')) return shown;
  throw new CliError(EXIT.failed, 'not installed');
}

/** The preview with every required input; missing ones are prompted for. */
async function fetchPreview(
  call: Call<McpInstallOptions>,
  client: HttpClient,
  detail: MarketplaceDetail,
  inputs: Inputs,
): Promise<Pick<Shown, 'inputs' | 'preview'>> {
  const body = { ...choiceOf(call.options, detail), inputs };
  const preview = await client.call('POST', entryPath(detail.name, '/preview'), marketplacePreviewReply, { body });
  refuseTypedSecrets(preview.preview, inputsOf(call.options.input));
  if (preview.problems.length === 0) return { inputs, preview };
  const more = await askInputs(call, preview.preview, preview.problems);
  return fetchPreview(call, client, detail, { ...inputs, ...more });
}

/** Pins the version that was shown, even if a newer one is published meanwhile. */
function choiceOf(options: McpInstallOptions, { version }: MarketplaceDetail) {
  return {
    ...(version !== null && { version }),
    ...(options.package !== undefined && { package: numberOf(options.package, '--package') }),
    ...(options.remote !== undefined && { remote: numberOf(options.remote, '--remote') }),
  };
}

function numberOf(text: string, flag: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text) - 1;
  throw new CliError(EXIT.usage, `${flag} must be a number that \`svc mcp view\` shows`);
}

function targetOptions({ name, owner, dryRun }: McpInstallOptions) {
  return { owner, ...(name !== undefined && { name }), ...(dryRun === true && { dry_run: true }) };
}

/** Where a local server is to run; undefined for a remote one. */
async function isolationOf(
  call: Call<McpInstallOptions>,
  { inputs, preview: { preview, outcome } }: Pick<Shown, 'inputs' | 'preview'>,
): Promise<McpServer['isolation'] | undefined> {
  if (preview.mode !== 'local' || call.options.dryRun === true) return undefined;
  const command = outcome?.command ?? [];
  const name = call.options.name ?? 'the server';
  return call.options.isolation ?? chooseIsolation(call, { name, command }, Object.values(inputs).flat());
}

/** Stores piped credentials and prompts for the rest; returns the names of those still missing. */
async function storeCredentials(
  call: Call<McpInstallOptions>,
  client: HttpClient,
  { server, required_credentials: required }: MarketplaceInstallReply,
): Promise<readonly string[]> {
  const { context, options, print } = call;
  const store = (name: string, value: string) =>
    client.call('POST', `/v1/mcp-servers/${server?.id}/credentials`, mcpCredentialReply, {
      body: { env_var_name: name, secret_value: value },
    });
  const { credential } = options;
  if (credential !== undefined) await store(credential, await readSecret(context, options));
  const missing = required.filter((each) => each.required && each.name !== credential);
  if (!context.interactive || print.json || options.yes === true) return missing.map(({ name }) => name);
  const left: string[] = [];
  for (const { name, description } of missing) {
    const about = description === '' ? '' : ` (${description})`;
    const question = formatPublished(`${name}${about} (not shown; leave empty to set it later): `);
    const value = await promptHidden(context.stdin, context.stderr, question);
    if (value === '') left.push(name);
    else await store(name, value);
  }
  return left;
}

/** The server as the person saw it: if the control plane changed it, there is no consent. */
function toShownServer(
  server: McpServerRecord,
  detail: MarketplaceDetail,
  { preview, outcome }: MarketplacePreviewReply,
  isolation: McpServer['isolation'] | undefined,
): McpServer {
  const own = (text: string) => text.replaceAll('vault://mcp-servers/{id}/', `vault://mcp-servers/${server.id}/`);
  const { command = [], env = {} } = outcome ?? {};
  return {
    ...toMcpServer(server),
    isolation: isolation ?? 'process',
    mode: preview.mode,
    version: preview.version ?? detail.version,
    command: command.map((word) => own(word)),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, own(value)])),
  };
}

function tellDryRun({ print }: Call, reply: MarketplaceInstallReply): undefined {
  print.data(reply, () => (print.person ? 'It can be installed; nothing was changed.\n' : ''));
}

function tell(
  { print }: Call,
  reply: MarketplaceInstallReply,
  { left, isRun }: { readonly left: readonly string[]; readonly isRun: boolean },
): undefined {
  const { server } = reply;
  if (server === null) return;
  print.data(reply, () => (print.person ? `installed ${server.name} (${server.id})\n` : `${server.id}\n`));
  if (print.json) return;
  for (const name of left)
    print.note(`A credential is missing: svc mcp credential set ${server.name} ${formatPublished(name)}`);
  if (!isRun) print.note(`This machine needs your consent to run it: svc mcp consent ${server.name}`);
}
