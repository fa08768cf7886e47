import type { Command } from 'commander';
import { hostBindingRecord } from '../../shared/wire/host_binding.ts';
import { hostBindingsPage } from '../../shared/wire/host_bindings.ts';
import { parseBindingFile, planChanges, type Change } from './binding_file.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readTextFile } from '../terminal/read_text_file.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { warnOfMissingSecrets } from './missing_secrets.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Paint } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

interface ApplyOptions {
  readonly file: string;
  readonly dryRun?: boolean;
}

/** `svc binding apply -f FILE`. */
export function addApplyCommand(line: CommandLine, binding: Command): void {
  const apply = binding
    .command('apply')
    .description('create and update bindings from a YAML file and show the changes; deletes nothing')
    .requiredOption('-f, --file <file>', 'the file; - is stdin')
    .option('--dry-run', 'only show what would change');
  handle<ApplyOptions>(line, apply, applyFile);
}

async function applyFile(call: Call<ApplyOptions>): Promise<undefined> {
  const { options, print } = call;
  const parsed = parseBindingFile(await readTextFile(call.context, options.file));
  if (!parsed.ok) throw new CliError(EXIT.failed, `${options.file} was not applied:`, parsed.error);
  const client = controlClient(call.context, options);
  const changes = planChanges(await fetchAllPages(client, '/v1/host-bindings', hostBindingsPage), parsed.value);
  if (options.dryRun !== true) await carryOut(client, changes);
  print.data({ dry_run: options.dryRun === true, changes }, () =>
    changes.map((change) => changeText(change, print.paint)).join(''),
  );
  await warnOfMissingSecrets(client, parsed.value, print);
}

async function carryOut(client: HttpClient, changes: readonly Change[]): Promise<void> {
  for (const change of changes) {
    const body = change.binding;
    if (change.kind === 'create') await client.call('POST', '/v1/host-bindings', hostBindingRecord, { body });
    if (change.kind === 'update') {
      const path = `/v1/host-bindings/${change.id}`;
      await client.call('PUT', path, hostBindingRecord, { body, ifMatch: change.revision });
    }
  }
}

const MARKS = {
  create: ['green', '+ create'],
  update: ['yellow', '~ update'],
  unchanged: ['dim', '= unchanged'],
} as const;

/** One line for the binding and one for each changed field. */
function changeText(change: Change, paint: Paint): string {
  const [style, mark] = MARKS[change.kind];
  const heading = paint(style, `${mark} ${toPrintable(change.binding.host)} (${change.binding.scheme})`);
  const fields = change.kind === 'update' ? change.fields : [];
  const lines = fields.map(({ field, from, to }) => `    ${field}: ${valueText(from)} -> ${valueText(to)}`);
  return [heading, ...lines].map((line) => `${line}\n`).join('');
}

function valueText(value: unknown): string {
  return value === undefined ? '(none)' : toPrintable(JSON.stringify(value));
}
