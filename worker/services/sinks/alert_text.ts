import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { toUnlinkedLine } from '../../kernel/unlinked_line.ts';
import type { Batch } from './sink_kind.ts';

/** A longer message is cut by receivers. */
const MOST_LINES = 20;

const MOST_CHARACTERS = 300;

/** Writes a name that others chose, and that is no link any more, so that the receiver carries out nothing of it. */
type WriteName = (name: string) => string;

/** The link is only an address: whoever follows it decides as who they are signed in as. */
export function alertText({ events, approvalsUrl }: Pick<Batch, 'events' | 'approvalsUrl'>, write: WriteName): string {
  const lines = events
    .slice(0, MOST_LINES)
    .map((event) => `${headOf(event)}: ${write(subjectOf(event))}${linkOf(event, approvalsUrl)}`);
  const more = events.length > MOST_LINES ? [`and ${events.length - MOST_LINES} more`] : [];
  const where = approvalsUrl === null ? 'Decide with svc approvals, or in the console.' : `Decide at ${approvalsUrl}`;
  return [...lines, ...more, where].join('\n');
}

/** The page of one approval. Like the list, it is the same address for everybody. */
function linkOf({ data }: StoredAuditEvent, approvalsUrl: string | null): string {
  const id = data['svc.approval.id'];
  return approvalsUrl === null || id === undefined ? '' : ` ${approvalsUrl}/${encodeURIComponent(id)}`;
}

function headOf({ type, data }: StoredAuditEvent): string {
  if (type === 'connector.approval.partly_approved') return partlyApproved(data);
  return type === 'connector.approval.waits_again' ? 'Approval requested again' : 'Approval requested';
}

function partlyApproved(data: StoredAuditEvent['data']): string {
  const given = data['svc.approval.approvers']?.length ?? 1;
  const missing = data['svc.approval.missing'] ?? 1;
  return `Approved by ${given === 1 ? 'one person' : `${given} persons`}, needs ${missing === 1 ? 'another' : `${missing} more`}`;
}

function subjectOf({ data }: StoredAuditEvent): string {
  const name = data['svc.connector.fqn'] ?? data['svc.mcp.server'] ?? '?';
  const action = data['svc.connector.operation'] ?? data['svc.mcp.tool'] ?? '?';
  return toUnlinkedLine(`${name} ${action}`, MOST_CHARACTERS);
}
