import { TESTED_LEFT } from '../../shared/wire/sources/tested_left.ts';
import type { Command } from 'commander';
import { parseSourcePath } from '../../shared/model/source_kind.ts';
import { SOURCE_KINDS } from '../../shared/wire/sources/source_table.ts';
import { sourcePlan, type SourceRecord, sourceTestReply } from '../../shared/wire/secret_sources.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { type OwnerOption, ownerFilter, ownerOption } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { addSourceAt, planText } from './add_source.ts';
import { fetchSources } from './fetch_sources.ts';
import { removeSecret } from './remove_secret.ts';
import { type AddSourceOptions, withSourceOptions } from './source_options.ts';

type AddOptions = AddSourceOptions & OwnerOption;
type TestOptions = OwnerOption & { readonly dryRun?: true };

const PATH = 'path in the vault, such as ci/github';

/** `svc secret source ...`. */
export function addSourceCommands(line: CommandLine, secret: Command): void {
  const source = secret.command('source').description('secrets whose value a provider mints when it is needed');
  const add = withSourceOptions(
    source
      .command('add')
      .description('have the value at a path minted; the key of the source is read like a secret')
      .argument('<path>', PATH)
      .argument('<kind>', SOURCE_KINDS.join(', ')),
  ).addOption(ownerOption('owner of the secret').default('personal'));
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
  const path = parseSourcePath((call.args[0] ?? '').replace(/^vault:\/\//, ''));
  if (!path.ok) throw new CliError(EXIT.usage, path.error.message);
  return path.value;
}

function addSource(call: Call<AddOptions>): Promise<undefined> {
  const [, kind = '', ...more] = call.args;
  return addSourceAt(call, { path: pathOf(call), owner: call.options.owner, kind, more });
}

async function listSources(call: Call<OwnerOption>): Promise<undefined> {
  const items = await fetchSources(controlClient(call.context, call.options), call.options.owner);
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
  const all = await fetchSources(controlClient(call.context, call.options), call.options.owner);
  const found = all.filter((row) => row.path === path);
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
  const left = TESTED_LEFT[tried.left ?? 'kept'];
  call.print.data(tried, () => `a value for ${tried.minted_for}, until ${tried.until}; ${left}\n`);
}
