import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { stringify } from 'yaml';
import type { CredentialKind } from '../../shared/model/connector.ts';
import {
  toConnectorSpec,
  type ConnectorSpecInput,
  type ConnectorSpecRecord,
} from '../../shared/wire/connectors/connector_spec.ts';
import { operationsOfOpenApi, type OpenApiOperations } from './openapi_operations.ts';
import { readOpenApi } from './read_openapi.ts';
import type { Call } from '../command_line.ts';
import { checkSpec, readInput } from './connector_spec_input.ts';
import { overlapWarnings } from './connector_overlaps.ts';
import { withProgress } from './connector_progress.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column } from '../terminal/output.ts';
import { counted } from '../../shared/model/sentence.ts';

export interface FromOpenApiOptions {
  readonly list?: boolean;
  readonly fqn?: string;
  readonly select?: readonly string[];
  readonly all?: boolean;
  readonly host?: readonly string[];
  readonly credential: CredentialKind;
  readonly approve?: readonly string[];
  readonly output?: string;
}

type OperationDraft = OpenApiOperations['operations'][number];

/** The largest published documents of well-known services are about 12 MB. */
const MAX_DOCUMENT_BYTES = 32 * 1024 * 1024;

/** `svc connector from-openapi FILE`: writes a spec to stdout or a file. Its comments list what could not be converted. */
export async function fromOpenApi(call: Call<FromOpenApiOptions>): Promise<undefined> {
  const { options, print } = call;
  const [file = ''] = call.args;
  const text = await readInput(call.context, file, MAX_DOCUMENT_BYTES);
  const read = await withProgress(print, `reading ${file} ...`, readOpenApi(text));
  if (!read.ok) throw new CliError(EXIT.failed, `${file} ${toPrintable(read.error)}`);
  if (options.list === true) listOperations(call, read.value);
  else writeSpec(call, read.value);
}

function writeSpec(call: Call<FromOpenApiOptions>, document: unknown): void {
  const { options, print } = call;
  const made = selectOperations(document, options);
  const drafts = withApprovals(made.operations, options.approve ?? []);
  const { spec, skipped } = usableSpec(draftSpec(options, made, drafts), made.skipped);
  for (const warning of overlapWarnings(toConnectorSpec(spec))) print.warn(toPrintable(warning));
  const yaml = `${formatComments(skipped, made.notes)}${stringify(dropDefaults(spec))}`;
  write(call, spec, yaml, skipped.length);
}

const COLUMNS: readonly Column<OperationDraft>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'METHOD', cell: ({ method }) => method },
  { title: 'PATH', cell: ({ path }) => path },
  { title: 'EFFECT', cell: ({ effect }) => effect },
  { title: 'SUMMARY', cell: ({ summary }) => summary ?? '' },
];

function listOperations({ print }: Call, document: unknown): void {
  const { operations, skipped } = operationsOfOpenApi(document, () => true);
  print.rows(
    { items: operations, skipped },
    operations,
    COLUMNS,
    'None of the operations in the document can be expressed in a spec.',
  );
  for (const { operation, reason } of skipped) print.note(toPrintable(`left out: ${operation}: ${reason}`));
}

function selectOperations(document: unknown, { select = [], all }: FromOpenApiOptions): OpenApiOperations {
  if (select.length > 0 === (all === true)) {
    throw new CliError(EXIT.usage, 'choose the operations: --select NAME for each, or --all', [
      '`svc connector from-openapi FILE --list` lists them.',
    ]);
  }
  const known = new Set<string>();
  operationsOfOpenApi(document, (operation) => known.add(operation) && false);
  const missing = select.filter((operation) => !known.has(operation));
  if (missing.length > 0) {
    const lines = missing.map((operation) => formatUnknown('--select', operation, [...known]));
    throw new CliError(EXIT.usage, 'the document does not have these operations:', lines);
  }
  return operationsOfOpenApi(document, (operation) => all === true || select.includes(operation));
}

function formatUnknown(flag: string, operation: string, known: readonly string[]): string {
  const near = nearMatch(operation, known);
  return toPrintable(`${flag} ${operation}${near === null ? '' : `: did you mean ${JSON.stringify(near)}?`}`);
}

function withApprovals(operations: readonly OperationDraft[], approve: readonly string[]): readonly OperationDraft[] {
  const names = operations.map(({ name }) => name);
  const missing = approve.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    const lines = missing.map((name) => formatUnknown('--approve', name, names));
    throw new CliError(EXIT.usage, '--approve names operations that are not selected:', lines);
  }
  return operations.map((operation) =>
    approve.includes(operation.name) ? { ...operation, approval: 'required' } : operation,
  );
}

function draftSpec(
  { fqn, host, credential }: FromOpenApiOptions,
  made: OpenApiOperations,
  operations: readonly OperationDraft[],
): ConnectorSpecInput {
  if (fqn === undefined)
    throw new CliError(EXIT.usage, '--fqn is missing: give the connector a name, such as --fqn acme/items');
  const hosts = [...(host ?? made.hosts)];
  if (hosts.length === 0) {
    throw new CliError(EXIT.failed, 'the document names no https server', ['Give the host: --host api.example.com']);
  }
  if (operations.length === 0) {
    const lines = made.skipped.map(({ operation, reason }) => toPrintable(`${operation}: ${reason}`));
    throw new CliError(EXIT.failed, 'none of these operations can be converted:', lines);
  }
  const version = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/.test(made.version) ? made.version : '1.0.0';
  const title = made.title.slice(0, 200) || fqn;
  return {
    schema_version: 1,
    connector: { fqn, version, title },
    hosts,
    credential: { kind: credential },
    operations: [...operations],
  };
}

type Skipped = OpenApiOperations['skipped'];

/** The spec without the operations that would make it invalid; each of those is skipped with the reason. */
function usableSpec(
  draft: ConnectorSpecInput,
  before: Skipped,
): { readonly spec: ConnectorSpecRecord; readonly skipped: Skipped } {
  const checkAlone = (operation: OperationDraft): readonly string[] => {
    const checked = checkSpec({ ...draft, operations: [operation] });
    return checked.ok ? [] : checked.error.filter((line) => line.startsWith('operations[0]'));
  };
  const judged = draft.operations.map((operation) => ({ operation, problems: checkAlone(operation) }));
  const refused = judged.filter(({ problems }) => problems.length > 0);
  const operations = judged.filter(({ problems }) => problems.length === 0).map(({ operation }) => operation);
  const skipped = refused.map(({ operation, problems }) => ({
    operation: operation.name,
    reason: problems.join('; '),
  }));
  return { spec: validSpec({ ...draft, operations }), skipped: [...before, ...skipped] };
}

function validSpec(draft: ConnectorSpecInput): ConnectorSpecRecord {
  const checked = checkSpec(draft);
  if (checked.ok) return checked.value;
  throw new CliError(EXIT.failed, 'the spec of these operations would be invalid:', checked.error);
}

/** Removes fields that have their default value. */
function dropDefaults(spec: ConnectorSpecRecord): object {
  const operations = spec.operations.map((operation) => ({
    ...withoutEmpty(operation),
    ...(operation.inputs.length > 0 && { inputs: operation.inputs.map(withoutEmpty) }),
    ...(operation.audit.length > 0 && { audit: operation.audit.map(withoutEmpty) }),
  }));
  const credential = withoutEmpty(spec.credential);
  return { ...spec, connector: withoutEmpty(spec.connector), credential, operations };
}

function withoutEmpty(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));
}

function isDefault(value: unknown): boolean {
  return value === '' || value === false || value === 'none' || (Array.isArray(value) && value.length === 0);
}

function formatComments(skipped: Skipped, notes: readonly string[]): string {
  const left = skipped.map(({ operation, reason }) => `left out: ${operation}: ${reason}`);
  return [...left, ...notes].map((line) => `# ${toPrintable(line)}\n`).join('');
}

function write(call: Call<FromOpenApiOptions>, spec: ConnectorSpecRecord, yaml: string, skippedCount: number): void {
  const { output } = call.options;
  const { operations } = spec;
  if (output === undefined) call.print.data(dropDefaults(spec), () => yaml);
  else {
    writeNew(call, output, yaml);
    const written = { output, operation_count: operations.length, skipped_count: skippedCount };
    call.print.data(written, () => `wrote ${output}: review it, then run \`svc connector install ${output}\`\n`);
  }
  const left = skippedCount === 0 ? '' : `, ${skippedCount} left out (the comments say why)`;
  call.print.note(
    `${counted(operations.length, 'operation')}${left}. Review the effect of each operation; only those named by --approve need an approval.`,
  );
}

/** An existing file is never overwritten: it may be a reviewed spec. */
function writeNew(call: Call, name: string, text: string): void {
  try {
    writeFileSync(resolve(call.context.workingDirectory, name), text, { flag: 'wx' });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(EXIT.failed, `${name} was not written: ${why}`);
  }
}
