import { stringify } from 'yaml';
import type { ConnectorRecord, ConnectorSummary } from '../../shared/wire/connectors/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { listAllConnectors, readConnector } from './connector_lookup.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';

/** `svc connector list`. */
export async function listConnectors(call: Call<OwnerOption>): Promise<undefined> {
  const items = await listAllConnectors(controlClient(call.context, call.options), call.options.owner);
  const columns = columnsAt(call.context.now());
  call.print.rows(
    { items },
    items,
    columns,
    'No connectors yet: svc connector catalog, then svc connector install NAME',
  );
}

function columnsAt(now: number): readonly Column<ConnectorSummary>[] {
  return [
    { title: 'CONNECTOR', cell: (row) => row.fqn },
    { title: 'VERSION', cell: (row) => row.version },
    { title: 'OWNER', cell: (row) => row.owner },
    { title: 'OPERATIONS', cell: (row) => String(row.operation_count) },
    {
      title: 'ACTIVE',
      cell: (row) => (row.active ? 'yes' : 'no'),
      style: (row) => (row.active ? null : 'yellow'),
    },
    {
      title: 'CREDENTIAL',
      cell: (row) => `${row.credential.kind}: ${stateText(row)}`,
      style: (row) => (row.credential.state === 'ready' ? null : 'yellow'),
    },
    { title: 'HOSTS', cell: (row) => row.hosts.join(' ') },
    { title: 'INSTALLED', cell: (row) => agoText(row.updated_at, now) },
    { title: 'ID', cell: (row) => row.id },
  ];
}

function stateText({ credential }: ConnectorSummary): string {
  return credential.state.replaceAll('_', ' ');
}

/** `svc connector show FQN`: prints the spec, with the fields of the installation as comments. */
export async function showConnector(call: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const record = await readConnector(client, call.args[0] ?? '', call.options.owner);
  call.print.data(record, () => `${formatHeading(record)}${stringify(record.spec)}`);
}

function formatHeading(record: ConnectorRecord): string {
  const { id, owner, active, updated_at: installed, content_hash: hash, credential } = record;
  const expires = credential.expires_at === null ? '' : `, until ${credential.expires_at}`;
  const lines = [
    `${id} (${owner}), installed ${installed}`,
    ...(active ? [] : ['inactive: it changes nothing until it has a credential']),
    `content ${hash}`,
    `credential ${credential.ref}: ${stateText(record)}${expires}`,
  ];
  return lines.map((line) => `# ${toPrintable(line)}\n`).join('');
}
