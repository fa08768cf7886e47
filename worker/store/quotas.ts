import { type SQL, sql } from 'drizzle-orm';
import type { QuotaKind } from '../../shared/model/quotas/quotas.ts';
import { type Database, guard, type Statement } from './database.ts';

/** Whose things are counted: an owner, a person, or an enterprise; and the enterprise that it is in or is. */
export interface QuotaHolder {
  readonly id: string;
  readonly enterpriseId: string;
}

/** The time of the count: what has ended does not count. */
export interface CountTime {
  readonly text: string;
  readonly seconds: number;
}

type Counted = (holder: QuotaHolder, now: CountTime) => SQL;

const ofOwner = ({ id, enterpriseId }: QuotaHolder) => sql`enterprise_id = ${enterpriseId} AND owner_id = ${id}`;
const bytes = (table: SQL, column: SQL, where: SQL) =>
  sql`SELECT coalesce(sum(octet_length(${column})), 0) FROM ${table} WHERE ${where}`;
const SIZED = [
  [sql`host_bindings`, sql`record`],
  [sql`connectors`, sql`spec`],
  [sql`mcp_servers`, sql`record`],
] as const;
const definitionBytes = (where: SQL) =>
  sql.join(
    SIZED.map(([table, column]) => sql`(${bytes(table, column, where)})`),
    sql` + `,
  );

/**
 * What each quota counts, as one number. Indexes have all that is read, also the sizes, so that a count takes milliseconds and
 * is never more than the quota's rows.
 */
const COUNTED: Readonly<Record<QuotaKind, Counted>> = {
  secrets: (holder) => sql`SELECT count(*) FROM secrets WHERE ${ofOwner(holder)}`,
  secret_bytes: (holder) => bytes(sql`secrets`, sql`sealed`, ofOwner(holder)),
  bindings: (holder) => sql`SELECT count(*) FROM host_bindings WHERE ${ofOwner(holder)}`,
  connectors: (holder) => sql`SELECT count(*) FROM connectors WHERE ${ofOwner(holder)}`,
  connector_versions: (holder) => sql`SELECT count(*) FROM connector_versions
    WHERE connector_id IN (SELECT id FROM connectors WHERE ${ofOwner(holder)})`,
  mcp_servers: (holder) => sql`SELECT count(*) FROM mcp_servers WHERE ${ofOwner(holder)}`,
  definition_bytes: (holder) => sql`SELECT ${definitionBytes(ofOwner(holder))}`,
  tunnel_hosts: ({ id }) => sql`SELECT count(*) FROM tunnel_hosts WHERE owner_id = ${id}`,
  client_certificates: ({ id }) => sql`SELECT count(*) FROM client_certificates WHERE owner_id = ${id}`,
  sidecars: ({ id }) => sql`SELECT count(*) FROM sidecars
    WHERE user_id = ${id} AND revoked_at IS NULL AND expires_at IS NULL`,
  job_sidecars: ({ id }, { text }) => sql`SELECT count(*) FROM sidecars
    WHERE user_id = ${id} AND revoked_at IS NULL AND expires_at > ${text}`,
  personal_tokens: ({ id }, { text }) => sql`SELECT count(*) FROM personal_tokens
    WHERE user_id = ${id} AND revoked_at IS NULL AND expires_at > ${text}`,
  program_sign_ins: ({ id }, { seconds }) => sql`SELECT count(*) FROM token_families
    WHERE user_id = ${id} AND revoked_at IS NULL AND expires_at > ${seconds}`,
  mcp_connections: ({ id }, { seconds }) => sql`SELECT count(*) FROM mcp_connections
    WHERE user_id = ${id} AND revoked_at IS NULL AND expires_at > ${seconds}`,
  shares: ({ id }) => sql`SELECT count(*) FROM shares WHERE owner_id = ${id}`,
  accepted_shares: ({ id }) => sql`SELECT count(*) FROM share_acceptances WHERE user_id = ${id}`,
  accepted_bytes: ({ id }) => sql`SELECT coalesce(sum(${bytesOfShared(sql`shares.resource_id`)}), 0)
    FROM share_acceptances JOIN shares ON shares.id = share_id WHERE share_acceptances.user_id = ${id}`,
  members: ({ id }) => sql`SELECT count(*) FROM users WHERE enterprise_id = ${id} AND left_at IS NULL`,
  invitations: ({ id }, { seconds }) => sql`SELECT count(*) FROM invitations
    WHERE enterprise_id = ${id} AND outcome IS NULL AND ends_at > ${seconds}`,
  groups: ({ id }) => sql`SELECT count(*) FROM groups WHERE enterprise_id = ${id}`,
  approval_rules: ({ id }) => sql`SELECT count(*) FROM approval_rules WHERE enterprise_id = ${id}`,
  service_accounts: ({ id }) => sql`SELECT count(*) FROM service_accounts JOIN users ON users.id = user_id
    WHERE service_accounts.enterprise_id = ${id} AND left_at IS NULL`,
  all_secrets: ({ id }) => sql`SELECT count(*) FROM secrets WHERE enterprise_id = ${id}`,
  all_bindings: ({ id }) => sql`SELECT count(*) FROM host_bindings WHERE enterprise_id = ${id}`,
  all_connectors: ({ id }) => sql`SELECT count(*) FROM connectors WHERE enterprise_id = ${id}`,
  all_mcp_servers: ({ id }) => sql`SELECT count(*) FROM mcp_servers WHERE enterprise_id = ${id}`,
  all_sidecars: ({ id }, { text }) => sql`SELECT count(*) FROM sidecars
    WHERE enterprise_id = ${id} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${text})`,
  all_bytes: ({ id }) => {
    const ofEnterprise = sql`enterprise_id = ${id}`;
    return sql`SELECT (${bytes(sql`secrets`, sql`sealed`, ofEnterprise)}) + ${definitionBytes(ofEnterprise)}`;
  },
};

/** Rows or bytes; as SQL where only the write itself knows how many. */
export type QuotaAmount = number | SQL;

/** Several amounts as one. */
export function addAmounts(amounts: readonly QuotaAmount[]): SQL {
  return sql.join(
    amounts.map((amount) => sql`(${amount})`),
    sql` + `,
  );
}

/** What the acceptance of a share adds for a user: nothing if it is in place of an earlier one. */
export function growthOfAcceptances(share: { readonly id: string; readonly resourceId: string }, userId: string) {
  const has = sql`EXISTS (SELECT 1 FROM share_acceptances WHERE share_id = ${share.id} AND user_id = ${userId})`;
  const size = bytesOfShared(sql`${share.resourceId}`);
  return { rows: sql`NOT ${has}`, bytes: sql`CASE WHEN ${has} THEN 0 ELSE ${size} END` };
}

/** The size of the definition of a binding, connector or MCP server with this id. */
function bytesOfShared(id: SQL): SQL {
  const one = SIZED.map(([table, column]) => sql`(SELECT octet_length(${column}) FROM ${table} WHERE id = ${id})`);
  return sql`coalesce(${sql.join([...one, sql`0`], sql`, `)})`;
}

/** How much more a sealed value takes than the value that a secret has now. */
export function growthOfSecret(id: string, sealed: string): SQL {
  return sql`${sealed.length} - coalesce((SELECT octet_length(sealed) FROM secrets WHERE id = ${id}), 0)`;
}

/** What two owners keep of a kind together, where it moves. */
export function keptBy(kind: QuotaKind, holders: readonly QuotaHolder[], now: CountTime): SQL {
  return addAmounts(holders.map((holder) => COUNTED[kind](holder, now)));
}

/** An addition to what a holder keeps of one kind. */
export interface QuotaCheck {
  readonly kind: QuotaKind;
  readonly holder: QuotaHolder;
  readonly by: SQL;
  readonly most: number;
}

/** A conflict if the addition goes over the quota. What makes things smaller is always allowed. */
export function guardQuota({ kind, holder, by, most }: QuotaCheck, now: CountTime): Statement[] {
  return guard(sql`(${by}) <= 0 OR (${COUNTED[kind](holder, now)}) + (${by}) <= ${most}`);
}

/** How much is kept of these, and how much would be added. */
export async function readQuotas<Check extends Pick<QuotaCheck, 'kind' | 'holder'> & { readonly by?: SQL }>(
  database: Database,
  checks: readonly Check[],
  now: CountTime,
): Promise<{ readonly check: Check; readonly used: number; readonly by: number }[]> {
  if (checks.length === 0) return [];
  const selects = checks.map(
    ({ kind, holder, by = sql`0` }) => sql`SELECT (${COUNTED[kind](holder, now)}) AS used, (${by}) AS added`,
  );
  const rows = await database.read.all<{ used: number; added: number }>(sql.join(selects, sql` UNION ALL `));
  return checks.map((check, index) => ({ check, used: rows[index]?.used ?? 0, by: rows[index]?.added ?? 0 }));
}
