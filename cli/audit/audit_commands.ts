import type { Command } from 'commander';
import type { z } from 'zod';
import {
  readAuditEventsPage,
  auditVerification,
  readAuditEvent,
  type AuditVerification,
} from '../../shared/wire/audit_events.ts';
import { controlClient } from '../clients.ts';
import { addAuditExportCommand } from './audit_export.ts';
import { verifyFile } from './audit_file.ts';
import { addHeadsCommands, compareHeads } from './audit_heads.ts';
import { addPruneCommand } from './audit_prune.ts';
import { addSinkCommands } from './audit_sinks.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { followEvents } from './event_stream.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { refusalWords } from '../../shared/report/refusal_words.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column, Style } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { parseTime } from '../terminal/relative_time.ts';
import { counted } from '../../shared/model/sentence.ts';

type EventRow = z.infer<typeof readAuditEvent>;

interface FilterOptions {
  readonly type?: string;
  readonly session?: string;
  readonly connector?: string;
  readonly host?: string;
  readonly method?: string;
  readonly status?: string;
  readonly path?: string;
  readonly person?: string;
  readonly search?: string;
}
interface ListOptions extends FilterOptions {
  readonly since?: string;
  readonly until?: string;
  readonly limit: string;
  readonly all?: boolean;
}
interface VerifyOptions {
  readonly against?: string;
  readonly file?: string;
  readonly key?: string;
}
interface TailOptions extends FilterOptions {
  readonly backlog: string;
}

/** `svc audit ...`. */
export function addAuditCommands(line: CommandLine): void {
  const audit = line.program.command('audit').description('read and verify the audit log; it holds no secrets');
  const list = filters(audit.command('list').alias('ls').description('list events, newest first'))
    .option('--since <time>', 'from this time on: 2026-01-31T09:00:00Z, or 10m, 2h, 7d for that long ago')
    .option('--until <time>', 'before then')
    .option('--limit <number>', 'maximum number of events', '50')
    .option('--all', 'list every event');
  handle<ListOptions>(line, list, listEvents);
  const tail = filters(audit.command('tail').description('show events as they happen, until Ctrl-C')).option(
    '--backlog <number>',
    'start with this many earlier events',
    '10',
  );
  handle<TailOptions>(line, tail, tailEvents);
  const verify = audit
    .command('verify')
    .description('check that no event was changed or removed (the hash chains)')
    .option(
      '--against <file>',
      'also compare with heads that `svc audit heads` exported earlier; any text that contains them',
    )
    .option('--file <file>', 'check a file of `svc audit export` instead; no control plane is needed')
    .option(
      '--key <key>',
      "with --file: the control plane's public key, the x of control_plane_key in svc audit heads --json",
    );
  handle<VerifyOptions>(line, verify, verifyChains);
  addHeadsCommands(line, audit);
  addAuditExportCommand(line, audit);
  addPruneCommand(line, audit);
  addSinkCommands(line, audit);
}

function filters(command: Command): Command {
  return command
    .option('--type <type>', 'an event type, or a prefix that ends in "." (separate several with ",")')
    .option('--session <id>', 'only this session')
    .option('--connector <fqn>', 'only this connector, such as acme.items')
    .option('--host <host>', 'only this upstream host; "*" stands for any characters ("*github*")')
    .option('--method <method>', 'only requests with this method')
    .option('--status <status>', 'only this status of the upstream, or a class of them such as 5xx')
    .option('--path <text>', 'only paths with this in them')
    .option('--person <id>', 'only what this person or a machine of this person did (usr_…)')
    .option('--search <text>', 'only events with this text in them; without --since, of the last week');
}

const COLUMNS: readonly Column<EventRow>[] = [
  { title: 'TIME', cell: (row) => row.time },
  { title: 'EVENT', cell: (row) => row.type, style: styleOf },
  { title: 'METHOD', cell: (row) => row.data['svc.proxy.method'] ?? '-' },
  { title: 'TARGET', cell: targetOf },
  { title: 'RESULT', cell: resultOf },
  { title: 'SESSION', cell: (row) => row.session_id ?? '-' },
];

/** For a terminal in which the whole table would wrap; the whole values are in a wider one, and with --json. */
const NARROW_COLUMNS: readonly Column<EventRow>[] = [
  { title: 'TIME', cell: (row) => row.time.slice(5, 19).replace('T', ' ') },
  { title: 'EVENT', cell: (row) => row.type.replace(/^(?:sandbox\.proxy|control)\./, ''), style: styleOf },
  { title: 'METHOD', cell: (row) => row.data['svc.proxy.method'] ?? '-' },
  { title: 'TARGET', cell: targetOf },
  { title: 'RESULT', cell: resultOf },
];
/** Below this width the whole table wraps. */
const WIDE_TERMINAL = 140;

const REFUSALS: readonly EventRow['type'][] = [
  'sandbox.proxy.rejected',
  'sandbox.proxy.trust_denied',
  'connector.proxy.rejected',
];
/** Someone bypassed the proxy on purpose. */
const AROUND_THE_PROXY: readonly EventRow['type'][] = ['sandbox.proxy.disabled', 'sandbox.proxy.credential_unsealed'];

function styleOf({ type }: EventRow): Style | null {
  if (REFUSALS.includes(type)) return 'red';
  return AROUND_THE_PROXY.includes(type) ? 'yellow' : null;
}

function targetOf({ data }: EventRow): string {
  const host = data['svc.proxy.upstream.host'];
  if (host !== undefined) return host + (data['svc.proxy.upstream.path'] ?? '');
  const hosts = data['svc.reach.hosts'];
  if (hosts !== undefined) return hosts.length === 0 ? 'no host' : hosts.join(',');
  const operation = data['svc.connector.operation'];
  if (operation !== undefined) return `${data['svc.connector.fqn'] ?? '?'} ${operation}`;
  const launched = data['svc.sandbox.image'] ?? data['svc.sandbox.mode'];
  const named = data['svc.proxy.binding.host'] ?? data['svc.control.credential_ref'] ?? data['svc.connector.fqn'];
  const listed = data['svc.control.host'];
  return launched ?? named ?? listed ?? data['svc.mcp.server'] ?? data['svc.control.resource'] ?? '-';
}

/** The outcome: a status, a reason, a decision or a step with its reach, prefixed by the credential or the operation. */
function resultOf({ data }: EventRow): string {
  const ref = data['svc.proxy.credential_ref'] ?? (data['svc.proxy.reason'] && data['svc.control.credential_ref']);
  const status = data['svc.proxy.upstream.status']?.toString();
  const outcome = data['svc.proxy.reason'] ?? status ?? data['svc.approval.decision'];
  const operation = data['svc.proxy.upstream.host'] === undefined ? undefined : data['svc.connector.operation'];
  const parts = [ref, stepText(data), operation, outcome, bytesText(data)].filter((part) => part !== undefined);
  return parts.length === 0 ? '-' : parts.join(': ');
}

function bytesText(data: EventRow['data']): string | undefined {
  const sent = data['svc.proxy.bytes.sent'];
  return sent === undefined
    ? undefined
    : `${counted(sent, 'byte')} sent, ${data['svc.proxy.bytes.received'] ?? 0} received`;
}

function stepText(data: EventRow['data']): string | undefined {
  const step = data['svc.step.id'];
  if (step === undefined) return undefined;
  const effect = data['svc.reach.effect'];
  const enforced = data['svc.reach.enforced'];
  const open = data['svc.reach.egress'] === 'open' ? 'egress open' : undefined;
  const words = [effect, enforced === undefined ? undefined : enforced ? 'enforced' : 'not enforced', open];
  const reach = words.filter((word) => word !== undefined).join(', ');
  return reach === '' ? `step ${step}` : `step ${step} (${reach})`;
}

async function listEvents(call: Call<ListOptions>): Promise<undefined> {
  const { options, context } = call;
  const time = (flag: string, text: string | undefined): string | undefined => {
    if (text === undefined) return undefined;
    const parsed = parseTime(text, context.now());
    if (parsed.ok) return parsed.value;
    throw new CliError(EXIT.usage, `${flag} ${parsed.error}`);
  };
  const query = {
    ...filterQuery(options),
    since: time('--since', options.since),
    until: time('--until', options.until),
  };
  const most = options.all === true ? Number.POSITIVE_INFINITY : parseWholeNumber('--limit', options.limit, 1);
  const items = await fetchAllPages(controlClient(context, options), '/v1/audit-events', readAuditEventsPage, query, {
    most,
  });
  const { columns = WIDE_TERMINAL } = context.stdout;
  const isNarrow = call.print.person && columns < WIDE_TERMINAL;
  call.print.rows({ items }, items, isNarrow ? narrowColumns(columns, items) : COLUMNS, 'No matching events.');
  if (call.print.person && options.json !== true) explainRefusals(call, items);
}

/** What the codes in the column of results mean, each once. */
function explainRefusals({ print }: Call<ListOptions>, rows: readonly EventRow[]): void {
  for (const reason of new Set(rows.map(({ data }) => data['svc.proxy.reason'] ?? ''))) {
    const words = refusalWords(reason);
    if (words !== null) print.note(`${reason}: ${words}`);
  }
}

const LONGEST_EVENT = 'foreign_credential_kept'.length;

/** Columns of at most this width together: the target gives way, then the result, and each takes what the others leave. */
function narrowColumns(width: number, rows: readonly EventRow[]): readonly Column<EventRow>[] {
  const widths = new Map(NARROW_COLUMNS.map((column) => [column.title, widestOf(column, rows)]));
  const widthOf = (title: string): number => Math.min(LONGEST_EVENT, widths.get(title) ?? 0);
  const fixed = widthOf('TIME') + widthOf('EVENT') + widthOf('METHOD') + 4 * 2;
  const rest = Math.max(24, width - fixed);
  const [target, reason] = [widths.get('TARGET') ?? 0, widths.get('RESULT') ?? 0];
  const result = Math.min(reason, Math.max(Math.floor(rest * 0.4), rest - target));
  const shares = new Map([
    ['TARGET', rest - result],
    ['RESULT', result],
  ]);
  return NARROW_COLUMNS.map((column) => {
    const most = shares.get(column.title) ?? LONGEST_EVENT;
    return { ...column, cell: (row) => cutCell(column.cell(row), most) };
  });
}

function widestOf({ title, cell }: Column<EventRow>, rows: readonly EventRow[]): number {
  return rows.reduce((widest, row) => Math.max(widest, Array.from(toPrintable(cell(row))).length), title.length);
}

function cutCell(text: string, most: number): string {
  const characters = Array.from(toPrintable(text));
  return characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`;
}

function filterQuery(options: FilterOptions): Record<string, string | undefined> {
  const { type, session, connector, host, method, status, path, person, search: q } = options;
  return { type, session, connector, host, method, status, path, person, q };
}

function parseWholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (/^\d{1,6}$/.test(text) && value >= least) return value;
  throw new CliError(EXIT.usage, `${flag} is ${JSON.stringify(text)}: use a whole number, at least ${least}`);
}

async function tailEvents(call: Call<TailOptions>): Promise<undefined> {
  await followEvents(call, {
    client: controlClient(call.context, call.options),
    query: filterQuery(call.options),
    backlog: parseWholeNumber('--backlog', call.options.backlog, 0),
    onEvents: (events) => {
      for (const data of events) printEvent(call, data);
    },
  });
}

function printEvent(call: Call<TailOptions>, data: string): void {
  const parsed = readAuditEvent.safeParse(JSON.parse(data));
  if (!parsed.success)
    throw new CliError(EXIT.failed, 'the control plane sent an event in a format that this svc does not know');
  const cells = COLUMNS.map((column) => toPrintable(column.cell(parsed.data)));
  call.print.line(parsed.data, cells.join(call.print.person ? '  ' : '\t'));
}

async function verifyChains(call: Call<VerifyOptions>): Promise<number> {
  const { against, file, key } = call.options;
  if (file !== undefined && against !== undefined) {
    throw new CliError(EXIT.usage, 'use --file or --against: --against compares the log of the control plane');
  }
  if (file === undefined && key !== undefined) throw new CliError(EXIT.usage, '--key is for --file');
  if (file !== undefined) return verifyFile(call, file);
  const client = controlClient(call.context, call.options);
  const compared = against === undefined ? null : await compareHeads(call, client, against);
  const result = await client.call('GET', '/v1/audit-events/verify', auditVerification, { timeoutMs: 10 * 60_000 });
  const value = compared === null ? result : { ...result, against: compared.value };
  const text = (compared?.text ?? '') + verificationText(result, call.print.person);
  call.print.data(value, () => text);
  return result.ok && (compared?.value.ok ?? true) ? EXIT.ok : EXIT.failed;
}

/** The result of verifying the chains. */
function verificationText(result: AuditVerification, person: boolean): string {
  const broken = result.first_break;
  if (broken !== null) {
    const event = broken.event_id === null ? '' : ` (${broken.event_id})`;
    return `broken\t${broken.reason} at event ${broken.sequence} of ${broken.writer}${event}\n`;
  }
  const chains = result.chains
    .map(
      (chain) => `${chain.writer}\t${chain.events}\t${chain.head_hash}\t${chain.removed}\t${chain.begins_at ?? '-'}\n`,
    )
    .join('');
  const rest =
    result.removed === 0
      ? 'none changed or removed'
      : `none changed; ${result.removed === 1 ? '1 older one was' : `${result.removed} older ones were`} pruned`;
  return person
    ? `ok: ${counted(result.events, 'event')} in ${counted(result.chains.length, 'chain')}, ${rest}\n`
    : chains;
}
