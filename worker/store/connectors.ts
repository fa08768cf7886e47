import type { Lease } from './sources/lease.ts';
import { and, asc, eq, getTableColumns, gt, inArray, or, sql, type SQL } from 'drizzle-orm';
import { isReservedVaultPath } from '../../shared/model/vault_path.ts';
import { type Database, guard, type Statement } from './database.ts';
import { connectorCredentials, connectors, connectorVersions, secrets } from './tables.ts';

export type ConnectorRow = typeof connectors.$inferSelect;
export type ConnectorCredentialRow = typeof connectorCredentials.$inferSelect;
/** A connector without its spec, which may have a megabyte. */
export type ConnectorSummaryRow = Omit<ConnectorRow, 'spec'>;

/** A connector with the state of its credential; null if none is stored. */
export interface WithCredential<Row> {
  readonly connector: Row;
  readonly credential: ConnectorCredentialRow | null;
}

const { spec: _, ...SUMMARY } = getTableColumns(connectors);

export async function findConnector(
  database: Database,
  ownerIds: readonly string[],
  id: string,
): Promise<WithCredential<ConnectorRow> | null> {
  const rows = await selectWhole(database).where(
    and(eq(connectors.id, id), inArray(connectors.ownerId, [...ownerIds])),
  );
  return rows[0] ?? null;
}

/** A connector of any owner, for callers that have checked access before. */
export async function findConnectorById(database: Database, id: string): Promise<WithCredential<ConnectorRow> | null> {
  const rows = await selectWhole(database).where(eq(connectors.id, id));
  return rows[0] ?? null;
}

/** The connectors of this name, at most one per owner. */
export async function findConnectorsNamed(
  database: Database,
  ownerIds: readonly string[],
  fqn: string,
): Promise<WithCredential<ConnectorRow>[]> {
  return selectWhole(database).where(and(eq(connectors.fqn, fqn), inArray(connectors.ownerId, [...ownerIds])));
}

/** Where a page of connectors continues. */
export type ConnectorPosition = Pick<ConnectorRow, 'ownerId' | 'fqn'>;

interface Paging {
  readonly ownerIds: readonly string[];
  readonly fqn?: string | undefined;
  /** Only those whose spec contains this host, as a host or elsewhere. */
  readonly host?: string | undefined;
  readonly after: ConnectorPosition | null;
  readonly limit: number;
}

/** Connectors of these owners in the order of owner and name, after a position. */
export async function listConnectors(database: Database, page: Paging): Promise<WithCredential<ConnectorSummaryRow>[]> {
  return database.read
    .select({ connector: SUMMARY, credential: connectorCredentials })
    .from(connectors)
    .leftJoin(connectorCredentials, eq(connectorCredentials.connectorId, connectors.id))
    .where(onPage(page))
    .orderBy(asc(connectors.ownerId), asc(connectors.fqn))
    .limit(page.limit);
}

/** The same with their specs; few at a time, because a database reply is limited in size. */
export async function listWholeConnectors(database: Database, page: Paging): Promise<WithCredential<ConnectorRow>[]> {
  return selectWhole(database)
    .where(onPage(page))
    .orderBy(asc(connectors.ownerId), asc(connectors.fqn))
    .limit(page.limit);
}

function selectWhole(database: Database) {
  return database.read
    .select({ connector: connectors, credential: connectorCredentials })
    .from(connectors)
    .leftJoin(connectorCredentials, eq(connectorCredentials.connectorId, connectors.id))
    .$dynamic();
}

function onPage({ ownerIds, fqn, host, after }: Paging) {
  const later =
    after &&
    or(
      gt(connectors.ownerId, after.ownerId),
      and(eq(connectors.ownerId, after.ownerId), gt(connectors.fqn, after.fqn)),
    );
  const named = fqn === undefined ? undefined : eq(connectors.fqn, fqn);
  const naming = host === undefined ? undefined : sql`instr(${connectors.spec}, ${JSON.stringify(host)}) > 0`;
  return and(inArray(connectors.ownerId, [...ownerIds]), named, naming, later ?? undefined);
}

/** The hash of this version of a connector when it was installed; null if it never was. */
export async function findVersionHash(database: Database, id: string, version: string): Promise<string | null> {
  const rows = await database.read
    .select({ hash: connectorVersions.contentHash })
    .from(connectorVersions)
    .where(and(eq(connectorVersions.connectorId, id), eq(connectorVersions.version, version)));
  return rows[0]?.hash ?? null;
}

/** What tells the connectors of these owners apart. */
export async function listConnectorPlaces(
  database: Database,
  ownerIds: readonly string[],
): Promise<Pick<ConnectorRow, 'fqn' | 'hosts' | 'activatedAt'>[]> {
  return database.read
    .select({ fqn: connectors.fqn, hosts: connectors.hosts, activatedAt: connectors.activatedAt })
    .from(connectors)
    .where(inArray(connectors.ownerId, [...ownerIds]));
}

export function insertConnector(database: Database, row: ConnectorRow): Statement[] {
  return [database.read.insert(connectors).values(row), noteVersion(database, row)];
}

/** Replaces the content of a connector, if it was not changed since it was read. */
export function replaceConnector(database: Database, row: ConnectorRow, beforeHash: string): Statement[] {
  const { id, createdAt: _c, ownerId: _o, enterpriseId: _e, activatedAt: _a, ...content } = row;
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM connectors WHERE id = ${id} AND content_hash = ${beforeHash})`),
    database.read.update(connectors).set(content).where(eq(connectors.id, id)),
    noteVersion(database, row),
  ];
}

function noteVersion(database: Database, { id, version, contentHash }: ConnectorRow): Statement {
  return database.read
    .insert(connectorVersions)
    .values({ connectorId: id, version, contentHash })
    .onConflictDoNothing();
}

/** Deletes a connector with everything that depends on it. */
export function deleteConnector(database: Database, row: Pick<ConnectorRow, 'id'>): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM connectors WHERE id = ${row.id})`),
    database.read.delete(connectors).where(eq(connectors.id, row.id)),
    database.read.delete(connectorVersions).where(eq(connectorVersions.connectorId, row.id)),
  ];
}

/** Stores the metadata of a connector's credential, if the connector and the value still exist. */
export function putConnectorCredential(database: Database, row: ConnectorCredentialRow): Statement[] {
  const { connectorId: _id, ...content } = row;
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM connectors WHERE id = ${row.connectorId} AND credential_kind = ${row.kind})`),
    ...guard(sql`EXISTS (SELECT 1 FROM secrets WHERE owner_id = ${row.ownerId} AND path = ${row.path})`),
    database.read
      .insert(connectorCredentials)
      .values(row)
      .onConflictDoUpdate({ target: connectorCredentials.connectorId, set: content }),
  ];
}

/** True while a connector has no credential. */
export function guardNoCredential(connectorId: string): Statement[] {
  return guard(sql`NOT EXISTS (SELECT 1 FROM connector_credentials WHERE connector_id = ${connectorId})`);
}

/** Deletes a connector's credential. Its value goes with it, unless that is a secret that others may use. */
export function deleteConnectorCredential(database: Database, row: ConnectorCredentialRow): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM connector_credentials WHERE connector_id = ${row.connectorId})`),
    database.read.delete(connectorCredentials).where(eq(connectorCredentials.connectorId, row.connectorId)),
    ...deleteOwnValue(database, row),
  ];
}

/** Deletes the value of a credential, if it is at a place of the connector alone. */
export function deleteOwnValue(database: Database, { ownerId, path }: ConnectorCredentialRow): Statement[] {
  if (!isReservedVaultPath(path)) return [];
  return [database.read.delete(secrets).where(and(eq(secrets.ownerId, ownerId), eq(secrets.path, path)))];
}

/** The credentials of an owner's connectors and MCP servers. */
export async function listCredentialsOf(database: Database, ownerId: string): Promise<ConnectorCredentialRow[]> {
  return listCredentialsOfOwners(database, sql`(${ownerId})`);
}

/** The same of several owners. */
export async function listCredentialsOfOwners(database: Database, owners: SQL): Promise<ConnectorCredentialRow[]> {
  return database.read.select().from(connectorCredentials).where(inArray(connectorCredentials.ownerId, owners));
}

/** The connectors whose credential is at a vault place. */
export async function listConnectorsAt(
  database: Database,
  place: { readonly ownerId: string; readonly path: string },
): Promise<WithCredential<ConnectorSummaryRow>[]> {
  return database.read
    .select({ connector: SUMMARY, credential: connectorCredentials })
    .from(connectorCredentials)
    .innerJoin(connectors, eq(connectors.id, connectorCredentials.connectorId))
    .where(and(eq(connectorCredentials.ownerId, place.ownerId), eq(connectorCredentials.path, place.path)))
    .orderBy(asc(connectors.fqn))
    .limit(100);
}

/** Takes the lease of a credential, if nobody holds it and the credential was not changed since it was read. */
export function takeLease(database: Database, row: ConnectorCredentialRow, lease: Lease): Statement[] {
  const { connectorId, updatedAt } = row;
  const free = sql`SELECT 1 FROM connector_credentials WHERE connector_id = ${connectorId} AND updated_at = ${updatedAt}
    AND (lease IS NULL OR lease_until <= ${lease.now} OR lease_until > ${lease.longest})`;
  return [
    ...guard(sql`EXISTS (${free})`),
    database.read
      .update(connectorCredentials)
      .set({ lease: lease.id, leaseUntil: lease.until })
      .where(eq(connectorCredentials.connectorId, connectorId)),
  ];
}

/** True while no refresh lease is held; pauses do not count. */
export function guardNoRefresh(now: number, pause: string): Statement[] {
  const held = sql`SELECT 1 FROM connector_credentials WHERE lease <> ${pause} AND lease_until > ${now}`;
  return guard(sql`NOT EXISTS (${held})`);
}

/** Changes a credential's metadata, if it was not replaced since it was read. */
export function changeCredential(
  database: Database,
  row: ConnectorCredentialRow,
  change: Partial<ConnectorCredentialRow>,
): Statement[] {
  const { connectorId, updatedAt } = row;
  const unchanged = sql`SELECT 1 FROM connector_credentials WHERE connector_id = ${connectorId} AND updated_at = ${updatedAt}`;
  return [
    ...guard(sql`EXISTS (${unchanged})`),
    database.read.update(connectorCredentials).set(change).where(eq(connectorCredentials.connectorId, connectorId)),
  ];
}

/** Turns the lease of a credential into something else, such as a pause. */
export function setLease(
  database: Database,
  row: ConnectorCredentialRow,
  lease: { readonly id: string; readonly until: number },
): Statement[] {
  return changeCredential(database, row, { lease: lease.id, leaseUntil: lease.until });
}
