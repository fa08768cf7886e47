import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { Batch, HttpSinkKind } from './sink_kind.ts';

/** A longer message is cut by receivers. */
const MOST_LINES = 20;

/** A message about requests that wait for an approval, for an incoming webhook as Slack and others have it. */
export const slackSink: HttpSinkKind = {
  isSigned: false,
  isAlert: true,
  async write(_, batch) {
    const body = new TextEncoder().encode(JSON.stringify({ text: messageOf(batch) }));
    return { headers: { 'content-type': 'application/json' }, body };
  },
};

/** The link is only an address: whoever follows it decides as who they are signed in as. */
function messageOf({ events, approvalsUrl }: Pick<Batch, 'events' | 'approvalsUrl'>): string {
  const lines = events
    .slice(0, MOST_LINES)
    .map((event) => `${headOf(event)}: ${subjectOf(event)}${linkOf(event, approvalsUrl)}`);
  const more = events.length > MOST_LINES ? [`and ${events.length - MOST_LINES} more`] : [];
  const where = approvalsUrl === null ? 'Decide with svc approvals, or in the console.' : `Decide at ${approvalsUrl}`;
  return [...lines, ...more, where].join('\n');
}

/** The page of one approval. Like the list, it is the same address for everybody. */
function linkOf({ data }: StoredAuditEvent, approvalsUrl: string | null): string {
  const id = data['svc.approval.id'];
  return approvalsUrl === null || id === undefined ? '' : ` ${approvalsUrl}/${encodeURIComponent(id)}`;
}

function headOf({ type }: StoredAuditEvent): string {
  if (type === 'connector.approval.partly_approved') return 'Approved by one person, needs another';
  return type === 'connector.approval.waits_again' ? 'Approval requested again' : 'Approval requested';
}

function subjectOf({ data }: StoredAuditEvent): string {
  const name = data['svc.connector.fqn'] ?? data['svc.mcp.server'] ?? '?';
  const action = data['svc.connector.operation'] ?? data['svc.mcp.tool'] ?? '?';
  return escapeText(`${name} ${action}`);
}

/** Names are chosen by others: unescaped, `<!channel>` or a link in one would be carried out. */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
