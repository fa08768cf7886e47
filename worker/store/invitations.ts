import { and, desc, eq, isNull, lt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { invitations } from './tables.ts';

export type InvitationRow = typeof invitations.$inferSelect;

/** Stores an invitation, revokes an open one of the same address, and deletes those that ended long ago. */
export function insertInvitation(database: Database, row: InvitationRow, nowSeconds: number): Statement[] {
  const isSame = and(eq(invitations.enterpriseId, row.enterpriseId), eq(invitations.email, row.email));
  return [
    database.read
      .update(invitations)
      .set({ outcome: 'revoked' })
      .where(and(isSame, isNull(invitations.outcome))),
    ...insertExpiring(database, invitations, row, nowSeconds),
  ];
}

/** The invitations of an enterprise, newest first. */
export async function listInvitations(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<InvitationRow[]> {
  const after = page.after === null ? undefined : lt(invitations.id, page.after);
  return database.read
    .select()
    .from(invitations)
    .where(and(eq(invitations.enterpriseId, page.enterpriseId), after))
    .orderBy(desc(invitations.id))
    .limit(page.limit);
}

/** An invitation of this enterprise. */
export async function findInvitation(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<InvitationRow | null> {
  const isOne = and(eq(invitations.id, id), eq(invitations.enterpriseId, enterpriseId));
  const rows = await database.read.select().from(invitations).where(isOne);
  return rows[0] ?? null;
}

/** The invitation of a link, by the hash of its token. */
export async function findInvitationByToken(database: Database, tokenHash: string): Promise<InvitationRow | null> {
  const rows = await database.read.select().from(invitations).where(eq(invitations.tokenHash, tokenHash));
  return rows[0] ?? null;
}

/** Ends an invitation; a conflict unless it is open. So of two who accept it at once, one does. */
export function endInvitation(
  database: Database,
  id: string,
  { outcome, nowSeconds }: { readonly outcome: 'accepted' | 'revoked'; readonly nowSeconds: number },
): Statement[] {
  const isOpen = sql`SELECT 1 FROM invitations WHERE id = ${id} AND outcome IS NULL AND ends_at > ${nowSeconds}`;
  return [
    ...guard(sql`EXISTS (${isOpen})`),
    database.read.update(invitations).set({ outcome }).where(eq(invitations.id, id)),
  ];
}
