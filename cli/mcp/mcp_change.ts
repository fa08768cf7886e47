import { confirmRemoval, type RemovalOptions } from '../bindings/confirm_removal.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { withOwnId } from '../../shared/wire/mcp/mcp_references.ts';
import {
  mcpServerInput,
  mcpServerRecord,
  type McpServerRecord,
  listMissingCredentials,
  toMcpServer,
} from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { chooseIsolation, refuseUnusedHosts, typedHosts } from './mcp_isolation.ts';
import { giveConsentHere, hasConsentHere } from './mcp_consent_here.ts';
import { removeUnusedPackages, updatePackage } from './mcp_package.ts';
import {
  envOf,
  headersOf,
  type Fields,
  type McpFlags,
  findTypedSecrets,
  urlOf,
  validFields,
  writableFields,
} from './mcp_fields.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { requireOutsideForTools, requireOutsideIfDecided } from './mcp_outside.ts';
import { noteTokensLeft, serversAfterChange } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { dropUndefined } from '../command_options.ts';

export type McpAddOptions = McpFlags &
  OwnerOption & { readonly disabled?: boolean; readonly allow?: readonly string[] };
export type McpUpdateOptions = McpFlags &
  OwnerOption & {
    readonly name?: string;
    readonly unsetEnv?: readonly string[];
    readonly unsetHeader?: readonly string[];
    readonly newest?: boolean;
    readonly yes?: boolean;
  };

/** `svc mcp add NAME -- COMMAND...` or `svc mcp add NAME --url URL`. */
export async function addMcpServer(call: Call<McpAddOptions>): Promise<undefined> {
  const { options, print } = call;
  const [name = '', ...command] = call.args;
  const [env, headers] = [envOf(options.env ?? []), headersOf(options.header ?? [])];
  const isRemote = options.url !== undefined;
  const hosts = typedHosts(call, options.allow);
  if (!isRemote && command.length === 0) {
    throw new CliError(EXIT.usage, 'COMMAND is missing: write the program and its arguments after --, or give --url', [
      'Such as: svc mcp add github -- npx -y @example/mcp-server@1.2.3',
    ]);
  }
  const valid = validateFields(
    {
      name,
      owner: options.owner,
      mode: isRemote ? 'remote' : 'local',
      enabled: options.disabled !== true,
      ...dropUndefined({
        command: command.length > 0 ? command : undefined,
        env: options.env && env,
        headers: options.header && headers,
        url: options.url && urlOf(options.url),
        description: options.description,
        transport: options.transport,
        isolation: options.isolation,
        tools: toolsOf(options),
      }),
    },
    'nothing was registered',
  );
  const isolation =
    options.isolation ??
    (isRemote
      ? undefined
      : await chooseIsolation(call, { name, command }, [...command.slice(1), ...Object.values(env)]));
  refuseUnusedHosts(hosts, isolation);
  const fields = { ...valid, ...dropUndefined({ isolation }) };
  for (const warning of findTypedSecrets(env, headers)) print.warn(warning);
  const record = await controlClient(call.context, options).call('POST', '/v1/mcp-servers', mcpServerRecord, {
    body: fields,
  });
  const isRun = await giveConsentHere(call, toTypedServer(fields, record), hosts);
  tell(call, record, { what: 'registered', isRun });
  if (hosts.length > 0 && !isRun) print.note(`Its hosts after that: svc mcp allow ${record.name} ${hosts.join(' ')}`);
}

/** `svc mcp update SERVER`: replaces the given fields; variables and headers are changed one by one. */
export async function updateMcpServer(call: Call<McpUpdateOptions>): Promise<undefined> {
  const { options } = call;
  const [wanted = ''] = call.args;
  const client = controlClient(call.context, options);
  const before = await findMcpServer(client, wanted, options.owner);
  if (options.newest === true) return updatePackage(call, toMcpServer(before));
  return changeFields(call, client, before);
}

async function changeFields(
  call: Call<McpUpdateOptions>,
  client: HttpClient,
  before: McpServerRecord,
): Promise<undefined> {
  const { options, print } = call;
  const [, ...command] = call.args;
  if (toolsOf(options) !== undefined) requireOutsideForTools(call);
  const [env, headers] = [envOf(options.env ?? []), headersOf(options.header ?? [])];
  const changes = dropUndefined({
    name: options.name,
    command: command.length > 0 ? command : undefined,
    env: mergeEntries(before.env, env, options.unsetEnv, '--unset-env'),
    headers: mergeEntries(before.headers, headers, options.unsetHeader, '--unset-header'),
    url: options.url && urlOf(options.url),
    description: options.description,
    transport: options.transport,
    isolation: options.isolation,
    tools: toolsOf(options) && { ...before.tools, ...toolsOf(options) },
  });
  if (Object.keys(changes).length === 0) {
    throw new CliError(EXIT.usage, 'no change was given', ['`svc mcp update --help` lists what can be changed.']);
  }
  for (const warning of findTypedSecrets(env, headers)) print.warn(warning);
  const wasRun = await hasConsentHere(call, toMcpServer(before));
  const record = await replace(client, before, changes);
  const typed = toTypedServer({ ...writableFields(before), ...changes }, record);
  tell(call, record, { what: 'updated', isRun: await giveConsentHere(call, wasRun ? typed : null) });
  if (before.authorization !== null && record.authorization === null) noteTokensLeft(call);
}

/** `svc mcp enable SERVER` and `svc mcp disable SERVER`. */
export async function switchMcpServer(call: Call<OwnerOption>, enabled: boolean): Promise<undefined> {
  // That it is off is a decision about its tools.
  if (enabled) requireOutsideForTools(call);
  const client = controlClient(call.context, call.options);
  const before = await findMcpServer(client, call.args[0] ?? '', call.options.owner);
  const record = await replace(client, before, { enabled });
  await serversAfterChange(call);
  call.print.data(record, () => `${enabled ? 'enabled' : 'disabled'} ${record.name}\n`);
}

/** `svc mcp remove SERVER`. */
export async function removeMcpServer(call: Call<OwnerOption & RemovalOptions>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const before = await findMcpServer(client, call.args[0] ?? '', call.options.owner);
  await requireOutsideIfDecided(call, client, before);
  const { id, name, credentials, authorization } = before;
  if (!(await confirmRemoval(call, client, { path: `/v1/mcp-servers/${id}` }))) return;
  await client.callEmpty('DELETE', `/v1/mcp-servers/${id}`);
  const left = await serversAfterChange(call);
  if (left !== null)
    await removeUnusedPackages(
      call,
      left.map(({ server }) => server),
    );
  const stored = credentials.filter(({ set }) => set).length;
  const entries = stored === 0 ? '' : ` and its ${stored === 1 ? 'credential' : `${stored} credentials`}`;
  if (call.print.person || call.print.json) call.print.data({ deleted: id }, () => `removed ${name}${entries}\n`);
  if (authorization !== null) noteTokensLeft(call);
}

/** Stores a server with some fields changed, if nobody has changed it since it was read. */
export function replace(client: HttpClient, before: McpServerRecord, changes: Fields): Promise<McpServerRecord> {
  const body = validateFields({ ...writableFields(before), ...changes }, 'nothing was changed');
  return client.call('PUT', `/v1/mcp-servers/${before.id}`, mcpServerRecord, { body, ifMatch: before.revision });
}

/** The server as typed; only its id comes from the control plane's answer. */
function toTypedServer(fields: Fields, { id, revision }: McpServerRecord): McpServer {
  const parsed = mcpServerInput.parse(fields);
  const own = withOwnId({ ...parsed, registry_id: parsed.registry_id ?? null, id, revision }, id);
  if (!own.ok) throw new CliError(EXIT.failed, 'the control plane changed a credential reference to another server');
  return toMcpServer(own.value);
}

/** Prints the next steps: missing credentials, warnings and consent. */
function tell(
  call: Call,
  record: McpServerRecord,
  { what, isRun }: { readonly what: string; readonly isRun: boolean },
): void {
  const { print } = call;
  for (const { message } of record.warnings) print.warn(toPrintable(message));
  print.data(record, () => (print.person ? `${what} ${record.name} (${record.id})\n` : `${record.id}\n`));
  noteMissingCredentials(call, record);
  if (record.mode === 'local' && record.enabled && !isRun) {
    print.note(`A machine runs it only after consent on that machine: svc mcp consent ${record.name}`);
  }
}

function validateFields(fields: Fields, outcome: string): Fields {
  const valid = validFields(fields);
  if (valid.ok) return valid.value;
  throw new CliError(
    EXIT.usage,
    outcome,
    valid.error.map((problem) => toPrintable(problem)),
  );
}

function toolsOf({ allowTool, denyTool, approveTool }: McpFlags): Fields | undefined {
  const tools = dropUndefined({ allow: allowTool, deny: denyTool, approval: approveTool });
  return Object.keys(tools).length === 0 ? undefined : tools;
}

function mergeEntries(
  before: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>>,
  removed: readonly string[] | undefined,
  flag: string,
): Record<string, string> | undefined {
  const absent = removed?.find((name) => !Object.hasOwn(before, name));
  if (absent !== undefined)
    throw new CliError(EXIT.usage, `${flag} names something that the server does not have`, Object.keys(before));
  if (removed === undefined && Object.keys(added).length === 0) return undefined;
  const kept = Object.entries(before).filter(([name]) => removed?.includes(name) !== true);
  return { ...Object.fromEntries(kept), ...added };
}

/** The credentials that a server lacks, each with the command that stores it. */
export function noteMissingCredentials({ print }: Call, record: McpServerRecord): void {
  for (const name of listMissingCredentials(record)) print.note(`next: svc mcp credential set ${record.name} ${name}`);
}
