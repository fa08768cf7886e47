import { and, asc, desc, eq, gt, gte, inArray, lt, ne, or, sql } from 'drizzle-orm';
import { MCP_VAULT_PREFIX, mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { MAX_MCP_REVISIONS } from '../../../shared/wire/mcp/mcp_servers.ts';
import { type Database, guard, type Statement } from '../database.ts';
import { mcpHealth, mcpReferences, mcpServerRevisions, mcpServers, secrets } from '../tables.ts';

export type McpServerRow = typeof mcpServers.$inferSelect;
type McpRevisionRow = typeof mcpServerRevisions.$inferSelect;

export async function findMcpServer(
  database: Database,
  ownerIds: readonly string[],
  id: string,
): Promise<McpServerRow | null> {
  const rows = await database.read
    .select()
    .from(mcpServers)
    .where(and(eq(mcpServers.id, id), inArray(mcpServers.ownerId, [...ownerIds])));
  return rows[0] ?? null;
}

/** Those of these ids that are servers of these owners. */
export async function findKnownMcpServers(
  database: Database,
  ownerIds: readonly string[],
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.read
    .select({ id: mcpServers.id })
    .from(mcpServers)
    .where(and(inArray(mcpServers.id, [...ids]), inArray(mcpServers.ownerId, [...ownerIds])));
  return new Set(rows.map(({ id }) => id));
}

/** The names of the servers of these owners. */
export async function listMcpServerNames(database: Database, ownerIds: readonly string[]): Promise<string[]> {
  const rows = await database.read
    .select({ name: mcpServers.name })
    .from(mcpServers)
    .where(inArray(mcpServers.ownerId, [...ownerIds]));
  return rows.map(({ name }) => name);
}

/** Another server of the same owner with the same name. */
export async function findMcpServerNamed(
  database: Database,
  server: Pick<McpServerRow, 'id' | 'ownerId' | 'name'>,
): Promise<McpServerRow | null> {
  const { id, ownerId, name } = server;
  const rows = await database.read
    .select()
    .from(mcpServers)
    .where(and(eq(mcpServers.ownerId, ownerId), eq(mcpServers.name, name), ne(mcpServers.id, id)));
  return rows[0] ?? null;
}

/** Servers of these owners that were installed from one of these registry entries, oldest first. */
export async function findMcpServersFrom(
  database: Database,
  ownerIds: readonly string[],
  registryIds: readonly string[],
): Promise<McpServerRow[]> {
  if (registryIds.length === 0) return [];
  return database.read
    .select()
    .from(mcpServers)
    .where(and(inArray(mcpServers.ownerId, [...ownerIds]), inArray(mcpServers.registryId, [...registryIds])))
    .orderBy(asc(mcpServers.id));
}

/** Where a page of servers continues. */
type McpServerPosition = Pick<McpServerRow, 'ownerId' | 'name'>;

/** Servers of these owners in the order of owner and name, after a position. */
export async function listMcpServers(
  database: Database,
  page: {
    readonly ownerIds: readonly string[];
    readonly name?: string | undefined;
    readonly after: McpServerPosition | null;
    readonly limit: number;
  },
): Promise<McpServerRow[]> {
  const { after, name } = page;
  const later =
    after &&
    or(
      gt(mcpServers.ownerId, after.ownerId),
      and(eq(mcpServers.ownerId, after.ownerId), gt(mcpServers.name, after.name)),
    );
  const named = name === undefined ? undefined : eq(mcpServers.name, name);
  return database.read
    .select()
    .from(mcpServers)
    .where(and(inArray(mcpServers.ownerId, [...page.ownerIds]), named, later ?? undefined))
    .orderBy(asc(mcpServers.ownerId), asc(mcpServers.name))
    .limit(page.limit);
}

/**
 * The data of a server change: its row, who made it, and the vault paths that it refers to, in its owner's namespace.
 */
interface McpServerWrite {
  readonly row: McpServerRow;
  readonly changedBy: string;
  readonly paths: readonly string[];
}

export function insertMcpServer(database: Database, write: McpServerWrite): Statement[] {
  return [database.read.insert(mcpServers).values(write.row), ...noteRevision(database, write)];
}

/** Replaces a server, if it still has the previous revision. Only the newest few older configurations are kept. */
export function replaceMcpServer(database: Database, write: McpServerWrite): Statement[] {
  const { id, name, registryId, record, revision, updatedAt } = write.row;
  return [
    ...isStill(id, revision - 1),
    database.read
      .update(mcpServers)
      .set({ name, registryId, record, revision, updatedAt })
      .where(eq(mcpServers.id, id)),
    database.read.delete(mcpReferences).where(eq(mcpReferences.serverId, id)),
    database.read
      .delete(mcpServerRevisions)
      .where(
        and(eq(mcpServerRevisions.serverId, id), lt(mcpServerRevisions.revision, revision - MAX_MCP_REVISIONS + 1)),
      ),
    ...noteRevision(database, write),
  ];
}

/** The condition that a server exists with this revision. */
export function isStill(id: string, revision: number): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM mcp_servers WHERE id = ${id} AND revision = ${revision})`);
}

function noteRevision(database: Database, { row, changedBy, paths }: McpServerWrite): Statement[] {
  const { id: serverId, ownerId, revision, record, updatedAt: createdAt } = row;
  const references = [...new Set(paths)].map((path) => ({ serverId, ownerId, path }));
  return [
    database.read.insert(mcpServerRevisions).values({ serverId, revision, record, changedBy, createdAt }),
    ...(references.length === 0 ? [] : [database.read.insert(mcpReferences).values(references)]),
  ];
}

/** Deletes a server with everything that depends on it, including its vault entries. */
export function deleteMcpServer(database: Database, row: McpServerRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM mcp_servers WHERE id = ${row.id})`),
    ...deleteMcpCredentials(database, row),
    database.read.delete(mcpReferences).where(eq(mcpReferences.serverId, row.id)),
    database.read.delete(mcpServerRevisions).where(eq(mcpServerRevisions.serverId, row.id)),
    database.read.delete(mcpHealth).where(eq(mcpHealth.serverId, row.id)),
    database.read.delete(mcpServers).where(eq(mcpServers.id, row.id)),
  ];
}

/** The configurations of a server, newest first. */
export async function listMcpRevisions(database: Database, serverId: string): Promise<McpRevisionRow[]> {
  return database.read
    .select()
    .from(mcpServerRevisions)
    .where(eq(mcpServerRevisions.serverId, serverId))
    .orderBy(desc(mcpServerRevisions.revision));
}

export async function findMcpRevision(
  database: Database,
  serverId: string,
  revision: number,
): Promise<McpRevisionRow | null> {
  const rows = await database.read
    .select()
    .from(mcpServerRevisions)
    .where(and(eq(mcpServerRevisions.serverId, serverId), eq(mcpServerRevisions.revision, revision)));
  return rows[0] ?? null;
}

/** Changes an earlier configuration. */
export function rewriteMcpRevision(
  database: Database,
  { serverId, revision }: Pick<McpRevisionRow, 'serverId' | 'revision'>,
  record: string,
): Statement[] {
  return [
    database.read
      .update(mcpServerRevisions)
      .set({ record })
      .where(and(eq(mcpServerRevisions.serverId, serverId), eq(mcpServerRevisions.revision, revision))),
  ];
}

/** A stored credential of a server, without its value. */
export interface McpCredentialRow {
  readonly serverId: string;
  readonly name: string;
  readonly updatedAt: string;
}

const PREFIX = `${MCP_VAULT_PREFIX}/`;
const ID_CHARACTERS = 'mcp_'.length + 26;
const idInPath = sql<string>`substr(${secrets.path}, ${PREFIX.length + 1}, ${ID_CHARACTERS})`;

/** The stored credentials of these servers, which belong to these owners. */
export async function mcpCredentialsOf(
  database: Database,
  ownerIds: readonly string[],
  serverIds: readonly string[],
): Promise<McpCredentialRow[]> {
  if (serverIds.length === 0) return [];
  const rows = await database.read
    .select({ path: secrets.path, updatedAt: secrets.updatedAt })
    .from(secrets)
    .where(and(inArray(secrets.ownerId, [...ownerIds]), isBelow(PREFIX), inArray(idInPath, [...serverIds])))
    .orderBy(asc(secrets.path));
  return rows.map(({ path, updatedAt }) => {
    const [, serverId = '', name = ''] = path.split('/');
    return { serverId, name, updatedAt };
  });
}

/** Deletes every vault entry of a server. */
export function deleteMcpCredentials(database: Database, { id, ownerId }: Pick<McpServerRow, 'id' | 'ownerId'>) {
  return [database.read.delete(secrets).where(and(eq(secrets.ownerId, ownerId), isBelow(mcpVaultPath(id, ''))))];
}

/** Deletes a stored credential. */
export function deleteMcpCredential(database: Database, ownerId: string, path: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM secrets WHERE owner_id = ${ownerId} AND path = ${path})`),
    database.read.delete(secrets).where(and(eq(secrets.ownerId, ownerId), eq(secrets.path, path))),
  ];
}

/** Paths with this prefix, which ends in a slash; the next character after "/" is "0". */
function isBelow(prefix: string) {
  return and(gte(secrets.path, prefix), lt(secrets.path, `${prefix.slice(0, -1)}0`));
}
