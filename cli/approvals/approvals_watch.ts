import type { ApprovalRecord } from '../../shared/wire/approvals.ts';
import { approvalsIn, readApproval } from './approvals_actions.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { EventStreamParser } from '../audit/event_stream.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

const RECONNECT_MS = 1_000;

/** `svc approvals watch`: prints pending requests, then new requests and decisions as they happen. */
export async function watchApprovals(call: Call): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const waiting = new Map<string, ApprovalRecord>();
  for (let first = true; !call.context.stop.aborted; first = false) {
    try {
      await followOnce(call, client, waiting);
    } catch (error) {
      if (call.context.stop.aborted) break;
      if (first || (error instanceof CliError && error.exitCode !== EXIT.unreachable)) throw error;
      call.print.warn(`${error instanceof Error ? error.message : String(error)}; trying again`);
    }
    await call.context.pause(RECONNECT_MS, call.context.stop);
  }
}

/**
 * Follows one stream to its end. An event only signals a change: the list is read again each time, so that nothing is missed
 * between two streams.
 */
async function followOnce(call: Call, client: HttpClient, waiting: Map<string, ApprovalRecord>): Promise<void> {
  const response = await client.stream('/v1/audit-events/stream', {
    query: { type: 'connector.approval.', backlog: 0 },
    headers: { accept: 'text/event-stream' },
    signal: call.context.stop,
  });
  await showChanges(call, client, waiting);
  const parser = new EventStreamParser();
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const events = parser.push(decoder.decode(chunk, { stream: true }));
    if (events.some(({ event }) => event === 'audit')) await showChanges(call, client, waiting);
  }
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
