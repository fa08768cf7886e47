import { confirmRemoval, type RemovalOptions, withRemovalOptions } from './confirm_removal.ts';
import { randomBytes } from 'node:crypto';
import { Argument, Option, type Command } from 'commander';
import { stringify } from 'yaml';
import { EFFECTS, EMIT_MECHANISMS, INJECTION_SCHEMES } from '../../shared/model/host_binding.ts';
import { hostBindingRecord, type HostBindingRecord, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import type { BindingTemplate } from '../../shared/wire/binding_template.ts';
import { credentialsIssuedBy } from '../../shared/net/credential_issuer.ts';
import { isLocalhost } from '../../shared/net/host.ts';
import { inputOf } from './binding_file.ts';
import { changeBinding } from './binding_change.ts';
import { addLimitCommand } from './binding_limit.ts';
import { findBinding, findBindings, listAllBindings } from './find_binding.ts';
import { fieldsOf, validateBinding, type BindingFlags } from './binding_input.ts';
import { fillFromTemplate, findTemplate, loadTemplates } from './binding_templates.ts';
import { addApplyCommand } from './binding_apply.ts';
import { controlClient } from '../clients.ts';
import { handle, collectValue, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { Column } from '../terminal/output.ts';
import { ownerFilter, ownerOption } from '../command_options.ts';
import { adviseOfLimits, connectorsWithSpecs, findLimitedRecords } from './limited_bindings.ts';
import { warnOfMissingSecrets } from './missing_secrets.ts';
import { makeSentinel } from './sentinel.ts';

type AddOptions = BindingFlags & { readonly from?: string };
interface ListOptions {
  readonly owner?: string;
}

/** `svc binding ...`. */
export function addBindingCommands(line: CommandLine): void {
  const binding = line.program.command('binding').description('bind hosts to credentials');
  handle<AddOptions>(line, addOptions(binding.command('add').description('bind a host to a credential')), addBinding);
  const list = binding.command('list').alias('ls').description('list the bindings').addOption(ownerFilter());
  handle<ListOptions>(line, list, listBindings);
  const show = binding.command('show').description('show a binding as YAML').argument('<host-or-id>');
  handle(line, show, showBinding);
  const remove = withRemovalOptions(
    binding.command('rm').description('delete a binding; names what stops working').argument('<host-or-id>'),
  );
  handle<RemovalOptions>(line, remove, removeBinding);
  const effect = binding
    .command('effect')
    .description("set a binding's effect: read allows only GET, HEAD and OPTIONS; any other effect allows all methods")
    .argument('<host-or-id>')
    .addArgument(new Argument('<effect>').choices(EFFECTS));
  handle(line, effect, setEffect);
  addLimitCommand(line, binding);
  addApplyCommand(line, binding);
  const templates = binding
    .command('templates')
    .description('list binding templates for well-known services; with a name, print that template')
    .argument('[name]');
  handle(line, templates, showTemplates);
}

function addOptions(command: Command): Command {
  return command
    .argument('[host]', 'exact host, or *.suffix for every host below it')
    .option('--from <template>', 'start from a template (`svc binding templates` lists them)')
    .addOption(new Option('--scheme <scheme>', 'how the credential is written').choices(INJECTION_SCHEMES))
    .option('--credential <ref>', 'the secret: vault://PATH, or PATH such as user/demo')
    .addOption(
      new Option('--emit <mechanism>', 'how the credential gets into the request (default: inject)').choices(
        EMIT_MECHANISMS,
      ),
    )
    .option('--sentinel <text>', 'sentinel-swap: the placeholder the agent holds (default: a new one)')
    .option('--sentinel-env <name>', 'sentinel-swap: environment variable in which `svc run` hands out the placeholder')
    .option('--username <name>', 'basic: the user name')
    .option('--header <name>', 'header-template: the header')
    .option('--template <text>', 'header-template: the value of the header, with {token}')
    .option('--query-param <name>', 'query-param: the parameter')
    .option(
      '--access-key-id <id>',
      'sigv4-resign: the access key id (the credential is the secret key), or "minted" for a key set',
    )
    .option('--session-token <ref>', 'sigv4-resign: vault://PATH of a session token')
    .option('--region <region>', 'sigv4-resign: the region, or a set such as * or us-east-1,eu-* for version 4a')
    .option('--service <service>', 'sigv4-resign: the service')
    .option('--allowed-host <host>', 'only these hosts (repeatable)', collectValue)
    .addOption(
      new Option('--effect <effect>', 'what requests may do; read allows only GET, HEAD and OPTIONS').choices(EFFECTS),
    )
    .addOption(new Option('--body <mode>', 'buffer the request body first, or stream it').choices(['buffer', 'stream']))
    .option(
      '--keep-cookies',
      'keep cookies and authentication challenges in replies; with them the agent can act without the proxy',
    )
    .option('--requests-per-minute <n>', 'the most requests that get the credential in 60 seconds, on each machine')
    .option('--requests-per-day <n>', 'the most in 24 hours')
    .option(
      '--bytes-per-day <size>',
      'the most bytes of such requests and their replies in 24 hours, such as 500MB; headers do not count',
    )
    .addOption(ownerOption('owner of the binding (default: personal)'))
    .option('--description <text>', 'what it is for');
}

async function addBinding(call: Call<AddOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const typed = withSentinel(fieldsOf(call.args[0], options));
  const template = options.from === undefined ? null : findTemplate(context.root, options.from);
  const fields = template === null ? typed : withSentinel(fillFromTemplate(template, typed));
  if (fields['host'] === undefined) throw new CliError(EXIT.usage, 'HOST is missing: svc binding add HOST ...');
  const binding = validateBinding(fields, 'flags');
  if (!binding.ok) throw new CliError(EXIT.usage, 'this binding cannot be used:', binding.error);
  const client = controlClient(context, options);
  const record = await client.call('POST', '/v1/host-bindings', hostBindingRecord, { body: binding.value });
  print.data(record, () => (print.person ? formatAdded(record) : `${record.id}\n`));
  if (record.sentinel !== undefined && options.sentinel === undefined) {
    print.note(`The placeholder for the agent (not a secret): ${record.sentinel.value}`);
  }
  warnOfLoopback(record, print);
  warnOfReplies(record, print);
  await warnOfMissingSecrets(client, [record], print);
  if (record.effect !== undefined) return;
  const connectors = await connectorsWithSpecs(client);
  if (connectors.length > 0) await adviseOfLimits(call, client, findLimitedRecords([record], connectors));
}

/** Warns about a loopback host: clients do not send its requests through the proxy, and the proxy refuses them. */
function warnOfLoopback({ host }: HostBindingRecord, print: Call['print']): void {
  if (!isLocalhost(host)) return;
  print.warn(`${host} is this machine: requests to it do not use the proxy, so they get no credential`);
}

/** Warns about what replies give the agent: cookies that the binding keeps, and credentials that the host issues. */
function warnOfReplies({ host, keep_cookies: keepCookies }: HostBindingRecord, print: Call['print']): void {
  if (keepCookies === true) {
    print.note(`Replies from ${host} keep their cookies: with a session cookie the agent can act without the proxy.`);
  }
  const issued = credentialsIssuedBy(host);
  if (issued === null) return;
  print.note(
    `${host} issues ${issued}: the agent can request them, and they are not masked. To limit the agent to the operations that it needs, use a connector.`,
  );
}

/** Generates a placeholder for sentinel-swap if none was given. */
function withSentinel(fields: Record<string, unknown>): Record<string, unknown> {
  const { host, scheme, sentinel } = fields;
  const known: unknown = typeof sentinel === 'object' && sentinel !== null ? Reflect.get(sentinel, 'value') : sentinel;
  if (fields['emit_mechanism'] !== 'sentinel-swap' || known !== undefined || typeof host !== 'string') return fields;
  const value = makeSentinel(host, String(scheme), randomBytes);
  return { ...fields, sentinel: { value, ...(typeof sentinel === 'object' ? sentinel : {}) } };
}

function formatAdded(record: HostBindingRecord): string {
  return `bound ${record.host} to ${record.credential_ref} (${record.scheme}, ${record.emit_mechanism}): ${record.id}\n`;
}

const COLUMNS: readonly Column<HostBindingRecord>[] = [
  { title: 'HOST', cell: (row) => row.host },
  { title: 'SCHEME', cell: (row) => row.scheme },
  { title: 'CREDENTIAL', cell: (row) => row.credential_ref },
  { title: 'EMIT', cell: (row) => row.emit_mechanism },
  { title: 'EFFECT', cell: (row) => row.effect ?? 'any' },
  { title: 'OWNER', cell: (row) => row.owner },
  { title: 'ID', cell: (row) => row.id },
];

async function listBindings(call: Call<ListOptions>): Promise<undefined> {
  const items = await listAllBindings(controlClient(call.context, call.options), call.options.owner);
  call.print.rows(
    { items },
    items,
    COLUMNS,
    'No bindings yet: svc binding add HOST --scheme bearer --credential vault://PATH',
  );
}

async function showBinding(call: Call): Promise<undefined> {
  const found = await findBindings(controlClient(call.context, call.options), call.args[0] ?? '');
  call.print.data(found.length === 1 ? found[0] : { items: found }, () => found.map(bindingYaml).join('---\n'));
}

/** The YAML that `svc binding apply -f` accepts; other fields are written as comments. */
function bindingYaml(record: HostBindingRecord): string {
  const input: ValidHostBinding = inputOf(record);
  return `# ${record.id}, updated ${record.updated_at}\n${stringify(input)}`;
}

async function setEffect(call: Call): Promise<undefined> {
  const [hostOrId = '', wanted] = call.args;
  const effect = EFFECTS.find((each) => each === wanted);
  if (effect === undefined) throw new CliError(EXIT.usage, `the effect must be one of ${EFFECTS.join(', ')}`);
  const client = controlClient(call.context, call.options);
  const record = await changeBinding(client, await findBinding(client, hostOrId), { effect });
  call.print.data(record, () => `${record.host} (${record.id}) has the effect ${effect}\n`);
}

async function removeBinding(call: Call<RemovalOptions>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const only = await findBinding(client, call.args[0] ?? '');
  const path = `/v1/host-bindings/${only.id}`;
  if (!(await confirmRemoval(call, client, { path }))) return;
  await client.callEmpty('DELETE', path);
  if (call.print.person || call.print.json) {
    call.print.data({ deleted: only.id }, () => `deleted the binding of ${only.host} (${only.id})\n`);
  }
}

const TEMPLATE_COLUMNS: readonly Column<BindingTemplate>[] = [
  { title: 'NAME', cell: (row) => row.name },
  { title: 'SERVICE', cell: (row) => row.title },
  { title: 'HOST', cell: (row) => textField(row, 'host') },
  { title: 'SCHEME', cell: (row) => textField(row, 'scheme') },
];

function textField(template: BindingTemplate, field: string): string {
  const value = template.binding[field];
  return typeof value === 'string' ? value : '';
}

async function showTemplates(call: Call): Promise<undefined> {
  const name = call.args[0];
  if (name !== undefined) {
    const template = findTemplate(call.context.root, name);
    call.print.data(template, () => stringify(template));
    return;
  }
  const templates = loadTemplates(call.context.root);
  call.print.rows({ items: templates }, templates, TEMPLATE_COLUMNS, 'This checkout has no templates.');
}
