import { and, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { MergedKind } from '../../../shared/wire/people/merges.ts';
import { type Database, guard, type Statement, statement } from '../database.ts';
import type { SecretRow } from '../secrets.ts';
import {
  approvalGrants,
  clientCertificates,
  connectors,
  enterprises,
  hostBindings,
  mcpServers,
  oauthFlows,
  pendingLogins,
  secrets,
  secretSources,
  shares,
  tunnelHosts,
  users,
} from '../tables.ts';

/** From whose rows to whose: a person's user who is alone in an enterprise, and the person's user in another one. */
export interface MergePlaces {
  readonly from: { readonly userId: string; readonly enterpriseId: string };
  readonly to: { readonly userId: string; readonly enterpriseId: string };
}

type OwnedTable = SQLiteTable & { readonly ownerId: SQLiteColumn; readonly id: SQLiteColumn };

/** The tables of what moves, with the text that is unique for an owner, and what a person is shown of it. */
const MOVED: Readonly<
  Record<MergedKind, { readonly table: OwnedTable; readonly key: SQL<string>; readonly name: SQL<string> }>
> = {
  secret: { table: secrets, key: sql`path`, name: sql`path` },
  host_binding: { table: hostBindings, key: sql`json_array(host, sentinel)`, name: sql`host` },
  tunnel_host: { table: tunnelHosts, key: sql`host`, name: sql`host` },
  client_certificate: { table: clientCertificates, key: sql`host`, name: sql`host` },
  connector: { table: connectors, key: sql`fqn`, name: sql`fqn` },
  mcp_server: { table: mcpServers, key: sql`name`, name: sql`name` },
};

/** Whether nobody else is in an enterprise: no other member, and no service account. */
export async function isAlone(database: Database, { userId, enterpriseId }: MergePlaces['from']): Promise<boolean> {
  const others = sql`SELECT id FROM users WHERE enterprise_id = ${enterpriseId} AND left_at IS NULL AND id <> ${userId}`;
  const rows = await database.read
    .select({ id: users.id })
    .from(users)
    .where(sql`${users.id} IN (${others})`)
    .limit(1);
  return rows.length === 0;
}

/** One of the things that move, by the text that is unique for its owner. */
export interface Named {
  readonly ownerId: string;
  readonly key: string;
  readonly name: string;
}

/** What these owners have of a kind. */
export async function listNamed(database: Database, kind: MergedKind, owners: readonly string[]): Promise<Named[]> {
  const { table, key, name } = MOVED[kind];
  const rows = await database.read
    .select({ ownerId: table.ownerId, key, name })
    .from(table)
    .where(inArray(table.ownerId, [...owners]));
  return rows.map((row) => ({ ownerId: String(row.ownerId), key: row.key, name: row.name }));
}

/** The secrets of these owners, with their sources. */
export async function listSealedOf(database: Database, owners: readonly string[]) {
  return database.read
    .select({ secret: secrets, source: secretSources })
    .from(secrets)
    .leftJoin(secretSources, eq(secretSources.secretId, secrets.id))
    .where(inArray(secrets.ownerId, [...owners]));
}

/** A secret that is sealed for its new owner. */
export interface Resealed {
  readonly before: SecretRow;
  readonly sealed: string;
  readonly fingerprint: string | null;
  readonly source: Pick<
    typeof secretSources.$inferSelect,
    'sealedMaterial' | 'sealedValue' | 'sealedRevocation'
  > | null;
}

/**
 * Moves everything that two owners have to a third, in one write: a conflict if anything changed since it was read, or
 * if somebody else came in. What is under way for a credential ends, because its seal is for the previous owner.
 */
export function moveOwned(database: Database, { from, to }: MergePlaces, resealed: readonly Resealed[]): Statement[] {
  const { read } = database;
  const owners = sql`(${from.userId}, ${from.enterpriseId})`;
  const target = { enterpriseId: to.enterpriseId, ownerId: to.userId };
  const others = sql`SELECT 1 FROM users
    WHERE enterprise_id = ${from.enterpriseId} AND left_at IS NULL AND id <> ${from.userId}`;
  const moved = (table: string, record: string) =>
    statement(sql`UPDATE ${sql.raw(table)} SET enterprise_id = ${to.enterpriseId}, owner_id = ${to.userId}${sql.raw(record)}
      WHERE owner_id IN ${owners}`);
  const asPersonal = `, record = json_replace(record, '$.owner', 'personal')`;
  return [
    ...guard(sql`NOT EXISTS (${others})`),
    read.delete(approvalGrants).where(eq(approvalGrants.userId, from.userId)),
    read.delete(oauthFlows).where(eq(oauthFlows.userId, from.userId)),
    read.delete(pendingLogins).where(eq(pendingLogins.userId, from.userId)),
    read.delete(shares).where(eq(shares.ownerId, from.userId)),
    ...resealed.flatMap((each) => moveSecret(database, each, target)),
    // A secret that came in between is not among those that were sealed.
    ...guard(sql`NOT EXISTS (SELECT 1 FROM secrets WHERE owner_id IN ${owners})`),
    moved('host_bindings', asPersonal),
    moved('tunnel_hosts', ''),
    moved('client_certificates', ''),
    moved('connectors', ''),
    // Before the servers: their owner tells which revisions these are.
    statement(sql`UPDATE mcp_server_revisions SET record = json_replace(record, '$.owner', 'personal')
      WHERE server_id IN (SELECT id FROM mcp_servers WHERE owner_id IN ${owners})`),
    moved('mcp_servers', asPersonal),
    ...['binding_credentials', 'mcp_references'].map((table) =>
      statement(sql`UPDATE ${sql.raw(table)} SET owner_id = ${to.userId} WHERE owner_id IN ${owners}`),
    ),
    statement(sql`UPDATE connector_credentials SET owner_id = ${to.userId}, lease = NULL, lease_until = NULL
      WHERE owner_id IN ${owners}`),
    read
      .update(users)
      .set({ policyVersion: sql`${users.policyVersion} + 1` })
      .where(inArray(users.id, [from.userId, to.userId])),
    read
      .update(enterprises)
      .set({ policyVersion: sql`${enterprises.policyVersion} + 1` })
      .where(and(eq(enterprises.id, from.enterpriseId), isNull(enterprises.deletedAt))),
  ];
}

function moveSecret(
  { read }: Database,
  { before, sealed, fingerprint, source }: Resealed,
  target: { readonly enterpriseId: string; readonly ownerId: string },
): Statement[] {
  const { id, sealed: sealedBefore, ownerId } = before;
  const unchanged = sql`EXISTS (SELECT 1 FROM secrets
    WHERE id = ${id} AND owner_id = ${ownerId} AND sealed = ${sealedBefore})`;
  const ofSource =
    source === null
      ? []
      : [
          read
            .update(secretSources)
            .set({ ...source, lease: null, leaseUntil: null })
            .where(eq(secretSources.secretId, id)),
        ];
  return [
    ...guard(unchanged),
    read
      .update(secrets)
      .set({ ...target, sealed, fingerprint })
      .where(eq(secrets.id, id)),
    ...ofSource,
  ];
}
