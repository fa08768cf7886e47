import { and, asc, eq, gt } from 'drizzle-orm';
import type { AuditBeginningRow } from './audit/audit_beginnings.ts';
import type { AuditHeadRow } from './audit/audit_events.ts';
import type { AuditSinkRow } from './audit/audit_sinks.ts';
import type { Database, Statement } from './database.ts';
import type { EnterpriseOidcRow } from './enterprise_settings.ts';
import type { OAuthFlowRow } from './oauth_flows.ts';
import type { PendingLoginRow } from './pending_logins.ts';
import type { SecretRow } from './secrets.ts';
import type { PushKeyRow, PushSubscriptionRow } from './people/push_subscriptions.ts';
import type { SigningKeyRow } from './signing_keys.ts';
import {
  auditBeginnings,
  auditHeads,
  auditSinks,
  enterpriseOidc,
  oauthFlows,
  pendingLogins,
  pushKeys,
  pushSubscriptions,
  secrets,
  signingKeys,
} from './tables.ts';

// Everything that the master key seals, of all tenants, for a change of that key. Each replacement is conditional on
// the text that was read, because a value written meanwhile is newer.

/** Rows in the order of their keys, after one. */
export interface RowPage {
  readonly after: string;
  readonly limit: number;
}

export function listSealedSecrets(database: Database, { after, limit }: RowPage): Promise<SecretRow[]> {
  return database.read.select().from(secrets).where(gt(secrets.id, after)).orderBy(asc(secrets.id)).limit(limit);
}

export function resealSecret(
  database: Database,
  { id, sealed }: SecretRow,
  anew: { readonly sealed: string; readonly fingerprint: string },
): Statement {
  return database.read
    .update(secrets)
    .set(anew)
    .where(and(eq(secrets.id, id), eq(secrets.sealed, sealed)));
}

export function listSealedSigningKeys(database: Database, { after, limit }: RowPage): Promise<SigningKeyRow[]> {
  return database.read
    .select()
    .from(signingKeys)
    .where(gt(signingKeys.id, after))
    .orderBy(asc(signingKeys.id))
    .limit(limit);
}

export function resealSigningKey(database: Database, row: SigningKeyRow, sealedPrivateKey: string): Statement {
  const isSame = and(eq(signingKeys.id, row.id), eq(signingKeys.sealedPrivateKey, row.sealedPrivateKey));
  return database.read.update(signingKeys).set({ sealedPrivateKey }).where(isSame);
}

export function listSealedFlows(database: Database, { after, limit }: RowPage): Promise<OAuthFlowRow[]> {
  return database.read
    .select()
    .from(oauthFlows)
    .where(gt(oauthFlows.id, after))
    .orderBy(asc(oauthFlows.id))
    .limit(limit);
}

export function resealFlow(database: Database, row: OAuthFlowRow, sealed: string): Statement {
  const isSame = and(eq(oauthFlows.id, row.id), eq(oauthFlows.sealed, row.sealed));
  return database.read.update(oauthFlows).set({ sealed }).where(isSame);
}

export function listSealedLogins(database: Database, { after, limit }: RowPage): Promise<PendingLoginRow[]> {
  return database.read
    .select()
    .from(pendingLogins)
    .where(gt(pendingLogins.id, after))
    .orderBy(asc(pendingLogins.id))
    .limit(limit);
}

export function resealLogin(database: Database, row: PendingLoginRow, sealed: string): Statement {
  const isSame = and(eq(pendingLogins.id, row.id), eq(pendingLogins.sealed, row.sealed));
  return database.read.update(pendingLogins).set({ sealed }).where(isSame);
}

export function listSealedClients(database: Database, { after, limit }: RowPage): Promise<EnterpriseOidcRow[]> {
  return database.read
    .select()
    .from(enterpriseOidc)
    .where(gt(enterpriseOidc.enterpriseId, after))
    .orderBy(asc(enterpriseOidc.enterpriseId))
    .limit(limit);
}

export function resealClient(database: Database, row: EnterpriseOidcRow, sealedSecret: string): Statement {
  const { enterpriseId } = row;
  const isSame = and(eq(enterpriseOidc.enterpriseId, enterpriseId), eq(enterpriseOidc.sealedSecret, row.sealedSecret));
  return database.read.update(enterpriseOidc).set({ sealedSecret }).where(isSame);
}

export function listSealedSinks(database: Database, { after, limit }: RowPage): Promise<AuditSinkRow[]> {
  return database.read
    .select()
    .from(auditSinks)
    .where(gt(auditSinks.id, after))
    .orderBy(asc(auditSinks.id))
    .limit(limit);
}

export function resealSink(database: Database, row: AuditSinkRow, sealed: string): Statement {
  const isSame = and(eq(auditSinks.id, row.id), eq(auditSinks.sealed, row.sealed));
  return database.read.update(auditSinks).set({ sealed }).where(isSame);
}

export function listSealedPushKeys(database: Database, { after, limit }: RowPage): Promise<PushKeyRow[]> {
  return database.read.select().from(pushKeys).where(gt(pushKeys.id, after)).orderBy(asc(pushKeys.id)).limit(limit);
}

export function resealPushKey(database: Database, row: PushKeyRow, sealedPrivateKey: string): Statement {
  const isSame = and(eq(pushKeys.id, row.id), eq(pushKeys.sealedPrivateKey, row.sealedPrivateKey));
  return database.read.update(pushKeys).set({ sealedPrivateKey }).where(isSame);
}

export function listSealedSubscriptions(database: Database, { after, limit }: RowPage): Promise<PushSubscriptionRow[]> {
  return database.read
    .select()
    .from(pushSubscriptions)
    .where(gt(pushSubscriptions.sessionId, after))
    .orderBy(asc(pushSubscriptions.sessionId))
    .limit(limit);
}

export function resealSubscription(database: Database, row: PushSubscriptionRow, sealed: string): Statement {
  const isSame = and(eq(pushSubscriptions.sessionId, row.sessionId), eq(pushSubscriptions.sealed, row.sealed));
  return database.read.update(pushSubscriptions).set({ sealed }).where(isSame);
}

export function listSealedHeads(database: Database, { after, limit }: RowPage): Promise<AuditHeadRow[]> {
  return database.read
    .select()
    .from(auditHeads)
    .where(gt(auditHeads.writer, after))
    .orderBy(asc(auditHeads.writer))
    .limit(limit);
}

export function resealHead(database: Database, row: AuditHeadRow, seal: string): Statement {
  const isSame = and(eq(auditHeads.writer, row.writer), eq(auditHeads.seal, row.seal));
  return database.read.update(auditHeads).set({ seal }).where(isSame);
}

/** Also adds the set of writers to the control plane's head of an earlier version. */
export function sealTaken(
  database: Database,
  row: AuditHeadRow,
  anew: Pick<AuditHeadRow, 'seal' | 'writers' | 'writersHash'>,
): Statement {
  const isSame = and(eq(auditHeads.writer, row.writer), eq(auditHeads.seal, row.seal));
  return database.read.update(auditHeads).set(anew).where(isSame);
}

export function listSealedBeginnings(database: Database, { after, limit }: RowPage): Promise<AuditBeginningRow[]> {
  return database.read
    .select()
    .from(auditBeginnings)
    .where(gt(auditBeginnings.writer, after))
    .orderBy(asc(auditBeginnings.writer))
    .limit(limit);
}

export function resealBeginning(database: Database, row: AuditBeginningRow, seal: string): Statement {
  const isSame = and(eq(auditBeginnings.writer, row.writer), eq(auditBeginnings.seal, row.seal));
  return database.read.update(auditBeginnings).set({ seal }).where(isSame);
}
