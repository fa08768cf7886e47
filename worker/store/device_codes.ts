import { and, eq, gt, inArray, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring, takeRow } from './expiring_rows.ts';
import { deviceCodes } from './tables.ts';

export type DeviceCodeRow = typeof deviceCodes.$inferSelect;

/** Stores a program's request, and deletes expired ones. A conflict if its code is in use. */
export function insertDeviceCode(database: Database, row: DeviceCodeRow, nowSeconds: number): Statement[] {
  return insertExpiring(database, deviceCodes, row, nowSeconds);
}

export async function findDeviceCode(
  database: Database,
  codeHash: string,
  nowSeconds: number,
): Promise<DeviceCodeRow | null> {
  const isLive = gt(deviceCodes.expiresAt, nowSeconds);
  const rows = await database.read
    .select()
    .from(deviceCodes)
    .where(and(eq(deviceCodes.codeHash, codeHash), isLive));
  return rows[0] ?? null;
}

/** The undecided request with a typed code, by one of its keyed hashes. */
export async function findPendingDevice(
  database: Database,
  userCodeMacs: readonly string[],
  nowSeconds: number,
): Promise<DeviceCodeRow | null> {
  const isOpen = and(eq(deviceCodes.state, 'pending'), gt(deviceCodes.expiresAt, nowSeconds));
  const rows = await database.read
    .select()
    .from(deviceCodes)
    .where(and(inArray(deviceCodes.userCodeMac, [...userCodeMacs]), isOpen));
  return rows[0] ?? null;
}

/** Records a poll and when the next one is allowed. A conflict with a concurrent poll. */
export function postponeDevicePoll(
  database: Database,
  row: DeviceCodeRow,
  next: { readonly intervalSeconds: number; readonly nextPollAt: number },
): Statement[] {
  const { codeHash, nextPollAt } = row;
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM device_codes WHERE code_hash = ${codeHash} AND next_poll_at = ${nextPollAt})`),
    database.read.update(deviceCodes).set(next).where(eq(deviceCodes.codeHash, codeHash)),
  ];
}

/** Decides an undecided request; otherwise a conflict. */
export function decideDevice(
  database: Database,
  codeHash: string,
  decision: { readonly state: 'approved' | 'denied'; readonly userId: string; readonly provider: string },
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM device_codes WHERE code_hash = ${codeHash} AND state = 'pending')`),
    database.read.update(deviceCodes).set(decision).where(eq(deviceCodes.codeHash, codeHash)),
  ];
}

/** Uses up a decided request; a conflict if it was used. */
export function takeDeviceCode(database: Database, codeHash: string): Statement[] {
  return takeRow(database, deviceCodes, deviceCodes.codeHash, codeHash);
}
