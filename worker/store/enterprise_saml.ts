import { and, eq, gt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { enterpriseSaml, samlAnswers } from './tables.ts';

export type EnterpriseSamlRow = typeof enterpriseSaml.$inferSelect;
type SamlAnswerRow = typeof samlAnswers.$inferSelect;

export async function findEnterpriseSaml(database: Database, enterpriseId: string): Promise<EnterpriseSamlRow | null> {
  const rows = await database.read.select().from(enterpriseSaml).where(eq(enterpriseSaml.enterpriseId, enterpriseId));
  return rows[0] ?? null;
}

export function deleteEnterpriseSaml(database: Database, enterpriseId: string): Statement {
  return database.read.delete(enterpriseSaml).where(eq(enterpriseSaml.enterpriseId, enterpriseId));
}

export function putEnterpriseSaml(database: Database, row: EnterpriseSamlRow): Statement[] {
  return [deleteEnterpriseSaml(database, row.enterpriseId), database.read.insert(enterpriseSaml).values(row)];
}

/** Stores an accepted assertion, and deletes those that can no longer be sent; a conflict if it was accepted before. */
export function insertSamlAnswer(database: Database, row: SamlAnswerRow, nowSeconds: number): Statement[] {
  return insertExpiring(database, samlAnswers, row, nowSeconds);
}

export async function findSamlAnswer(
  database: Database,
  codeHash: string,
  nowSeconds: number,
): Promise<SamlAnswerRow | null> {
  const rows = await database.read
    .select()
    .from(samlAnswers)
    .where(and(eq(samlAnswers.codeHash, codeHash), gt(samlAnswers.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** Uses up an answer and keeps its assertion's hash; of two concurrent callers one succeeds. */
export function takeSamlAnswer(database: Database, codeHash: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM saml_answers WHERE code_hash = ${codeHash})`),
    database.read.update(samlAnswers).set({ codeHash: null, identity: null }).where(eq(samlAnswers.codeHash, codeHash)),
  ];
}
