import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { ConnectorSpecRecord } from '../../shared/wire/connectors/connector_spec.ts';
import type { Call } from '../command_line.ts';
import { parseSpec } from './connector_spec_input.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import type { Column } from '../terminal/output.ts';

const FOLDER = ['catalog', 'connectors'];

/** A connector of this checkout's catalog. */
interface CatalogEntry {
  readonly name: string;
  readonly spec: ConnectorSpecRecord;
}

/** The names of the connectors in the catalog. */
export function catalogNames(root: string): readonly string[] {
  const files = readdirSync(join(root, ...FOLDER)).filter((file) => file.endsWith('.yaml'));
  return files.map((file) => file.slice(0, -'.yaml'.length)).toSorted();
}

/** The text of a connector in the catalog; the error suggests the nearest name. */
export function catalogText(root: string, name: string): string {
  const names = catalogNames(root);
  if (names.includes(name)) return readFileSync(join(root, ...FOLDER, `${name}.yaml`), 'utf8');
  const near = nearMatch(name, names);
  throw new CliError(EXIT.usage, `the catalog has no connector ${JSON.stringify(name)}`, [
    ...(near === null ? [] : [`Did you mean ${near}?`]),
    '`svc connector catalog` lists them. To name a file, write its folder or extension, such as ./mine.yaml.',
  ]);
}

function loadEntry(root: string, name: string): CatalogEntry {
  const parsed = parseSpec(catalogText(root, name));
  if (parsed.ok) return { name, spec: parsed.value };
  throw new CliError(
    EXIT.failed,
    `the connector ${name} in the catalog is damaged: get a complete checkout`,
    parsed.error,
  );
}

const COLUMNS: readonly Column<CatalogEntry>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'SERVICE', cell: ({ spec }) => spec.connector.title },
  { title: 'CREDENTIAL', cell: ({ spec }) => spec.credential.kind },
  { title: 'OPERATIONS', cell: ({ spec }) => String(spec.operations.length) },
  { title: 'NEED APPROVAL', cell: ({ spec }) => String(approvals(spec)) },
  { title: 'HOSTS', cell: ({ spec }) => spec.hosts.join(' ') },
];

function approvals({ operations }: ConnectorSpecRecord): number {
  return operations.filter(({ approval }) => approval === 'required').length;
}

/** `svc connector catalog [NAME]`. */
export async function showCatalog(call: Call): Promise<undefined> {
  const [name] = call.args;
  const { root } = call.context;
  if (name !== undefined) {
    const text = catalogText(root, name);
    call.print.data(call.print.json ? parse(text) : null, () => text);
    return Promise.resolve(undefined);
  }
  const entries = catalogNames(root).map((each) => loadEntry(root, each));
  call.print.rows({ items: entries.map(entryJson) }, entries, COLUMNS, 'This checkout has no catalog of connectors.');
  return Promise.resolve(undefined);
}

function entryJson({ name, spec }: CatalogEntry): object {
  const { connector, hosts, credential, operations } = spec;
  return { name, ...connector, hosts, credential, operation_count: operations.length, approval_count: approvals(spec) };
}
