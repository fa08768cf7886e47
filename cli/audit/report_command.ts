import {
  ownReleases,
  sealabilityOf,
  type Sealability,
  type SealabilityFacts,
  UNSEALED_EVENT,
} from '../../shared/report/sealability.ts';
import { readAuditEventsPage } from '../../shared/wire/audit_events.ts';
import { connectorsPage } from '../../shared/wire/connectors/connectors.ts';
import { hostBindingsPage } from '../../shared/wire/host_bindings.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { loadTemplates } from '../bindings/binding_templates.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { formatRows, type Column, type Printer } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

interface ReportOptions {
  readonly failOnUnsealed?: boolean;
}

/** `svc report ...`. */
export function addReportCommand(line: CommandLine): void {
  const report = line.program.command('report').description('reports on everything that you own');
  const sealability = report
    .command('sealability')
    .description('list every credential: how it is sealed, or why it is not sealed and how to fix that')
    .option('--fail-on-unsealed', 'exit with 1 if a credential is not sealed');
  handle<ReportOptions>(line, sealability, reportSealability);
}

async function reportSealability(call: Call<ReportOptions>): Promise<number> {
  const client = controlClient(call.context, call.options);
  const items = sealabilityOf(await readFacts(client, call.context.root));
  const open = items.filter((item) => !item.sealed).length;
  const report = { items, sealed: items.length - open, not_sealed: open };
  call.print.data(report, () => reportText(items, call.print));
  return call.options.failOnUnsealed === true && open > 0 ? EXIT.failed : EXIT.ok;
}

async function readFacts(client: HttpClient, root: string): Promise<SealabilityFacts> {
  const [secrets, bindings, connectors, sidecars, events] = await Promise.all([
    fetchAllPages(client, '/v1/secrets', secretsPage),
    fetchAllPages(client, '/v1/host-bindings', hostBindingsPage),
    fetchAllPages(client, '/v1/connectors', connectorsPage),
    fetchAllPages(client, '/v1/sidecars', sidecarsPage),
    fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, { type: UNSEALED_EVENT }),
  ]);
  const releases = ownReleases(
    events,
    sidecars.map(({ id }) => id),
  );
  return { secrets, bindings, connectors, releases, templates: loadTemplates(root) };
}

const COLUMNS: readonly Column<Sealability>[] = [
  { title: 'CREDENTIAL', cell: (item) => item.ref },
  { title: 'OWNER', cell: (item) => item.owner },
  {
    title: 'SEALED',
    cell: (item) => (item.sealed ? 'yes' : 'no'),
    style: (item) => (item.sealed ? 'green' : item.unsealed === null ? 'yellow' : 'red'),
  },
  { title: 'HOW, OR WHY NOT', cell: detailOf },
];
const ADVICE: Column<Sealability> = { title: 'HOW TO SEAL IT', cell: ({ how_to_seal: lines }) => lines.join('; ') };

const KEPT_FOR = { connector: 'the credential of a connector', mcp_server: 'a credential of an MCP server' } as const;

function detailOf({ bindings, kept_for: keptFor, unsealed }: Sealability): string {
  const bound = bindings.map(({ host, scheme, emit_mechanism: emit }) => `${host} (${scheme}, ${emit})`).join(', ');
  if (unsealed === null) {
    const users = [...(bound === '' ? [] : [bound]), ...(keptFor === null ? [] : [KEPT_FOR[keptFor]])];
    return users.length === 0 ? 'no binding names it' : users.join('; ');
  }
  const { time, host, image, reason } = unsealed;
  const where = image === null ? '' : ` to a container of ${image}`;
  const handedOut = `handed out unsealed at ${time}${where} for ${host ?? 'no host'}: ${reason ?? 'no reason given'}`;
  return bound === '' ? handedOut : `${handedOut}; bound to ${bound}`;
}

/** For a person: a table and what to do. For a program: one line per credential. */
function reportText(items: readonly Sealability[], { person, paint }: Printer): string {
  const columns = person ? COLUMNS : [...COLUMNS, ADVICE];
  const rows = formatRows(items, columns, { table: person, paint, empty: 'No secrets yet: svc secret set user/demo' });
  const open = items.filter((item) => !item.sealed);
  if (!person || open.length === 0) return rows;
  const advice = open.flatMap(({ ref, how_to_seal: lines }) => [
    `${toPrintable(ref)}:`,
    ...lines.map((each) => `  ${toPrintable(each)}`),
  ]);
  return `${rows}\n${paint('bold', 'How to seal')}\n${advice.join('\n')}\n`;
}
