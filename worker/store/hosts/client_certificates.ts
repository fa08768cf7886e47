import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { clientCertificates } from '../tables.ts';

export type ClientCertificateRow = typeof clientCertificates.$inferSelect;

export async function findClientCertificate(
  database: Database,
  ownerId: string,
  id: string,
): Promise<ClientCertificateRow | null> {
  const rows = await database.read
    .select()
    .from(clientCertificates)
    .where(and(eq(clientCertificates.id, id), eq(clientCertificates.ownerId, ownerId)));
  return rows[0] ?? null;
}

/** The certificate of this owner for this host. */
export async function findClientCertificateAt(
  database: Database,
  { ownerId, host }: Pick<ClientCertificateRow, 'ownerId' | 'host'>,
): Promise<ClientCertificateRow | null> {
  const rows = await database.read
    .select()
    .from(clientCertificates)
    .where(and(eq(clientCertificates.ownerId, ownerId), eq(clientCertificates.host, host)));
  return rows[0] ?? null;
}

/** Those of one owner in the order of their hosts, after a host. */
export async function listClientCertificates(
  database: Database,
  page: { readonly ownerId: string; readonly after: string | null; readonly limit: number },
): Promise<ClientCertificateRow[]> {
  const { ownerId, after, limit } = page;
  const later = after === null ? undefined : gt(clientCertificates.host, after);
  return database.read
    .select()
    .from(clientCertificates)
    .where(and(eq(clientCertificates.ownerId, ownerId), later))
    .orderBy(asc(clientCertificates.host))
    .limit(limit);
}

export function insertClientCertificate(database: Database, row: ClientCertificateRow): Statement[] {
  return [database.read.insert(clientCertificates).values(row)];
}

export function deleteClientCertificate(database: Database, { id }: ClientCertificateRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM client_certificates WHERE id = ${id})`),
    database.read.delete(clientCertificates).where(eq(clientCertificates.id, id)),
  ];
}
