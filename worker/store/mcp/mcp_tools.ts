import { and, asc, eq, gt, inArray, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { mcpTools } from '../tables.ts';

export type McpToolRow = typeof mcpTools.$inferSelect;
/** A row without its definition. */
type McpToolSummary = Pick<McpToolRow, 'hash' | 'kind' | 'name' | 'state' | 'seenAt'> & {
  readonly characters: number;
};

const ROWS_PER_READ = 2_000;
const ROWS_PER_WRITE = 50;

/** Every form of every tool of a server, by name. */
export function listMcpTools(database: Database, serverId: string): Promise<McpToolRow[]> {
  return database.read
    .select()
    .from(mcpTools)
    .where(eq(mcpTools.serverId, serverId))
    .orderBy(asc(mcpTools.name), asc(mcpTools.seenAt));
}

export async function summariseMcpTools(database: Database, serverId: string): Promise<McpToolSummary[]> {
  const { hash, kind, name, state, seenAt } = mcpTools;
  return database.read
    .select({ hash, kind, name, state, seenAt, characters: sql<number>`length(${mcpTools.definition})` })
    .from(mcpTools)
    .where(eq(mcpTools.serverId, serverId));
}

/** The reviewed tools of these servers, read in parts because a database reply is limited in size. */
export async function listReviewedTools(
  database: Database,
  serverIds: readonly string[],
): Promise<readonly Pick<McpToolRow, 'serverId' | 'hash'>[]> {
  const found: Pick<McpToolRow, 'serverId' | 'hash'>[] = [];
  if (serverIds.length === 0) return found;
  for (;;) {
    const last = found.at(-1);
    const later =
      last &&
      or(gt(mcpTools.serverId, last.serverId), and(eq(mcpTools.serverId, last.serverId), gt(mcpTools.hash, last.hash)));
    const rows = await database.read
      .select({ serverId: mcpTools.serverId, hash: mcpTools.hash })
      .from(mcpTools)
      .where(and(inArray(mcpTools.serverId, [...serverIds]), eq(mcpTools.state, 'reviewed'), later))
      .orderBy(asc(mcpTools.serverId), asc(mcpTools.hash))
      .limit(ROWS_PER_READ);
    found.push(...rows);
    if (rows.length < ROWS_PER_READ) return found;
  }
}

/** Adds tools to a server that still exists. */
export function insertMcpTools(database: Database, serverId: string, rows: readonly McpToolRow[]): Statement[] {
  const parts = Array.from({ length: Math.ceil(rows.length / ROWS_PER_WRITE) }, (_, part) =>
    rows.slice(part * ROWS_PER_WRITE, (part + 1) * ROWS_PER_WRITE),
  );
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM mcp_servers WHERE id = ${serverId})`),
    ...parts.map((part) => database.read.insert(mcpTools).values(part)),
  ];
}

/** Marks waiting tools as reviewed by a user. */
export function acceptMcpTools(
  database: Database,
  serverId: string,
  hashes: readonly string[],
  { by, at }: { readonly by: string; readonly at: string },
): Statement[] {
  return hashes.flatMap((hash) => [
    ...guard(
      sql`EXISTS (SELECT 1 FROM mcp_tools WHERE server_id = ${serverId} AND hash = ${hash} AND state = 'waiting')`,
    ),
    database.read
      .update(mcpTools)
      .set({ state: 'reviewed', reviewedBy: by, reviewedAt: at })
      .where(and(eq(mcpTools.serverId, serverId), eq(mcpTools.hash, hash))),
  ]);
}

export function dropMcpTools(database: Database, serverId: string, hashes: readonly string[]): Statement[] {
  if (hashes.length === 0) return [];
  return [
    database.read.delete(mcpTools).where(and(eq(mcpTools.serverId, serverId), inArray(mcpTools.hash, [...hashes]))),
  ];
}
