import { z } from 'zod';
import { meReply } from '../../shared/wire/account.ts';
import { auditVerification } from '../../shared/wire/audit_events.ts';
import { MAX_PAGE, page } from '../../shared/wire/primitives.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** `svc export`. */
export function addExportCommand(line: CommandLine): void {
  const command = line.program
    .command('export')
    .description(
      'export everything that you and your enterprise own, one JSON document per line, without the values of secrets',
    );
  handle(line, command, exportAll);
}

/** Fields are passed on exactly as the control plane sends them. */
const record = z.looseObject({});
const identified = z.looseObject({ id: z.string() });
const records = page(record);
const sinks = z.looseObject({ items: z.array(record) });

/** The exported lists, in this order. Connectors with their specs come before them; the start and end of the audit chains come after. */
const LISTS: readonly (readonly [kind: string, path: string])[] = [
  ['secret', '/v1/secrets'],
  ['host_binding', '/v1/host-bindings'],
  ['tunnel_host', '/v1/tunnel-hosts'],
  ['client_certificate', '/v1/client-certificates'],
  ['mcp_server', '/v1/mcp-servers'],
  ['group', '/v1/groups'],
  ['share', '/v1/shares'],
  ['sidecar', '/v1/sidecars'],
  ['token', '/v1/tokens'],
  ['approval', '/v1/approvals'],
  ['approval_grant', '/v1/approval-grants'],
  ['audit_event', '/v1/audit-events'],
];

/** Lists that a control plane of an earlier version does not have, so nothing is in them. */
const MAY_BE_ABSENT: ReadonlySet<string> = new Set(['/v1/client-certificates']);

async function exportAll(call: Call): Promise<undefined> {
  await exportOwned(controlClient(call.context, call.options), (line) => call.print.raw(line));
}

/** Writes everything that the user and the enterprise of a client own, one line for each. */
export async function exportOwned(client: HttpClient, writeLine: (line: string) => void): Promise<void> {
  const write = (kind: string, item: object): void => writeLine(`${JSON.stringify({ kind, ...item })}\n`);
  const me = await client.call('GET', '/v1/me', meReply);
  write('user', me);
  write('enterprise', await client.call('GET', '/v1/enterprise', record));
  if (me.role !== 'member') {
    await exportList(client, '/v1/members', (item) => write('member', item));
    await exportList(client, '/v1/invitations', (item) => write('invitation', item));
    for (const sink of (await client.call('GET', '/v1/audit-sinks', sinks)).items) write('audit_sink', sink);
  }
  for (const id of await connectorIds(client)) {
    write('connector', await client.call('GET', `/v1/connectors/${encodeURIComponent(id)}`, record));
  }
  for (const [kind, path] of LISTS) {
    const list = exportList(client, path, (item) => write(kind, item));
    await (MAY_BE_ABSENT.has(path) ? unlessAbsent(list) : list);
  }
  const { chains, ...verification } = await client.call('GET', '/v1/audit-events/verify', auditVerification, {
    timeoutMs: VERIFY_MS,
  });
  for (const chain of chains) write('audit_chain', chain);
  write('audit_verification', verification);
}

/** Every event is read. */
const VERIFY_MS = 10 * 60_000;

/** Reads page by page: a log may be larger than memory. */
async function exportList(client: HttpClient, path: string, write: (item: object) => void): Promise<void> {
  let cursor: string | undefined;
  do {
    const found: z.infer<typeof records> = await client.call('GET', path, records, {
      query: { limit: MAX_PAGE, cursor },
    });
    for (const item of found.items) write(item);
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

async function unlessAbsent(list: Promise<void>): Promise<void> {
  try {
    await list;
  } catch (error) {
    if (!(error instanceof CliError) || error.apiCode !== 'not_found') throw error;
  }
}

async function connectorIds(client: HttpClient): Promise<string[]> {
  const ids: string[] = [];
  await exportList(client, '/v1/connectors', (item) => ids.push(identified.parse(item).id));
  return ids;
}
