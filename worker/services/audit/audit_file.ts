import { ok, type Result } from '../../../shared/model/result.ts';
import type { AuditEventsQuery, StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';
import { isStillIn } from '../../store/sign_ins.ts';
import { listAuditPage } from './audit_log.ts';
import { streamTexts } from './stream_texts.ts';

/** The newest so many; the export with proof has them all. */
const MOST_EVENTS = 50_000;

/**
 * The matching events as a file, newest first, read page by page while it is sent. It breaks off if the caller is suspended or
 * signed out. Refuses
 * as the list does.
 */
export async function exportEvents(
  context: ServiceContext,
  caller: Caller,
  query: AuditEventsQuery,
  format: 'csv' | 'jsonl',
): Promise<Result<ReadableStream<Uint8Array>, ApiError>> {
  const first = await listAuditPage(context, caller, query);
  if (!first.ok) return first;
  return ok(streamTexts(textsOf(context, caller, { query, format, first: first.value })));
}

interface Export {
  readonly query: AuditEventsQuery;
  readonly format: 'csv' | 'jsonl';
  readonly first: Page<StoredAuditEvent>;
}

async function* textsOf(
  context: ServiceContext,
  caller: Caller,
  { query, format, first }: Export,
): AsyncGenerator<string, void> {
  const write = format === 'csv' ? csvLine : jsonLine;
  if (format === 'csv') yield `${COLUMNS.map(([title]) => title).join(',')}\r\n`;
  let page = first;
  let sent = 0;
  for (;;) {
    yield page.items.map((event) => write(event)).join('');
    sent += page.items.length;
    if (page.next_cursor === null || sent >= MOST_EVENTS) return;
    if (!(await isStillIn(context.database, caller, nowSeconds(context)))) {
      throw new Error('the export ended early: its reader is suspended, has left or is signed out');
    }
    const next = await listAuditPage(context, caller, { ...query, cursor: page.next_cursor });
    if (!next.ok) throw new Error(`the export ended early: ${next.error.message}`);
    page = next.value;
  }
}

const COLUMNS: readonly (readonly [title: string, cell: (event: StoredAuditEvent) => unknown])[] = [
  ['time', ({ time }) => time],
  ['type', ({ type }) => type],
  ['method', ({ data }) => data['svc.proxy.method']],
  ['host', ({ data }) => data['svc.proxy.upstream.host']],
  ['path', ({ data }) => data['svc.proxy.upstream.path']],
  ['status', ({ data }) => data['svc.proxy.upstream.status']],
  ['reason', ({ data }) => data['svc.proxy.reason'] ?? data['svc.mcp.reason']],
  ['connector', ({ data }) => data['svc.connector.fqn']],
  ['operation', ({ data }) => data['svc.connector.operation']],
  ['mcp_server', ({ data }) => data['svc.mcp.server']],
  ['tool', ({ data }) => data['svc.mcp.tool']],
  ['approval', ({ data }) => data['svc.approval.id']],
  ['resource', ({ data }) => data['svc.control.resource'] ?? data['svc.control.credential_ref']],
  ['session', (event) => event.session_id],
  ['sidecar', (event) => event.sidecar_id],
  ['actor', ({ actor }) => actor],
  ['id', ({ id }) => id],
];

function csvLine(event: StoredAuditEvent): string {
  return `${COLUMNS.map(([, cell]) => csvCell(cell(event))).join(',')}\r\n`;
}

/** RFC 4180. A text that a spreadsheet would run as a formula gets an apostrophe first: agents write paths. */
function csvCell(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return '';
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return `"${safe.replaceAll('"', '""')}"`;
}

function jsonLine(event: StoredAuditEvent): string {
  return `${JSON.stringify(event)}\n`;
}
