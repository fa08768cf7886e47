import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import {
  SERVICE_ACCOUNT_REACHES,
  serviceAccountRecord,
  type ServiceAccountRecord,
  serviceAccountsPage,
} from '../../shared/wire/service_accounts.ts';
import { parseJson } from '../../shared/model/json.ts';
import { Option } from 'commander';
import { controlClient } from '../clients.ts';
import { type Call, collectValue, type CommandLine, handle } from '../command_line.ts';
import { dropUndefined } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop, isYes } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { type Column, formatRows } from '../terminal/output.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';
import { counted } from '../../shared/model/sentence.ts';

const PATH = '/v1/service-accounts';

interface CreateOptions {
  readonly file?: string;
  readonly issuer?: string;
  readonly claim?: readonly string[];
  readonly audience?: string;
  readonly reach?: string;
  readonly minutes?: string;
  readonly keys?: string;
}
interface RemoveOptions {
  readonly yes?: boolean;
}

/** `svc service-account ...`. */
export function addServiceAccountCommands(line: CommandLine): void {
  const accounts = line.program
    .command('service-account')
    .description('service accounts, as which CI jobs and pods run commands with "svc join" (admins)');
  handle(line, accounts.command('list').alias('ls').description('list service accounts'), listAccounts);
  const create = accounts
    .command('create')
    .description('make a service account, from options, from a file, or from a file with some fields by options')
    .argument('[name]', 'its name, such as "deploy of acme/app"')
    .option('--file <file>', 'its fields as JSON or YAML, as the API has them')
    .option('--issuer <url>', 'whose tokens are taken: a URL; or github, gitlab')
    .option('--claim <name=value>', 'what a token must say; a * at the end makes a prefix (repeatable)', collectValue)
    .option('--audience <text>', 'what a token must be for (default: the URL of the control plane)')
    .addOption(
      new Option('--reach <reach>', "what it may use: its own secrets, or the enterprise's too").choices(
        SERVICE_ACCOUNT_REACHES,
      ),
    )
    .option('--minutes <number>', 'how long a sidecar lives: 5 to 1440 (default: 60)')
    .option('--keys <file>', "the issuer's JWK set, if the control plane cannot reach the issuer");
  handle<CreateOptions>(line, create, createAccount);
  const named = (name: string, text: string) =>
    accounts.command(name).description(text).argument('<account>', 'its id (usr_...) or its name');
  handle(line, named('show', 'show a service account, and the sidecars that live'), showAccount);
  handle(line, named('suspend', 'end its sidecars, and refuse its jobs until it is resumed'), (call) =>
    setSuspended(call, true),
  );
  handle(line, named('resume', 'let the jobs of a suspended service account join again'), (call) =>
    setSuspended(call, false),
  );
  const remove = named('remove', 'remove a service account with its secrets and bindings; its sidecars end');
  handle<RemoveOptions>(line, remove.alias('rm').option('--yes', 'do not ask'), removeAccount);
}

function stateOf({ suspended_at: suspended, live_sidecars: live }: ServiceAccountRecord): string {
  return suspended === null ? `${live} live` : 'suspended';
}

function rulesOf({ claims }: ServiceAccountRecord): string {
  return Object.entries(claims)
    .map(([claim, value]) => `${claim}=${value}`)
    .join(' ');
}

async function listAccounts({ context, options, print }: Call): Promise<undefined> {
  const all = await fetchAllPages(controlClient(context, options), PATH, serviceAccountsPage, {});
  const columns: readonly Column<ServiceAccountRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'ISSUER', cell: ({ issuer }) => issuer },
    { title: 'CLAIMS', cell: rulesOf },
    { title: 'SIDECARS', cell: stateOf },
  ];
  print.rows(all, all, columns, 'no service accounts: "svc service-account create --help" shows how to make one');
}

async function createAccount(call: Call<CreateOptions>): Promise<undefined> {
  const { context, options, print, args } = call;
  const given = dropUndefined<unknown>({
    name: args[0],
    issuer: options.issuer === undefined ? undefined : (ISSUERS.get(options.issuer) ?? options.issuer),
    claims: options.claim === undefined ? undefined : readClaims(options.claim),
    audience: options.audience,
    reach: options.reach,
    minutes: options.minutes === undefined ? undefined : readMinutes(options.minutes),
    keys: options.keys === undefined ? undefined : readKeys(call, options.keys),
  });
  const ofFile = options.file === undefined ? {} : readFields(call, options.file);
  const body: Readonly<Record<string, unknown>> = { ...ofFile, ...given };
  const missing = ['name', 'issuer', 'claims'].filter((field) => body[field] === undefined);
  if (missing.length > 0) {
    throw new CliError(
      EXIT.usage,
      `${missing.join(', ')} missing: a service account needs a name, an issuer and claims`,
      [
        'svc service-account create NAME --issuer github --claim repository=OWNER/NAME --claim environment=production',
        'svc service-account create --file FILE',
      ],
    );
  }
  const created = await controlClient(context, options).call('POST', PATH, serviceAccountRecord, { body });
  print.line(created, created.id);
  if (print.person) print.note(`Its jobs run commands with: svc join --service-account ${created.id} -- COMMAND`);
}

/** The issuers that are the same for everybody. */
const ISSUERS: ReadonlyMap<string, string> = new Map([
  ['github', 'https://token.actions.githubusercontent.com'],
  ['gitlab', 'https://gitlab.com'],
]);

function readClaims(texts: readonly string[]): Record<string, string> {
  const claims = new Map<string, string>();
  for (const text of texts) {
    const at = text.indexOf('=');
    const [name, value] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
    if (name === '' || value === '') {
      throw new CliError(EXIT.usage, `--claim ${JSON.stringify(text)} is not NAME=VALUE, such as repository=acme/app`);
    }
    if (claims.has(name)) throw new CliError(EXIT.usage, `--claim ${JSON.stringify(name)} is given twice`);
    claims.set(name, value);
  }
  return Object.fromEntries(claims);
}

function readMinutes(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--minutes ${JSON.stringify(text)} is not a whole number`);
}

/** The keys of a JWK set, or a list of keys. */
function readKeys(call: Call, file: string): unknown {
  const set = parseJson(readNamed(call, file));
  const keys = isObject(set) ? set['keys'] : set;
  if (Array.isArray(keys)) return keys;
  throw new CliError(EXIT.usage, `--keys ${file} is not a JWK set: {"keys": [...]}`, [
    'In Kubernetes: kubectl get --raw /openid/v1/jwks',
  ]);
}

function readFields(call: Call, file: string): Readonly<Record<string, unknown>> {
  const text = readNamed(call, file);
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    const [why = ''] = error instanceof Error ? error.message.split('\n') : [];
    throw new CliError(EXIT.usage, `--file ${file} is neither JSON nor YAML: ${why}`);
  }
  if (isObject(value)) return value;
  throw new CliError(EXIT.usage, `--file ${file} has no fields: write name, issuer and claims`);
}

function readNamed({ context }: Call, file: string): string {
  try {
    return readFileSync(resolve(context.workingDirectory, file), 'utf8');
  } catch (error) {
    throw unreadableFile(file, error, EXIT.usage);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function showAccount({ context, options, print, args }: Call): Promise<undefined> {
  const account = await findAccount(controlClient(context, options), args[0] ?? '');
  const rows: readonly (readonly [string, string])[] = [
    ['id', account.id],
    ['name', account.name],
    ['issuer', account.issuer],
    ['audience', account.audience],
    ...Object.entries(account.claims).map(([claim, value]) => [`claim ${claim}`, value] as const),
    ['may use', account.reach === 'own' ? 'its own secrets' : "its own secrets and the enterprise's"],
    ['a sidecar lives', counted(account.minutes, 'minute')],
    ['keys', account.keys === null ? 'read from the issuer' : `${account.keys.length} stored`],
    ['sidecars', stateOf(account)],
    ['created', account.created_at],
    ['last joined', account.last_joined_at ?? 'never'],
  ];
  const columns = [0, 1].map((at) => ({ title: '', cell: (row: readonly string[]) => row[at] ?? '' }));
  print.data(account, () => formatRows(rows, columns, { table: print.person, paint: print.paint, empty: '' }));
}

async function setSuspended({ context, options, print, args }: Call, suspended: boolean): Promise<undefined> {
  const client = controlClient(context, options);
  const account = await findAccount(client, args[0] ?? '');
  const { id, name, issuer, audience, claims, reach, minutes, keys, revision: ifMatch } = account;
  const body = { name, issuer, audience, claims, reach, minutes, ...(keys !== null && { keys }), suspended };
  const changed = await client.call('PUT', `${PATH}/${id}`, serviceAccountRecord, { body, ifMatch });
  print.line(changed, suspended ? `${id} is suspended; its sidecars have ended` : `jobs of ${id} can join again`);
}

async function removeAccount({ context, options, print, args }: Call<RemoveOptions>): Promise<undefined> {
  const client = controlClient(context, options);
  const { id, name, live_sidecars: live } = await findAccount(client, args[0] ?? '');
  if (options.yes !== true) {
    print.note(`${name} has ${live} live sidecars, which end; its secrets and bindings are deleted.`);
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    if (!isYes(await askOrStop(context, `Remove the service account ${name}? [y/N] `))) {
      throw new CliError(EXIT.failed, 'nothing was changed');
    }
  }
  await client.callEmpty('DELETE', `${PATH}/${id}`);
  print.line({ removed: id }, `removed ${id}`);
}

/** The service account with this id or name. */
async function findAccount(client: HttpClient, idOrName: string): Promise<ServiceAccountRecord> {
  const all = await fetchAllPages(client, PATH, serviceAccountsPage, {});
  const wanted = idOrName.toLowerCase();
  const byId = all.filter(({ id }) => id === idOrName);
  // An id is not also looked for among the names, which others write.
  const found = byId.length > 0 ? byId : all.filter(({ name }) => name.toLowerCase() === wanted);
  return pickNamed(idOrName, all, found, {
    nameOf: ({ name }) => name,
    line: ({ id, name }) => `${id}  ${name}`,
    none: `there is no service account ${JSON.stringify(idOrName)}`,
    hint: '`svc service-account list` shows them.',
    plural: 'service accounts',
  });
}
