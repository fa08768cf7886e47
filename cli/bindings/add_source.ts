import { sourcePlan, type SourcePlan, sourceRecord } from '../../shared/wire/secret_sources.ts';
import { choicesOf, formOf, isNeeded, readField } from '../../shared/wire/sources/field_form.ts';
import {
  fieldsOf,
  isSourceKind,
  type MintedSource,
  isMinted,
  secretSource,
  SOURCE_KINDS,
  type SourceKind,
  sourceKeyName,
} from '../../shared/wire/sources/source_table.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSecret, requireSource } from '../terminal/read_secret.ts';
import type { AddSourceOptions } from './source_options.ts';

/** Where the value is that is minted from now on, and the kind of its source. `more`: words that should not be there. */
interface SourcePlace {
  readonly path: string;
  readonly owner: string | undefined;
  readonly kind: string;
  readonly more: readonly string[];
}

/** Stores a source, or only says what it would mint. */
export async function addSourceAt(
  call: Call<AddSourceOptions>,
  { path, owner, kind, more }: SourcePlace,
): Promise<undefined> {
  const { options, print } = call;
  if (more.length > 0 || options.value !== undefined) {
    const why = 'the process list and the shell history would show it';
    throw new CliError(EXIT.usage, `the key of a source cannot be given on the command line: ${why}`, [
      'Type it at the prompt, pipe it (--stdin), or read it from a file (--file FILE).',
      'If it was the key, treat it as exposed: replace it at the provider.',
    ]);
  }
  const source = readSource(kind, options.set ?? []);
  if (options.dryRun === true) {
    await planNewSource(call, source);
    return;
  }
  requireSource(call.context, options);
  if (print.person) call.context.stderr.write(`The ${sourceKeyName(source)} of the source:\n`);
  const key = await readSecret(call.context, options);
  const described = options.description === undefined ? {} : { description: options.description };
  const body = { path, owner, source, key, ...described };
  const record = await controlClient(call.context, options).call('POST', '/v1/secret-sources', sourceRecord, { body });
  const next = `try it with: svc secret source test ${path}`;
  print.data(record, () => `${print.person ? `${record.ref} is minted from now on; ${next}` : record.ref}\n`);
}

/** The key is checked if it is piped or in a file; a dry run does not ask for it. */
async function planNewSource(
  { context, options, print }: Call<AddSourceOptions>,
  source: MintedSource,
): Promise<undefined> {
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

/** What a mint would ask for, for a person. */
export function planText(plan: SourcePlan): string {
  const { provider_url: url, life_seconds: seconds, until_at_latest: until, audience, scope } = plan;
  const lines = [
    `value: ${PLANNED_VALUES[plan.value]}${plan.minted_for}`,
    `speaks for: ${plan.identity}`,
    `scope: ${scope.length === 0 ? 'whatever the provider gives it' : scope.join(', ')}`,
    ...(audience === null ? [] : [`audience: ${audience}`]),
    `asked of: ${url ?? 'nobody; the source signs it'}`,
    `until: ${seconds === null ? `the provider decides; ${until} at the latest` : until}`,
    `key: ${plan.key_checked ? 'it has the form that is needed' : 'not checked'}`,
  ];
  return `would be minted; nothing was asked or stored:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** The source that a kind and its fields say. */
function readSource(kind: string, set: readonly string[]): MintedSource {
  if (!isSourceKind(kind)) {
    throw new CliError(
      EXIT.usage,
      `${JSON.stringify(kind)} is no kind of source: write one of ${SOURCE_KINDS.join(', ')}`,
    );
  }
  const given: Readonly<Record<string, unknown>> = Object.fromEntries(set.map((text) => readAssignment(kind, text)));
  requireFields(kind, given);
  const read = secretSource.safeParse({ kind, ...given });
  if (read.success && isMinted(read.data)) return read.data;
  const [issue] = read.error?.issues ?? [];
  const field = issue?.path.join('.') ?? '';
  const message = issue?.message ?? '';
  throw new CliError(EXIT.usage, `the field ${field} of the source: ${message}`, [
    `Give it with --set ${field}=VALUE. The fields of ${kind}: ${Object.keys(fieldsOf(kind)).join(', ')}.`,
  ]);
}

/** Names all fields that are missing at once, and says what each field of the kind is. */
function requireFields(kind: SourceKind, given: Readonly<Record<string, unknown>>): void {
  const fields = Object.entries(fieldsOf(kind));
  const needed = fields.filter(([, { schema }]) => isNeeded(schema)).map(([name]) => name);
  const missing = needed.filter((name) => !Object.hasOwn(given, name));
  if (missing.length === 0) return;
  const about = fields.map(([name, { schema, label, hint = choicesOf(schema)?.join(', ') }]) => {
    return `${name}${needed.includes(name) ? ' (needed)' : ''}: ${hint === undefined ? label : `${label}. ${hint}`}`;
  });
  const options = missing.map((name) => `--set ${name}=VALUE`).join(' ');
  throw new CliError(EXIT.usage, `a source of the kind ${kind} needs more fields: add ${options}`, about);
}

function readAssignment(kind: SourceKind, text: string): [string, unknown] {
  const fields = new Map(Object.entries(fieldsOf(kind)));
  const end = text.indexOf('=');
  const name = text.slice(0, Math.max(0, end));
  const value = text.slice(end + 1);
  const field = fields.get(name);
  if (field === undefined) {
    // Not quoted: it may be the key itself.
    const names = [...fields.keys()].join(', ');
    throw new CliError(
      EXIT.usage,
      `a value of --set names no field of ${kind}: write FIELD=VALUE with one of ${names}`,
    );
  }
  return [name, readField(formOf(field.schema), value)];
}
