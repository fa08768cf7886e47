import { and, desc, eq, gt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring, takeRow } from './expiring_rows.ts';
import { oauthFlows } from './tables.ts';

export type OAuthFlowRow = typeof oauthFlows.$inferSelect;

/** Stores a started authorisation, replaces an earlier one of the same user and kind, and deletes expired ones. */
export function insertFlow(database: Database, row: OAuthFlowRow, nowSeconds: number): Statement[] {
  const { connectorId, userId, grant } = row;
  const same = [eq(oauthFlows.connectorId, connectorId), eq(oauthFlows.userId, userId), eq(oauthFlows.grant, grant)];
  return [
    database.read.delete(oauthFlows).where(and(...same)),
    ...insertExpiring(database, oauthFlows, row, nowSeconds),
  ];
}

export async function findFlow(database: Database, id: string, nowSeconds: number): Promise<OAuthFlowRow | null> {
  const rows = await database.read
    .select()
    .from(oauthFlows)
    .where(and(eq(oauthFlows.id, id), gt(oauthFlows.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** The device authorisation that a user has in progress for a connector; null if there is none. */
export async function findDeviceFlow(
  database: Database,
  flow: { readonly connectorId: string; readonly userId: string },
  nowSeconds: number,
): Promise<OAuthFlowRow | null> {
  const mine = [eq(oauthFlows.connectorId, flow.connectorId), eq(oauthFlows.userId, flow.userId)];
  const rows = await database.read
    .select()
    .from(oauthFlows)
    .where(and(...mine, eq(oauthFlows.grant, 'device'), gt(oauthFlows.expiresAt, nowSeconds)))
    .orderBy(desc(oauthFlows.expiresAt))
    .limit(1);
  return rows[0] ?? null;
}

/** Uses up an authorisation; of two concurrent callbacks one succeeds. */
export function takeFlow(database: Database, id: string): Statement[] {
  return takeRow(database, oauthFlows, oauthFlows.id, id);
}

/** Sets when a device's code is redeemed next; of two concurrent callers one succeeds. */
export function postponePoll(
  database: Database,
  row: OAuthFlowRow,
  next: Pick<OAuthFlowRow, 'intervalSeconds' | 'nextPollAt'>,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM oauth_flows WHERE id = ${row.id} AND next_poll_at = ${row.nextPollAt})`),
    database.read.update(oauthFlows).set(next).where(eq(oauthFlows.id, row.id)),
  ];
}
