import { and, asc, eq, gt, inArray, isNotNull, lte, or, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import type { Lease } from './lease.ts';
import type { RowPage } from '../sealed_rows.ts';
import type { VaultPlace } from '../secrets.ts';
import { secrets, secretSources } from '../tables.ts';

export type SourceRow = typeof secretSources.$inferSelect;
/** A source with the secret whose value it mints. */
export interface SourcedSecret {
  readonly source: SourceRow;
  readonly secret: {
    readonly id: string;
    readonly enterpriseId: string;
    readonly ownerId: string;
    readonly path: string;
    readonly description: string | null;
    readonly version: number;
    readonly createdAt: string;
  };
}

function selectSources(database: Database) {
  return database.read
    .select({
      source: secretSources,
      secret: {
        id: secrets.id,
        enterpriseId: secrets.enterpriseId,
        ownerId: secrets.ownerId,
        path: secrets.path,
        description: secrets.description,
        version: secrets.version,
        createdAt: secrets.createdAt,
      },
    })
    .from(secretSources)
    .innerJoin(secrets, eq(secrets.id, secretSources.secretId))
    .$dynamic();
}

/** The source of a secret; null if its value is stored. */
export async function findSource(database: Database, secretId: string): Promise<SourcedSecret | null> {
  const rows = await selectSources(database).where(eq(secretSources.secretId, secretId));
  return rows[0] ?? null;
}

/** Sources of secrets at these paths that hold a value. */
export async function listHoldingSources(
  database: Database,
  ownerId: string,
  paths: readonly string[],
): Promise<SourcedSecret[]> {
  if (paths.length === 0) return [];
  return selectSources(database).where(
    and(eq(secrets.ownerId, ownerId), inArray(secrets.path, [...paths]), isNotNull(secretSources.sealedValue)),
  );
}

/** What tells a source that holds a value from others, without the value. */
export type LiveHolder = Pick<SourceRow, 'secretId' | 'config'>;

/** The sources of an enterprise and a kind that hold a value which has not ended, in the order of their secrets' ids. */
export function listLiveHolders(
  database: Database,
  page: RowPage & { readonly enterpriseId: string; readonly kind: SourceRow['kind']; readonly now: string },
): Promise<LiveHolder[]> {
  const { enterpriseId, kind, now, after, limit } = page;
  const isLive = and(isNotNull(secretSources.sealedValue), gt(secretSources.expiresAt, now));
  const isMeant = and(eq(secrets.enterpriseId, enterpriseId), eq(secretSources.kind, kind), isLive);
  return database.read
    .select({ secretId: secretSources.secretId, config: secretSources.config })
    .from(secretSources)
    .innerJoin(secrets, eq(secrets.id, secretSources.secretId))
    .where(and(isMeant, gt(secretSources.secretId, after)))
    .orderBy(asc(secretSources.secretId))
    .limit(limit);
}

/** Sources of all secrets of these owners. */
export function listSourcesOfOwners(database: Database, owners: SQL): Promise<SourcedSecret[]> {
  return selectSources(database).where(inArray(secrets.ownerId, owners));
}

export async function findSourceAt(database: Database, { ownerId, path }: VaultPlace): Promise<SourcedSecret | null> {
  const rows = await selectSources(database).where(and(eq(secrets.ownerId, ownerId), eq(secrets.path, path)));
  return rows[0] ?? null;
}

/** The kinds of the sources of these owners' secrets, by the secret's id. */
export async function listSourceKinds(
  database: Database,
  ownerIds: readonly string[],
): Promise<ReadonlyMap<string, SourceRow['kind']>> {
  const rows = await database.read
    .select({ id: secrets.id, kind: secretSources.kind })
    .from(secretSources)
    .innerJoin(secrets, eq(secrets.id, secretSources.secretId))
    .where(inArray(secrets.ownerId, [...ownerIds]));
  return new Map(rows.map(({ id, kind }) => [id, kind]));
}

/** Sources of these owners' secrets in the order of owner and path, after a position. */
export async function listSources(
  database: Database,
  page: { readonly ownerIds: readonly string[]; readonly after: VaultPlace | null; readonly limit: number },
): Promise<SourcedSecret[]> {
  const { after } = page;
  const later =
    after &&
    or(gt(secrets.ownerId, after.ownerId), and(eq(secrets.ownerId, after.ownerId), gt(secrets.path, after.path)));
  return selectSources(database)
    .where(and(inArray(secrets.ownerId, [...page.ownerIds]), later ?? undefined))
    .orderBy(asc(secrets.ownerId), asc(secrets.path))
    .limit(page.limit);
}

/** Stores the source of a secret, after the secret: the new version has deleted an earlier source. */
export function insertSource(database: Database, row: SourceRow): Statement {
  return database.read.insert(secretSources).values(row);
}

/** Changes a source, if neither it nor its secret was changed since it was read. */
export function changeSource(database: Database, { source, secret }: SourcedSecret, change: Partial<SourceRow>) {
  return [
    ...guard(unchanged({ source, secret })),
    database.read.update(secretSources).set(change).where(eq(secretSources.secretId, source.secretId)),
  ];
}

/** Takes the lease of a source, if nobody holds it and nothing was changed since it was read. */
export function takeSourceLease(database: Database, read: SourcedSecret, lease: Lease): Statement[] {
  const free = sql`SELECT 1 FROM secret_sources WHERE secret_id = ${read.source.secretId}
    AND (lease IS NULL OR lease_until <= ${lease.now} OR lease_until > ${lease.longest})`;
  return [
    ...guard(sql`EXISTS (${free})`),
    ...changeSource(database, read, { lease: lease.id, leaseUntil: lease.until }),
  ];
}

function unchanged({ source, secret }: SourcedSecret) {
  return sql`EXISTS (SELECT 1 FROM secret_sources JOIN secrets ON secrets.id = secret_id WHERE secret_id = ${source.secretId}
    AND secret_sources.updated_at = ${source.updatedAt} AND version = ${secret.version})`;
}

/** Forgets the values whose end has come, and those that were minted later than can be. */
export function forgetEndedValues(
  database: Database,
  { now, latestMint }: { readonly now: string; readonly latestMint: string },
): Statement {
  const isOver = or(lte(secretSources.expiresAt, now), gt(secretSources.mintedAt, latestMint));
  return database.read
    .update(secretSources)
    .set({ sealedValue: null, sealedRevocation: null })
    .where(and(isNotNull(secretSources.sealedValue), isOver));
}

/** Sources in the order of their secrets' ids, for a change of the master key. */
export function listSealedSources(database: Database, { after, limit }: RowPage): Promise<SourcedSecret[]> {
  return selectSources(database)
    .where(gt(secretSources.secretId, after))
    .orderBy(asc(secretSources.secretId))
    .limit(limit);
}

/** Replaces a sealed text, if it was not changed since it was read. */
export function resealSource(
  database: Database,
  { secretId }: SourceRow,
  column: 'sealedMaterial' | 'sealedValue' | 'sealedRevocation',
  { before, after }: { readonly before: string; readonly after: string },
): Statement {
  return database.read
    .update(secretSources)
    .set({ [column]: after })
    .where(and(eq(secretSources.secretId, secretId), eq(secretSources[column], before)));
}
