import type { Command } from 'commander';
import { isStandIn, serviceOfShape } from '../../shared/model/credential_shapes.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import { formatVaultReference, parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import type { ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { secretsPage, type SecretRecord } from '../../shared/wire/secrets.ts';
import { bindingsOfService, type SealedService, type ServiceField } from '../../shared/wire/sealed_service.ts';
import { listAllBindings } from '../bindings/binding_commands.ts';
import { flagOf, validateBinding } from '../bindings/binding_input.ts';
import { loadTemplates } from '../bindings/binding_templates.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { ownerOption, withSecretSource } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askLine, askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { readSecret, type SecretSource } from '../terminal/read_secret.ts';
import { carryOutSeal, planSeal, type Sealed } from './seal_service.ts';
import { findService, loadServices } from './services.ts';

export type SealOptions = SecretSource & {
  readonly from?: string;
  readonly as?: string;
  readonly host?: string;
  readonly username?: string;
  readonly accessKeyId?: string;
  readonly region?: string;
  readonly service?: string;
  readonly owner: string;
  readonly yes?: boolean;
  readonly value?: true;
};

/** `svc seal`. */
export function addSealCommand(line: CommandLine): void {
  const seal = line.program
    .command('seal')
    .description('store the credential of a well-known service, with every binding that the service needs')
    .argument('<service>', 'github, gitlab, npm, aws, openai, anthropic ...');
  handle<SealOptions>(line, sealOptions(seal), sealNamed);
}

function sealOptions(command: Command): Command {
  return withSecretSource(command)
    .option('--from <variable>', 'take the value from this environment variable')
    .option('--as <path>', 'path in the vault (default: the one of the service, such as user/github)')
    .option('--host <host>', 'the host of your registry or site')
    .option('--username <name>', 'the user name that belongs to the credential')
    .option('--access-key-id <id>', 'aws: the access key id')
    .option('--region <region>', 'aws: the region')
    .option('--service <service>', 'aws: one more service besides S3')
    .addOption(ownerOption('owner of the secret and the bindings').default('personal'))
    .option('-y, --yes', 'replace a stored value without asking');
}

async function sealNamed(call: Call<SealOptions>): Promise<undefined> {
  const [name = ''] = call.args;
  if (call.args.length > 1 || call.options.value !== undefined) throw refuseArgument();
  const service = findService(loadServices(call.context.root), name);
  const client = controlClient(call.context, call.options);
  const path = pathOf(call, service);
  const stored = await findStored(client, path, call.options.owner);
  if (stored !== null) await confirmReplacement(call, stored);
  const bindings = await bindingsFor(call, service, path);
  const steps = planSeal(await listAllBindings(client, call.options.owner), bindings);
  const value = await readValue(call, service);
  const description = `sealed for ${service.title}`;
  const sealed = await carryOutSeal(client, steps, { path, value, owner: call.options.owner, description });
  report(call, service, sealed);
}

function refuseArgument(): CliError {
  return new CliError(
    EXIT.usage,
    'a secret cannot be given on the command line: the process list and the shell history would show it',
    [
      'Type it at the prompt, pipe it (--stdin), or take it from a variable (--from VARIABLE) or a file (--file FILE).',
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

function pathOf({ options }: Call<SealOptions>, service: SealedService): string {
  const path = parseOwnVaultPath((options.as ?? service.secret).replace(/^vault:\/\//, ''));
  if (path.ok) return path.value;
  throw new CliError(EXIT.usage, `--as: ${path.error.message}`);
}

async function findStored(client: HttpClient, path: string, owner: string): Promise<SecretRecord | null> {
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  return stored.find((secret) => secret.path === path) ?? null;
}

/** Only this needs a confirmation: the earlier value is lost for good. */
async function confirmReplacement({ context, options }: Call<SealOptions>, { ref }: SecretRecord): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive) {
    throw new CliError(
      EXIT.usage,
      `${ref} is stored already: its value would be replaced, and cannot be brought back`,
      ['To replace it: --yes. To store another credential of the service: --as PATH.'],
    );
  }
  if (await askYes(context, `${ref} is stored already. Replace its value?`)) return;
  throw new CliError(EXIT.failed, 'nothing was changed');
}

async function bindingsFor(
  call: Call<SealOptions>,
  service: SealedService,
  path: string,
): Promise<readonly ValidHostBinding[]> {
  const templates = loadTemplates(call.context.root);
  const { host, username, accessKeyId, region, service: awsService, owner } = call.options;
  const values: { -readonly [F in ServiceField]?: string } = dropUndefined({
    host,
    username,
    access_key_id: accessKeyId,
    region,
    service: awsService,
  });
  const given = { values, credentialRef: formatVaultReference(path), owner };
  let filled = bindingsOfService(service, templates, given);
  if (!filled.ok) {
    for (const field of filled.error) values[field] = await askFor(call, service, field);
    filled = bindingsOfService(service, templates, given);
  }
  if (!filled.ok) throw new CliError(EXIT.usage, `${service.name} needs ${filled.error.map(flagOf).join(', ')}`);
  return filled.value.map((fields) => {
    const binding = validateBinding(fields, 'flags');
    if (binding.ok) return binding.value;
    throw new CliError(EXIT.usage, `${service.name} cannot be sealed like this:`, binding.error.map(hostFlag));
  });
}

function dropUndefined(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** The host is an argument of `svc binding add`, but an option here. */
function hostFlag(text: string): string {
  return text.replace(/^HOST /, '--host ');
}

async function askFor(
  { context, options }: Call<SealOptions>,
  service: SealedService,
  field: ServiceField,
): Promise<string> {
  const flag = field === 'host' ? '--host' : flagOf(field);
  const what = service.asks[field] ?? field;
  if (!context.interactive || options.stdin === true) {
    throw new CliError(EXIT.usage, `${service.name} needs ${flag}: ${what}`);
  }
  const answer = (await askLine(context, `${capitalised(what)}: `))?.trim() ?? '';
  if (answer !== '') return answer;
  throw new CliError(EXIT.usage, `${service.name} needs ${flag}: nothing was changed`);
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The value, if it is not obviously the credential of another service or a placeholder. */
async function readValue(call: Call<SealOptions>, service: SealedService): Promise<string> {
  const { context, options } = call;
  const value = options.from === undefined ? await promptValue(call, service) : variableValue(call, options.from);
  if (isStandIn(value)) {
    throw new CliError(EXIT.usage, 'this is a placeholder of svc, not a credential: nothing was changed');
  }
  const other = serviceOfShape(value);
  if (other === null || other === service.name) return value;
  const question = `This looks like a credential of ${other}, and would be sent to ${service.title}.`;
  if (context.interactive && (await askYes(context, `${question} Store it anyway?`))) return value;
  throw new CliError(EXIT.failed, `${question} Nothing was changed`, [`For ${other}: svc seal ${other}`]);
}

function promptValue({ context, options, print }: Call<SealOptions>, service: SealedService): Promise<string> {
  if (context.interactive) print.note(`${service.title}: paste ${service.credential}. See ${service.source.url}`);
  return readSecret(context, options);
}

function variableValue({ context, options }: Call<SealOptions>, name: string): string {
  if (options.stdin === true || options.file !== undefined) {
    throw new CliError(EXIT.usage, '--from was given with --stdin or --file: choose one');
  }
  const value = context.env[name];
  if (value !== undefined && value !== '') return value;
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw new CliError(EXIT.usage, '--from takes the name of an environment variable, never the value itself');
  }
  const near = didYouMean(name, Object.keys(context.env));
  throw new CliError(EXIT.usage, `--from ${name}: it is not set in your environment${near}`);
}

function report({ print }: Call<SealOptions>, service: SealedService, { secret, bindings }: Sealed): void {
  const value = {
    service: service.name,
    secret,
    bindings: bindings.map(({ record, created }) => ({ ...record, created })),
  };
  const stored = secret.version === 1 ? `stored ${secret.ref}` : `replaced the value of ${secret.ref}`;
  const lines = bindings.map(({ record, created }) => {
    const mark = created ? '+' : '=';
    const effect = record.effect === undefined ? '' : `, ${record.effect}`;
    const hands = record.sentinel?.env === undefined ? '' : `, placeholder in ${record.sentinel.env}`;
    return `  ${mark} ${record.host} (${record.scheme}${effect}${hands})  ${record.id}\n`;
  });
  print.data(value, () => (print.person ? `${stored}\n${lines.join('')}` : `${secret.ref}\n`));
  if (!print.person) return;
  if (service.try !== undefined) print.note(`Try it: svc run -- ${service.try}`);
}
