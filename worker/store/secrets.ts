import { and, asc, count, eq, gt, inArray, isNull, or, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import {
  bindingCredentials,
  clientCertificates,
  connectorCredentials,
  connectors,
  hostBindings,
  mcpReferences,
  mcpServers,
  secrets,
} from './tables.ts';

export type SecretRow = typeof secrets.$inferSelect;
/** A secret without its value. */
export type SecretSummary = Omit<SecretRow, 'sealed' | 'fingerprint'>;
/** A place in the vault: its owner and its path. */
export interface VaultPlace {
  readonly ownerId: string;
  readonly path: string;
}

const SUMMARY = {
  id: secrets.id,
  enterpriseId: secrets.enterpriseId,
  ownerId: secrets.ownerId,
  path: secrets.path,
  description: secrets.description,
  version: secrets.version,
  expiresAt: secrets.expiresAt,
  createdAt: secrets.createdAt,
  updatedAt: secrets.updatedAt,
};

export async function findSecret(database: Database, place: VaultPlace): Promise<SecretSummary | null> {
  const rows = await database.read.select(SUMMARY).from(secrets).where(isAt(place));
  return rows[0] ?? null;
}

export async function findSecretById(database: Database, ownerId: string, id: string): Promise<SecretSummary | null> {
  const rows = await database.read
    .select(SUMMARY)
    .from(secrets)
    .where(and(eq(secrets.id, id), eq(secrets.ownerId, ownerId)));
  return rows[0] ?? null;
}

/** Secrets of these owners in the order of owner and path, after a position. */
export async function listSecrets(
  database: Database,
  page: { readonly ownerIds: readonly string[]; readonly after: VaultPlace | null; readonly limit: number },
): Promise<SecretSummary[]> {
  const { after } = page;
  const later =
    after &&
    or(gt(secrets.ownerId, after.ownerId), and(eq(secrets.ownerId, after.ownerId), gt(secrets.path, after.path)));
  return database.read
    .select(SUMMARY)
    .from(secrets)
    .where(and(inArray(secrets.ownerId, [...page.ownerIds]), later ?? undefined))
    .orderBy(asc(secrets.ownerId), asc(secrets.path))
    .limit(page.limit);
}

export function insertSecret(database: Database, row: SecretRow): Statement[] {
  return [database.read.insert(secrets).values(row)];
}

/** Replaces the value of a secret, if it still has the previous version. */
export function replaceSecret(database: Database, row: SecretRow): Statement[] {
  const unchanged = sql`EXISTS (SELECT 1 FROM secrets WHERE id = ${row.id} AND version = ${row.version - 1})`;
  const { sealed, fingerprint, version, description, expiresAt, updatedAt } = row;
  return [
    ...guard(unchanged),
    database.read
      .update(secrets)
      .set({ sealed, fingerprint, version, description, expiresAt, updatedAt })
      .where(eq(secrets.id, row.id)),
  ];
}

/** Deletes a secret, if no binding, client certificate or connector refers to it. */
export function deleteSecret(database: Database, row: SecretSummary): Statement[] {
  const used = sql`SELECT 1 FROM binding_credentials WHERE owner_id = ${row.ownerId} AND path = ${row.path}`;
  const certified = sql`SELECT 1 FROM client_certificates WHERE owner_id = ${row.ownerId} AND path = ${row.path}`;
  const connected = sql`SELECT 1 FROM connector_credentials WHERE owner_id = ${row.ownerId} AND path = ${row.path}`;
  const there = sql`SELECT 1 FROM secrets WHERE id = ${row.id}`;
  return [
    ...guard(
      sql`NOT EXISTS (${used}) AND NOT EXISTS (${certified}) AND NOT EXISTS (${connected}) AND EXISTS (${there})`,
    ),
    database.read.delete(secrets).where(eq(secrets.id, row.id)),
  ];
}

/** The bindings that refer to a vault place. */
export async function bindingsUsing(database: Database, place: VaultPlace): Promise<{ id: string; host: string }[]> {
  return database.read
    .select({ id: hostBindings.id, host: hostBindings.host })
    .from(bindingCredentials)
    .innerJoin(hostBindings, eq(hostBindings.id, bindingCredentials.bindingId))
    .where(and(eq(bindingCredentials.ownerId, place.ownerId), eq(bindingCredentials.path, place.path)))
    .orderBy(asc(hostBindings.host))
    .limit(100);
}

/** What refers to a place in the vault, with its name for people: a host, a connector's name, or a server's. */
export interface CredentialUse extends VaultPlace {
  readonly kind: 'binding' | 'client_certificate' | 'connector' | 'mcp_server';
  readonly id: string;
  readonly name: string;
}

/** Everything that refers to places of these owners; `path` limits it to one. */
export async function listCredentialUses(
  database: Database,
  ownerIds: readonly string[],
  path?: string,
): Promise<CredentialUse[]> {
  const at = (
    table: typeof bindingCredentials | typeof clientCertificates | typeof connectorCredentials | typeof mcpReferences,
  ): SQL | undefined =>
    and(inArray(table.ownerId, [...ownerIds]), path === undefined ? undefined : eq(table.path, path));
  const [bound, certified, connected, referred, authorised] = await Promise.all([
    database.read
      .select({
        ownerId: bindingCredentials.ownerId,
        path: bindingCredentials.path,
        id: hostBindings.id,
        name: hostBindings.host,
      })
      .from(bindingCredentials)
      .innerJoin(hostBindings, eq(hostBindings.id, bindingCredentials.bindingId))
      .where(at(bindingCredentials)),
    listCertifiedHosts(database, at(clientCertificates)),
    database.read
      .select({
        ownerId: connectorCredentials.ownerId,
        path: connectorCredentials.path,
        id: connectors.id,
        name: connectors.fqn,
      })
      .from(connectorCredentials)
      .innerJoin(connectors, eq(connectors.id, connectorCredentials.connectorId))
      .where(at(connectorCredentials)),
    database.read
      .select({ ownerId: mcpReferences.ownerId, path: mcpReferences.path, id: mcpServers.id, name: mcpServers.name })
      .from(mcpReferences)
      .innerJoin(mcpServers, eq(mcpServers.id, mcpReferences.serverId))
      .where(at(mcpReferences)),
    // The sign-in of a remote server is stored as a connector's is.
    database.read
      .select({
        ownerId: connectorCredentials.ownerId,
        path: connectorCredentials.path,
        id: mcpServers.id,
        name: mcpServers.name,
      })
      .from(connectorCredentials)
      .innerJoin(mcpServers, eq(mcpServers.id, connectorCredentials.connectorId))
      .where(at(connectorCredentials)),
  ]);
  const uses = [
    ...bound.map((row) => ({ ...row, kind: 'binding' as const })),
    ...certified.map((row) => ({ ...row, kind: 'client_certificate' as const })),
    ...connected.map((row) => ({ ...row, kind: 'connector' as const })),
    ...[...referred, ...authorised].map((row) => ({ ...row, kind: 'mcp_server' as const })),
  ];
  return [...new Map(uses.map((use) => [`${use.ownerId} ${use.path} ${use.id}`, use])).values()];
}

function listCertifiedHosts({ read }: Database, where: SQL | undefined) {
  const { ownerId, path, id, host } = clientCertificates;
  return read.select({ ownerId, path, id, name: host }).from(clientCertificates).where(where);
}

/**
 * The stored secrets that bindings, client certificates, connectors and MCP servers of these owners refer to. A sidecar of theirs can
 * receive no others.
 */
export async function listReferredSecrets(database: Database, ownerIds: readonly string[]): Promise<SecretSummary[]> {
  return database.read
    .select(SUMMARY)
    .from(secrets)
    .where(and(inArray(secrets.ownerId, [...ownerIds]), isReferredTo))
    .orderBy(asc(secrets.ownerId), asc(secrets.path));
}

const isReferredTo = or(
  sql`EXISTS (SELECT 1 FROM ${clientCertificates} WHERE ${clientCertificates.ownerId} = ${secrets.ownerId} AND ${clientCertificates.path} = ${secrets.path})`,
  sql`EXISTS (SELECT 1 FROM ${bindingCredentials} WHERE ${bindingCredentials.ownerId} = ${secrets.ownerId} AND ${bindingCredentials.path} = ${secrets.path})`,
  sql`EXISTS (SELECT 1 FROM ${connectorCredentials} WHERE ${connectorCredentials.ownerId} = ${secrets.ownerId} AND ${connectorCredentials.path} = ${secrets.path})`,
  sql`EXISTS (SELECT 1 FROM ${mcpReferences} WHERE ${mcpReferences.ownerId} = ${secrets.ownerId} AND ${mcpReferences.path} = ${secrets.path})`,
);

/** Those of these paths that hold a secret, with their owner. */
export async function findStored(
  database: Database,
  ownerIds: readonly string[],
  paths: readonly string[],
): Promise<VaultPlace[]> {
  return database.read
    .select({ ownerId: secrets.ownerId, path: secrets.path })
    .from(secrets)
    .where(and(inArray(secrets.ownerId, [...ownerIds]), inArray(secrets.path, [...new Set(paths)])));
}

/** A secret that a binding, connector or MCP server of its owner refers to, with its sealed value. */
export async function findReferredSecret(database: Database, place: VaultPlace): Promise<SecretRow | null> {
  const rows = await database.read
    .select()
    .from(secrets)
    .where(and(isAt(place), isReferredTo));
  return rows[0] ?? null;
}

/** A secret with its sealed value, whether or not something refers to it. */
export async function findSealedSecret(database: Database, place: VaultPlace): Promise<SecretRow | null> {
  const rows = await database.read.select().from(secrets).where(isAt(place));
  return rows[0] ?? null;
}

/** The secrets of these owners with one of these fingerprints. */
export async function secretsWithFingerprint(
  database: Database,
  ownerIds: readonly string[],
  fingerprints: readonly string[],
): Promise<Pick<SecretRow, 'ownerId' | 'path' | 'fingerprint'>[]> {
  return database.read
    .select({ ownerId: secrets.ownerId, path: secrets.path, fingerprint: secrets.fingerprint })
    .from(secrets)
    .where(and(inArray(secrets.ownerId, [...ownerIds]), inArray(secrets.fingerprint, [...fingerprints])))
    .orderBy(asc(secrets.ownerId), asc(secrets.path));
}

/** Secrets of these owners whose fingerprint is missing or was made with another key, which has another prefix. */
export async function secretsWithoutFingerprint(
  database: Database,
  ownerIds: readonly string[],
  page: { readonly mark: string; readonly limit: number },
): Promise<SecretRow[]> {
  return database.read
    .select()
    .from(secrets)
    .where(
      and(
        inArray(secrets.ownerId, [...ownerIds]),
        or(isNull(secrets.fingerprint), sql`substr(${secrets.fingerprint}, 1, ${page.mark.length}) <> ${page.mark}`),
      ),
    )
    .limit(page.limit);
}

/** Stores a fingerprint, if the value was not changed since it was made. */
export function setFingerprint(database: Database, row: SecretRow, fingerprint: string): Statement {
  return database.read
    .update(secrets)
    .set({ fingerprint })
    .where(and(eq(secrets.id, row.id), eq(secrets.version, row.version)));
}

/** Whether there is any secret. */
export async function hasSecrets(database: Database): Promise<boolean> {
  const rows = await database.read.select({ id: secrets.id }).from(secrets).limit(1);
  return rows.length > 0;
}

export async function countSecrets(database: Database, ownerIds: readonly string[]): Promise<number> {
  const rows = await database.read
    .select({ n: count() })
    .from(secrets)
    .where(inArray(secrets.ownerId, [...ownerIds]));
  return rows[0]?.n ?? 0;
}

function isAt(place: VaultPlace) {
  return and(eq(secrets.ownerId, place.ownerId), eq(secrets.path, place.path));
}
