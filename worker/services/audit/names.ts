import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { type Caller, mayActAs, visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listMembers } from '../../store/members.ts';
import { listNames, listSessionNames, type NamedRow, type SessionNameRow } from '../../store/names.ts';

/** What an id in an event or a list is called; null if the caller may not see it, or if it is gone. */
export type NameOf = (id: string | null | undefined) => string | null;

/** Keys of an event's data whose values are ids. */
const ID_KEYS = [
  'svc.control.resource',
  'svc.control.user',
  'svc.control.group',
  'svc.control.scim_token',
  'svc.mcp.server_id',
  'svc.audit.writer',
] as const satisfies readonly (keyof AuditEventData)[];

/** The ids in an event. */
export function idsIn({ session_id: session, sidecar_id: sidecar, actor, data }: StoredAuditEvent): string[] {
  return [session, sidecar, actor, ...ID_KEYS.map((key) => data[key])].filter((id) => typeof id === 'string');
}

const MOST_PEOPLE = 500;

/** The people whose events can be chosen, by name: for admins those of the enterprise, for others those who acted in `events`. */
export async function listPeople(
  context: ServiceContext,
  caller: Caller,
  events: readonly Pick<StoredAuditEvent, 'actor'>[],
): Promise<NamedRow[]> {
  const people = mayActAs(caller, 'admin')
    ? await listMemberNames(context, caller)
    : await listActors(context, caller, events);
  return people.toSorted((a, b) => a.name.localeCompare(b.name, 'en'));
}

async function listMemberNames({ database }: ServiceContext, { enterpriseId }: Caller): Promise<NamedRow[]> {
  const members = await listMembers(database, { enterpriseId, after: null, limit: MOST_PEOPLE });
  return members.map(({ id, displayName, email }) => ({ id, name: displayName || email || id }));
}

async function listActors(
  { database }: ServiceContext,
  caller: Caller,
  events: readonly Pick<StoredAuditEvent, 'actor'>[],
): Promise<NamedRow[]> {
  const ids = new Set(events.flatMap(({ actor }) => (actor?.startsWith('usr_') ? [actor] : [])));
  const seen = { enterpriseId: caller.enterpriseId, ownerIds: [], isAdmin: false };
  const rows = await listNames(database, seen, [...ids]);
  return rows.map(({ id, name }) => ({ id, name: name || id }));
}

/** What ran in a session, as an event says it. */
type RanIn = Pick<StoredAuditEvent, 'session_id' | 'sidecar_id'>;

/**
 * The names of things with these ids, and of the sessions of `events`. People and machines of the enterprise have names for all of
 * its members, who see the same audit log. Other things, and sessions, have names for those who see the things.
 */
export async function describeNames(
  context: ServiceContext,
  caller: Caller,
  ids: readonly string[],
  events: readonly RanIn[] = [],
): Promise<NameOf> {
  const seen = {
    enterpriseId: caller.enterpriseId,
    ownerIds: visibleOwners(caller),
    isAdmin: mayActAs(caller, 'admin'),
  };
  const [named, ofSessions] = await Promise.all([
    listNames(context.database, seen, [...new Set(ids)]),
    describeSessions(context, caller, events),
  ]);
  const names = new Map(named.map(({ id, name }) => [id, name]));
  return (id) => (typeof id === 'string' ? (names.get(id) ?? ofSessions.get(id)?.name ?? null) : null);
}

/**
 * What the sessions of these events are called, and where they ran; without those that the caller may not see. Any machine of the
 * enterprise can name any session, and write events of it: only the name from the machine of its events counts, and none if the
 * events are of several machines.
 */
export async function describeSessions(
  context: ServiceContext,
  caller: Caller,
  events: readonly RanIn[],
): Promise<ReadonlyMap<string, SessionNameRow>> {
  const machines = new Map<string, Set<string>>();
  for (const { session_id: session, sidecar_id: sidecar } of events) {
    if (session === null || sidecar === null) continue;
    machines.set(session, (machines.get(session) ?? new Set()).add(sidecar));
  }
  const rows = await listSessionNames(context.database, caller.enterpriseId, [...machines.keys()]);
  const isOfOwnMachine = ({ id, sidecarId, userId }: SessionNameRow): boolean => {
    const known = machines.get(id);
    const maySee = userId === caller.userId || mayActAs(caller, 'admin');
    return maySee && known?.size === 1 && sidecarId !== null && known.has(sidecarId);
  };
  return new Map(rows.filter(isOfOwnMachine).map((row) => [row.id, row]));
}
