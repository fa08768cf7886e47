import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { type Caller, mayActAs, visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listNames, listSessionNames } from '../../store/names.ts';

/** What an id in an event or a list is called; null if the caller may not see it, or if it is gone. */
export type NameOf = (id: string | null | undefined) => string | null;

/** Keys of an event's data whose values are ids. */
const ID_KEYS = [
  'svc.control.resource',
  'svc.mcp.server_id',
  'svc.audit.writer',
] as const satisfies readonly (keyof AuditEventData)[];

/** The ids in an event. */
export function idsIn({ session_id: session, sidecar_id: sidecar, actor, data }: StoredAuditEvent): string[] {
  return [session, sidecar, actor, ...ID_KEYS.map((key) => data[key])].filter((id) => typeof id === 'string');
}

/**
 * The names of things with these ids. People and machines of the enterprise have names for all of its members, who see the
 * same audit log. Other things, and sessions, have names for those who see the things.
 */
export async function describeNames(context: ServiceContext, caller: Caller, ids: readonly string[]): Promise<NameOf> {
  const wanted = [...new Set(ids)];
  const sessions = wanted.filter((id) => id.startsWith('ses_'));
  const seen = { enterpriseId: caller.enterpriseId, ownerIds: visibleOwners(caller) };
  const [named, sessionNames] = await Promise.all([
    listNames(context.database, seen, wanted),
    listSessionNames(context.database, caller.enterpriseId, sessions),
  ]);
  const maySee = (userId: string): boolean => userId === caller.userId || mayActAs(caller, 'admin');
  const names = new Map(named.map(({ id, name }) => [id, name]));
  for (const { id, name, userId } of sessionNames) if (maySee(userId)) names.set(id, name);
  return (id) => (typeof id === 'string' ? (names.get(id) ?? null) : null);
}
