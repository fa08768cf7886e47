import type { Command } from 'commander';
import { BORROWED_KIND, SOURCE_KINDS, type SourceKind } from '../../shared/model/source_kind.ts';
import { parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import {
  type FieldForm,
  readSourceField,
  secretSource,
  SOURCE_FIELDS,
  sourceKeyName,
  sourcePlan,
  type SourcePlan,
  type MintedSource,
  type SourceRecord,
  sourceRecord,
  sourceTestReply,
} from '../../shared/wire/secret_sources.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { type OwnerOption, ownerFilter, ownerOption, withSecretSource } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSecret, requireSource, type SecretSource as KeyInput } from '../terminal/read_secret.ts';
import { fetchSources } from './fetch_sources.ts';
import { removeSecret } from './remove_secret.ts';

type AddOptions = KeyInput &
  OwnerOption & {
    readonly set?: readonly string[];
    readonly value?: unknown;
    readonly description?: string;
    readonly dryRun?: true;
  };
type TestOptions = OwnerOption & { readonly dryRun?: true };

const PATH = 'path in the vault, such as ci/github';

/** `svc secret source ...`. */
export function addSourceCommands(line: CommandLine, secret: Command): void {
  const source = secret.command('source').description('secrets whose value a provider mints when it is needed');
  const add = withSecretSource(
    source
      .command('add')
      .description('have the value at a path minted; the key of the source is read like a secret')
      .argument('<path>', PATH)
      .argument('<kind>', SOURCE_KINDS.join(', '))
      .option('--set <field=value...>', 'a field of the source, such as scopes=a,b or permissions=contents=read'),
  )
    .option('--description <text>', 'what it is for')
    .addOption(ownerOption('owner of the secret').default('personal'))
    .option('--dry-run', 'say what would be minted; store nothing and ask no provider');
  handle<AddOptions>(line, add, addSource);
  const show = source.command('show').description('show one source').argument('<path>', PATH).addOption(ownerFilter());
  handle<OwnerOption>(line, show, showSource);
  const list = source.command('list').alias('ls').description('list the sources').addOption(ownerFilter());
  handle<OwnerOption>(line, list, listSources);
  const test = source
    .command('test')
    .description('mint a value and discard it: shows what it is for and until when')
    .argument('<path>', PATH)
    .addOption(ownerOption('owner of the secret').default('personal'))
    .option('--dry-run', 'say what would be minted, and ask no provider');
  handle<TestOptions>(line, test, testSource);
  const remove = source
    .command('rm')
    .description('delete a source with its secret; fails while a binding uses it')
    .argument('<path>', PATH)
    .addOption(ownerOption('owner of the secret').default('personal'));
  handle<OwnerOption>(line, remove, removeSecret);
}

function pathOf(call: Pick<Call, 'args'>): string {
  const path = parseOwnVaultPath((call.args[0] ?? '').replace(/^vault:\/\//, ''));
  if (!path.ok) throw new CliError(EXIT.usage, path.error.message);
  return path.value;
}

async function addSource(call: Call<AddOptions>): Promise<undefined> {
  const { options, print } = call;
  const path = pathOf(call);
  if (call.args.length > 2 || options.value !== undefined) {
    const why = 'the process list and the shell history would show it';
    throw new CliError(EXIT.usage, `the key of a source cannot be given on the command line: ${why}`, [
      'Type it at the prompt, pipe it (--stdin), or read it from a file (--file FILE).',
      'If it was the key, treat it as exposed: replace it at the provider.',
    ]);
  }
  const source = readSource(call.args[1] ?? '', options.set ?? []);
  if (options.dryRun === true) {
    await planNewSource(call, source);
    return;
  }
  requireSource(call.context, options);
  if (print.person) call.context.stderr.write(`The ${sourceKeyName(source)} of the source:\n`);
  const key = await readSecret(call.context, options);
  const described = options.description === undefined ? {} : { description: options.description };
  const body = { path, owner: options.owner, source, key, ...described };
  const record = await controlClient(call.context, options).call('POST', '/v1/secret-sources', sourceRecord, { body });
  const next = `try it with: svc secret source test ${path}`;
  print.data(record, () => `${print.person ? `${record.ref} is minted from now on; ${next}` : record.ref}\n`);
}

/** The key is checked if it is piped or in a file; a dry run does not ask for it. */
async function planNewSource({ context, options, print }: Call<AddOptions>, source: MintedSource): Promise<undefined> {
  const isGiven = options.stdin === true || options.file !== undefined;
  const key = isGiven ? { key: await readSecret(context, options) } : {};
  const body = { source, ...key };
  const plan = await controlClient(context, options).call('POST', '/v1/secret-sources/dry-run', sourcePlan, { body });
  print.data(plan, () => planText(plan));
}

const PLANNED_VALUES: { readonly [V in SourcePlan['value']]: string } = {
  token: 'a token for ',
  key_set: 'a key set of AWS for ',
  kept_value: '',
};

function planText(plan: SourcePlan): string {
  const { provider_url: url, life_seconds: seconds, until_at_latest: until, audience, scope } = plan;
  const lines = [
    `value: ${PLANNED_VALUES[plan.value]}${plan.minted_for}`,
    `speaks for: ${plan.identity}`,
    `scope: ${scope.length === 0 ? 'whatever the provider gives it' : scope.join(', ')}`,
    ...(audience === null ? [] : [`audience: ${audience}`]),
    `asked of: ${url ?? 'nobody; the source signs it'}`,
    `until: ${seconds === null ? `the provider decides; ${until} at the latest` : until}`,
    ...(plan.key_checked ? ['key: it can be used'] : []),
  ];
  return `would be minted; nothing was asked or stored:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** The source that a kind and its fields say. */
function readSource(kind: string, set: readonly string[]): MintedSource {
  const known = SOURCE_KINDS.find((name) => name === kind);
  if (known === undefined) {
    throw new CliError(
      EXIT.usage,
      `${JSON.stringify(kind)} is no kind of source: write one of ${SOURCE_KINDS.join(', ')}`,
    );
  }
  const read = secretSource.safeParse({
    kind: known,
    ...Object.fromEntries(set.map((text) => readField(known, text))),
  });
  if (read.success && read.data.kind !== BORROWED_KIND) return read.data;
  const [issue] = read.error?.issues ?? [];
  const field = issue?.path.join('.') ?? '';
  const message = issue?.message ?? '';
  throw new CliError(EXIT.usage, `the field ${field} of the source: ${message}`, [
    `Give it with --set ${field}=VALUE. The fields of ${known}: ${Object.keys(SOURCE_FIELDS[known]).join(', ')}.`,
  ]);
}

function readField(kind: SourceKind, text: string): [string, unknown] {
  const forms: Readonly<Record<string, FieldForm>> = SOURCE_FIELDS[kind];
  const end = text.indexOf('=');
  const name = text.slice(0, Math.max(0, end));
  const value = text.slice(end + 1);
  const form = forms[name];
  if (form === undefined) {
    // Not quoted: it may be the key itself.
    const fields = Object.keys(forms).join(', ');
    throw new CliError(
      EXIT.usage,
      `a value of --set names no field of ${kind}: write FIELD=VALUE with one of ${fields}`,
    );
  }
  return [name, readSourceField(form, value)];
}

async function listSources(call: Call<OwnerOption>): Promise<undefined> {
  const items = await fetchSources(call);
  const columns = [
    { title: 'REFERENCE', cell: (row: SourceRecord) => row.ref },
    { title: 'OWNER', cell: (row: SourceRecord) => row.owner },
    { title: 'KIND', cell: (row: SourceRecord) => row.source.kind },
    { title: 'VALUE UNTIL', cell: (row: SourceRecord) => row.minted?.until ?? '-' },
    { title: 'LAST FAILURE', cell: (row: SourceRecord) => row.failure?.message ?? '' },
  ];
  call.print.rows({ items }, [...items], columns, 'No sources yet: svc secret source add --help');
}

async function showSource(call: Call<OwnerOption>): Promise<undefined> {
  const path = pathOf(call);
  const found = (await fetchSources(call)).filter((row) => row.path === path);
  const [record] = found;
  if (record === undefined) {
    throw new CliError(EXIT.failed, `vault://${path} has no source: list them with svc secret source list`);
  }
  call.print.data(found.length === 1 ? record : { items: found }, () => found.map(sourceText).join('\n'));
}

function sourceText({
  ref,
  owner,
  source,
  minted,
  last_minted_at: mintedAt,
  failure,
  description,
}: SourceRecord): string {
  const { kind, ...fields } = source;
  const lines = Object.entries(fields).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const held = minted === null ? 'none is held now' : `for ${minted.for}, until ${minted.until}`;
  const failed = failure === null ? [] : [`last failure: ${failure.message} (${failure.at})`];
  const about = description === null ? [] : [`description: ${description}`];
  return `${[`${ref} (${owner}): ${kind}`, ...about, ...lines, `value: ${held}`, `last minted: ${mintedAt ?? 'not yet'}`, ...failed].join('\n  ')}\n`;
}

async function testSource(call: Call<TestOptions>): Promise<undefined> {
  const body = { path: pathOf(call), owner: call.options.owner };
  const client = controlClient(call.context, call.options);
  if (call.options.dryRun === true) {
    const plan = await client.call('POST', '/v1/secret-sources/dry-run', sourcePlan, { body });
    call.print.data(plan, () => planText(plan));
    return;
  }
  const tried = await client.call('POST', '/v1/secret-sources/test', sourceTestReply, { body });
  call.print.data(tried, () => `a value for ${tried.minted_for}, until ${tried.until}; it was discarded\n`);
}
