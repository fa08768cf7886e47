import { type Moment, momentAt } from '../../../shared/model/clock.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import type { Actor } from '../../store/active_users.ts';
import { changeCredential, type ConnectorCredentialRow } from '../../store/connectors.ts';
import type { Statement } from '../../store/database.ts';
import { findSealedSecret, type SecretRow } from '../../store/secrets.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { nothingStoredError } from '../connectors/connector_problems.ts';
import { type OAuthBundle, readBundle, writeBundle } from './oauth_bundle.ts';
import { type OAuthClient, findStoredClient } from './oauth_client.ts';
import type { Tokens } from './oauth_grants.ts';
import { findOAuthSubject, type OAuthChange, type OAuthSubject } from './oauth_subject.ts';
import { wallTimeOf } from '../../kernel/clock.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { openRow } from '../vault/secrets.ts';
import { timeOfChange, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { vaultWrite } from '../vault/vault_write.ts';

/** A credential of kind oauth2, as it was read. */
export interface HeldCredential {
  readonly subject: OAuthSubject;
  readonly credential: ConnectorCredentialRow;
  readonly client: OAuthClient;
  readonly secret: SecretRow;
  readonly bundle: OAuthBundle;
}

/** The oauth2 credential of a connector or an MCP server, in any state. Refuses with `binding_required`. */
export async function readHeld(context: ServiceContext, subjectId: string): Promise<Result<HeldCredential, ApiError>> {
  const found = await findOAuthSubject(context, subjectId);
  if (found === null) return err(nothingStoredError({ id: subjectId, fqn: 'the connector' }));
  const { subject, credential } = found;
  const client = credential === null ? null : findStoredClient(credential);
  const secret = credential === null ? null : await findSealedSecret(context.database, credential);
  if (credential === null || client === null || secret === null) return err(subject.nothingStoredError());
  return ok({ subject, credential, client, secret, bundle: readBundle(await openRow(context, secret)) });
}

/** Why a stored credential gives no token; null if it does. */
export function findHeldProblem({ subject, credential }: HeldCredential): ApiError | null {
  return subject.problem(credential);
}

/** The lifetime that is assumed if the provider issues a refresh token but names no lifetime. */
const UNTOLD_SECONDS = 3600;

/** Why tokens are stored. */
interface StoredBy {
  readonly change: OAuthChange;
  /** Who authorised, who must still have the role by then; null for a renewal. */
  readonly by: Actor | null;
  /** Before the request for them was sent: their end counts from then, so that it is early rather than late. */
  readonly asked: Moment;
  readonly more: readonly Statement[];
}

/**
 * Stores both new tokens in one write, before either is used. False if the credential was replaced meanwhile: then
 * nothing is written.
 */
export async function storeTokens(
  context: ServiceContext,
  held: HeldCredential,
  tokens: Tokens,
  stored: StoredBy,
): Promise<boolean> {
  const { subject, bundle } = held;
  const refreshToken = tokens.refreshToken ?? bundle.refreshToken;
  const expiresIn = tokens.expiresIn ?? (refreshToken === null ? null : UNTOLD_SECONDS);
  const change = {
    state: 'ready' as const,
    expiresAt:
      expiresIn === null ? null : endText(context, momentAt(stored.asked.wall + expiresIn * 1000, stored.asked)),
    renewable: refreshToken !== null,
    ...releasedLease(context, held),
  };
  const value = writeBundle({ ...bundle, accessToken: tokens.accessToken, refreshToken });
  const { change: happened, by, more } = stored;
  const statements = async () => [
    ...(await vaultWrite(context, subject, value)),
    ...changeCredential(context.database, held.credential, change),
    ...more,
  ];
  return changeHeld(context, held, [subject.event(happened, by?.userId ?? null)], statements, by);
}

function endText({ clock }: ServiceContext, end: Moment): string {
  return new Date(wallTimeOf(end, clock)).toISOString();
}

/** Records that the provider no longer accepts the authorisation. False if the credential was replaced meanwhile. */
export function markRevoked(context: ServiceContext, held: HeldCredential): Promise<boolean> {
  const change = { state: 'reauthorisation_required' as const, ...releasedLease(context, held) };
  const events = [held.subject.event('reauthorisation_required', null)];
  return changeHeld(context, held, events, async () => changeCredential(context.database, held.credential, change));
}

/** Records that a person had the tokens revoked: no request is sent with them any more. False as in {@link markRevoked}. */
export function markRevokedBy(context: ServiceContext, held: HeldCredential, event: AuditDraft): Promise<boolean> {
  const change = { state: 'reauthorisation_required' as const, ...releasedLease(context, held) };
  return changeHeld(context, held, [event], async () => changeCredential(context.database, held.credential, change));
}

function releasedLease(context: ServiceContext, { credential }: HeldCredential) {
  return { lease: null, leaseUntil: null, updatedAt: timeOfChange(nowText(context), credential.updatedAt) };
}

async function changeHeld(
  context: ServiceContext,
  { subject, credential }: HeldCredential,
  events: readonly AuditDraft[],
  statements: () => Promise<readonly Statement[]>,
  by: Actor | null = null,
): Promise<boolean> {
  const changed = await commit(context, controlChain({ enterpriseId: subject.enterpriseId, ...by }), async () => {
    const now = await findOAuthSubject(context, subject.id);
    if (now?.credential?.updatedAt !== credential.updatedAt) return ok({ statements: [], events: [], value: false });
    return ok({ statements: [...(await statements()), bumpPolicy(context.database, subject)], events, value: true });
  });
  return changed.ok && changed.value;
}
