import { z } from 'zod';
import { meReply } from '../../shared/wire/account.ts';
import { auditVerification } from '../../shared/wire/audit_events.ts';
import { MAX_PAGE } from '../../shared/wire/primitives.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { type ExportedList, LISTS_AFTER, LISTS_BEFORE, MAY_BE_ABSENT } from './export_lists.ts';

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
/** A page, or a list that has only one. */
const records = z.looseObject({ items: z.array(record), next_cursor: z.string().nullish() });

async function exportAll(call: Call): Promise<undefined> {
  await exportOwned(controlClient(call.context, call.options), (line) => call.print.raw(line));
}

/** Writes everything that the user and the enterprise of a client own, one line for each. */
export async function exportOwned(client: HttpClient, writeLine: (line: string) => void): Promise<void> {
  const write: Write = (kind, item) => writeLine(`${JSON.stringify(lineOf(kind, item))}\n`);
  const me = await client.call('GET', '/v1/me', meReply);
  write('user', me);
  write('enterprise', await client.call('GET', '/v1/enterprise', record));
  const isAdmin = me.role !== 'member';
  if (isAdmin) write('mcp_rules', await client.call('GET', '/v1/mcp-rules', record));
  const listed = (list: ExportedList) => isAdmin || list.forAdmins !== true;
  for (const list of LISTS_BEFORE.filter(listed)) await exportList(client, list, write);
  for (const id of await connectorIds(client)) {
    write('connector', await client.call('GET', `/v1/connectors/${encodeURIComponent(id)}`, record));
  }
  for (const list of LISTS_AFTER.filter(listed)) {
    const exported = exportList(client, list, write);
    await (MAY_BE_ABSENT.has(list.path) ? unlessAbsent(exported) : exported);
  }
  const { chains, ...verification } = await client.call('GET', '/v1/audit-events/verify', auditVerification, {
    timeoutMs: VERIFY_MS,
  });
  for (const chain of chains) write('audit_chain', chain);
  write('audit_verification', verification);
}

/** Every event is read. */
const VERIFY_MS = 10 * 60_000;

/** The line of an item. Some items have a `kind` of their own, such as `webhook`: it is in `audit_sink_kind`, and the like. */
function lineOf(kind: string, item: object): object {
  const { kind: own, ...others }: { readonly kind?: unknown } = item;
  return { kind, ...others, ...(own !== undefined && { [`${kind}_kind`]: own }) };
}

type Write = (kind: string, item: object) => void;

/** Writes a list, and after each of its items the lists of that item. */
async function exportList(client: HttpClient, list: ExportedList, write: Write): Promise<void> {
  const { kind, path, below = [] } = list;
  for await (const item of itemsOf(client, list)) {
    write(kind, item);
    for (const each of below) {
      const { id } = identified.parse(item);
      const of = { ...each, path: `${path}/${encodeURIComponent(id)}/${each.path}` };
      for await (const inner of itemsOf(client, of)) write(each.kind, { [each.field]: id, ...inner });
    }
  }
}

/** Reads page by page: a log may be larger than memory. */
async function* itemsOf(
  client: HttpClient,
  { path, query = {}, isWhole }: Pick<ExportedList, 'path' | 'query' | 'isWhole'>,
): AsyncGenerator<object> {
  let cursor: string | undefined;
  do {
    const found: z.infer<typeof records> = await client.call('GET', path, records, {
      query: { ...query, ...(isWhole !== true && { limit: MAX_PAGE }), cursor },
    });
    yield* found.items;
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
  for await (const item of itemsOf(client, { path: '/v1/connectors' })) ids.push(identified.parse(item).id);
  return ids;
}
