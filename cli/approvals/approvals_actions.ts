import {
  approvalRecord,
  approvalTarget,
  approvalsPage,
  APPROVAL_VALID_SECONDS,
  type ApprovalRecord,
  type ApprovalState,
} from '../../shared/wire/approvals.ts';
import { grantInput, type GrantInput, MOST_GRANT_SECONDS } from '../../shared/wire/approval_grants.ts';
import { needText } from '../../shared/wire/people/approval_rules.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { valueOrUsageError } from '../command_options.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column, Style } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { agoText, parseDuration } from '../terminal/relative_time.ts';
import { followEvents } from '../audit/event_stream.ts';

export interface ApprovalListOptions {
  readonly state?: ApprovalState;
  readonly all?: boolean;
}

/** The approvals in this state, the newest first. */
function approvalsIn(client: HttpClient, state: ApprovalState | undefined): Promise<ApprovalRecord[]> {
  return fetchAllPages(client, '/v1/approvals', approvalsPage, { state });
}

/** One approval, as it is now. */
function readApproval(client: HttpClient, id: string): Promise<ApprovalRecord> {
  return client.call('GET', `/v1/approvals/${encodeURIComponent(id)}`, approvalRecord);
}

const STYLES: Readonly<Record<ApprovalState, Style | null>> = {
  pending: 'yellow',
  approved: 'green',
  used: 'green',
  denied: 'red',
  expired: 'dim',
};

/** `svc approvals list`. */
export async function listApprovals(call: Call<ApprovalListOptions>): Promise<undefined> {
  const { options, context, print } = call;
  if (options.all === true && options.state !== undefined) {
    throw new CliError(EXIT.usage, 'both --all and --state were given: choose one');
  }
  const state = options.all === true ? undefined : (options.state ?? 'pending');
  const items = await approvalsIn(controlClient(context, options), state);
  print.rows({ items }, items, columnsAt(context.now()), 'No requests are waiting for an approval.');
}

function columnsAt(now: number): readonly Column<ApprovalRecord>[] {
  return [
    { title: 'ID', cell: (row) => row.id },
    { title: 'STATE', cell: (row) => row.state, style: (row) => STYLES[row.state] },
    { title: 'ASKED', cell: (row) => agoText(row.requested_at, now) },
    { title: 'OPERATION', cell: approvalTarget },
    { title: 'SESSION', cell: (row) => row.session_name ?? row.session_id ?? '-' },
    { title: 'REQUEST', cell: (row) => row.summary },
  ];
}

/** `svc approvals show ID`. */
export async function showApproval(call: Call): Promise<undefined> {
  const record = await readApproval(controlClient(call.context, call.options), call.args[0] ?? '');
  call.print.data(record, () => fieldsText(record));
}

function fieldsText(record: ApprovalRecord): string {
  const rows: readonly (readonly [string, string | null])[] = [
    ['request', record.summary],
    ['state', record.state],
    [
      'connector',
      record.connector_fqn && `${record.connector_fqn} ${record.connector_version ?? ''} (${record.owner})`,
    ],
    ['operation', record.operation],
    ['MCP server', record.mcp_server && `${record.mcp_server} ${record.mcp_server_version ?? ''} (${record.owner})`],
    ['tool', record.tool],
    ['fingerprint', record.fingerprint],
    ['user', record.user_id],
    ['agent', record.session_name],
    ['folder', record.folder],
    ['session', record.session_id],
    ['sidecar', record.sidecar_id],
    ['requested', record.requested_at],
    ['held until', record.held_until],
    ['decide until', record.expires_at],
    ['decided', record.decided_at],
    ['by', record.decided_by],
    ['valid until', record.valid_until],
    ['used', record.used_at],
    ['grant', record.grant_id],
    ...record.votes.map(({ user_id: user, voted_at: at }) => ['approved by', `${user}, ${at}`] as const),
    ...record.needs.map((need) => [need.missing === 0 ? 'has' : 'needs', needText(need)] as const),
  ];
  const known = rows.filter((row): row is readonly [string, string] => row[1] !== null);
  return known.map(([name, value]) => `${`${name}:`.padEnd(17)}${toPrintable(value)}\n`).join('');
}

/** What became of a request by a decision: one that still waits has one approval more. */
function decidedText({ id, state, summary }: ApprovalRecord): string {
  const word = state === 'pending' ? 'recorded your approval of' : state === 'denied' ? 'denied' : 'approved';
  return `${word} ${id}: ${toPrintable(summary)}\n`;
}

export interface ApproveOptions {
  readonly for?: string;
  readonly times?: string;
}

/** `svc approvals approve ID [--for TIME [--times N]]`. */
export async function approveRequest(call: Call<ApproveOptions>): Promise<undefined> {
  requireOutside(call, homeOf(call.context, call.options), 'which may not approve what it asks for');
  const grant = grantOf(call.options);
  const record = await sendDecision(call, { decision: 'approve', ...(grant && { grant }) });
  if (!call.print.person) return;
  for (const note of notesOn(record, grant)) call.print.note(note);
}

/** What an approval has come to. */
function notesOn({ state, needs, grant_id: granted }: ApprovalRecord, wish: GrantInput | null): readonly string[] {
  if (state === 'pending') {
    const open = needs.filter(({ missing }) => missing > 0);
    return open.map((need) => `It waits on: ${toPrintable(needText(need))}.`);
  }
  if (granted !== null) {
    return ['Further requests like it are allowed. `svc approvals grants` lists what is, and how to revoke it.'];
  }
  const once = `The approval covers this one request and expires in ${APPROVAL_VALID_SECONDS / 60} minutes.`;
  return wish === null ? [once] : [once, 'No further requests are allowed, because others did not allow them.'];
}

function grantOf({ for: time, times }: ApproveOptions): GrantInput | null {
  if (time === undefined && times === undefined) return null;
  const seconds =
    time === undefined || time === 'session' ? MOST_GRANT_SECONDS : valueOrUsageError('--for', parseDuration(time));
  const parsed = grantInput.safeParse({ seconds, times: times === undefined ? null : Number(times) });
  if (parsed.success) return parsed.data;
  const isTime = parsed.error.issues.some(({ path }) => path[0] === 'seconds');
  throw new CliError(
    EXIT.usage,
    isTime ? '--for takes "session" or a time from 1m to 8h' : '--times takes a whole number from 2 to 100',
  );
}

/** `svc approvals deny ID`. */
export async function denyRequest(call: Call): Promise<undefined> {
  await sendDecision(call, { decision: 'deny' });
}

async function sendDecision(
  { context, options, args, print }: Call,
  decided: { readonly decision: 'approve' | 'deny'; readonly grant?: GrantInput },
): Promise<ApprovalRecord> {
  const path = `/v1/approvals/${encodeURIComponent(args[0] ?? '')}/decide`;
  const record = await controlClient(context, options).call('POST', path, approvalRecord, { body: decided });
  print.data(record, () => decidedText(record));
  return record;
}

/**
 * `svc approvals watch`: prints pending requests, then new requests and decisions as they happen. An event only signals a
 * change: the list is read again each time, so that nothing is missed between two streams.
 */
export async function watchApprovals(call: Call): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const waiting = new Map<string, ApprovalRecord>();
  const showNew = (): Promise<void> => showChanges(call, client, waiting);
  await followEvents(call, {
    client,
    query: { type: 'connector.approval.' },
    backlog: 0,
    onOpen: showNew,
    onEvents: async (events) => (events.length > 0 ? showNew() : undefined),
  });
}

async function showChanges(call: Call, client: HttpClient, waiting: Map<string, ApprovalRecord>): Promise<void> {
  const pending = await approvalsIn(client, 'pending');
  const ids = new Set(pending.map(({ id }) => id));
  for (const { id } of [...waiting.values()].filter((record) => !ids.has(record.id))) {
    waiting.delete(id);
    show(call, await readApproval(client, id));
  }
  for (const record of pending.toReversed().filter(({ id }) => !waiting.has(id))) {
    waiting.set(record.id, record);
    show(call, record);
  }
}

function show({ print }: Call, record: ApprovalRecord): void {
  const by = record.decided_by === null ? '' : ` by ${record.decided_by}`;
  const state = record.state === 'pending' ? 'waits' : `${record.state}${by}`;
  const time = record.decided_at ?? record.requested_at;
  print.line(record, toPrintable(`${time}  ${record.id}  ${state}  ${record.summary}`));
  if (record.state === 'pending' && print.person) print.note(`  svc approvals approve ${record.id}   (or deny)`);
}
