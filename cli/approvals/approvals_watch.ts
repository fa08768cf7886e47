import type { ApprovalRecord } from '../../shared/wire/approvals.ts';
import { approvalsIn, readApproval } from './approvals_actions.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { followEvents } from '../audit/event_stream.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

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
