import { and, desc, eq, inArray, isNotNull } from 'drizzle-orm';
import type { Database } from './database.ts';
import {
  approvals,
  connectors,
  groups,
  hostBindings,
  mcpServers,
  personalTokens,
  scimTokens,
  secrets,
  sidecars,
  users,
} from './tables.ts';

/** What a thing with an id is called. */
export interface NamedRow {
  readonly id: string;
  readonly name: string;
}

interface Seen {
  readonly enterpriseId: string;
  /** The owners whose rows may be named. */
  readonly ownerIds: readonly string[];
  /** Whether it sees the tokens of the enterprise's directory. */
  readonly isAdmin: boolean;
}

/** How many of the newest approvals are looked at for the names of sessions. */
const LATEST_LOOKED_AT = 2_000;

/** The names of people, groups, machines, bindings, connectors, servers, secrets and tokens with these ids that a caller sees. */
export async function listNames(database: Database, seen: Seen, ids: readonly string[]): Promise<NamedRow[]> {
  const { enterpriseId, ownerIds, isAdmin } = seen;
  const of = (prefix: string): string[] => ids.filter((id) => id.startsWith(`${prefix}_`));
  type Owned = typeof hostBindings | typeof connectors | typeof mcpServers | typeof secrets;
  const owned = (table: Owned, wanted: string[]) =>
    and(inArray(table.id, wanted), inArray(table.ownerId, [...ownerIds]));
  const read = database.read;
  const rows = await Promise.all([
    whereAny(of('usr'), (wanted) =>
      read
        .select({ id: users.id, name: users.displayName })
        .from(users)
        .where(and(inArray(users.id, wanted), eq(users.enterpriseId, enterpriseId))),
    ),
    whereAny(of('sdc'), (wanted) =>
      read
        .select({ id: sidecars.id, name: sidecars.name })
        .from(sidecars)
        .where(and(inArray(sidecars.id, wanted), eq(sidecars.enterpriseId, enterpriseId))),
    ),
    whereAny(of('bnd'), (wanted) =>
      read
        .select({ id: hostBindings.id, name: hostBindings.host })
        .from(hostBindings)
        .where(owned(hostBindings, wanted)),
    ),
    whereAny(of('con'), (wanted) =>
      read.select({ id: connectors.id, name: connectors.fqn }).from(connectors).where(owned(connectors, wanted)),
    ),
    whereAny(of('mcp'), (wanted) =>
      read.select({ id: mcpServers.id, name: mcpServers.name }).from(mcpServers).where(owned(mcpServers, wanted)),
    ),
    whereAny(of('sec'), (wanted) =>
      read.select({ id: secrets.id, name: secrets.path }).from(secrets).where(owned(secrets, wanted)),
    ),
    whereAny(of('grp'), (wanted) =>
      read
        .select({ id: groups.id, name: groups.name })
        .from(groups)
        .where(and(inArray(groups.id, wanted), eq(groups.enterpriseId, enterpriseId))),
    ),
    whereAny(of('tok'), (wanted) =>
      read
        .select({ id: personalTokens.id, name: personalTokens.name })
        .from(personalTokens)
        .where(and(inArray(personalTokens.id, wanted), inArray(personalTokens.userId, [...ownerIds]))),
    ),
    whereAny(isAdmin ? of('sct') : [], (wanted) =>
      read
        .select({ id: scimTokens.id, name: scimTokens.name })
        .from(scimTokens)
        .where(and(inArray(scimTokens.id, wanted), eq(scimTokens.enterpriseId, enterpriseId))),
    ),
  ]);
  return rows.flat();
}

/** No query for no ids. */
function whereAny<T>(ids: string[], read: (ids: string[]) => PromiseLike<T[]>): PromiseLike<T[]> {
  return ids.length === 0 ? Promise.resolve([]) : read(ids);
}

/** The name and the folder of sessions, as their launchers said with requests for approval. */
export interface SessionNameRow {
  readonly id: string;
  readonly name: string;
  readonly folder: string | null;
  /** Whose machine said so, and which. */
  readonly userId: string;
  readonly sidecarId: string | null;
}

/** Only sessions that asked for one of the newest approvals have a name here. */
export async function listSessionNames(
  database: Database,
  enterpriseId: string,
  ids: readonly string[],
): Promise<SessionNameRow[]> {
  if (ids.length === 0) return [];
  const { sessionId, sessionName, folder, userId, sidecarId } = approvals;
  const newest = database.read
    .select({ sessionId, sessionName, folder, userId, sidecarId })
    .from(approvals)
    .where(eq(approvals.enterpriseId, enterpriseId))
    .orderBy(desc(approvals.id))
    .limit(LATEST_LOOKED_AT)
    .as('newest');
  const rows = await database.read
    .selectDistinct({
      id: newest.sessionId,
      name: newest.sessionName,
      folder: newest.folder,
      userId: newest.userId,
      sidecarId: newest.sidecarId,
    })
    .from(newest)
    .where(and(inArray(newest.sessionId, [...ids]), isNotNull(newest.sessionName)));
  return rows.flatMap(({ id, name, ...row }) => (id === null || name === null ? [] : [{ ...row, id, name }]));
}
