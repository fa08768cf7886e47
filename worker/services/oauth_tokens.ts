import type { AuditEventType } from '../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { bumpPolicy } from '../store/accounts.ts';
import {
  changeCredential,
  type ConnectorCredentialRow,
  type ConnectorRow,
  findConnectorById,
} from '../store/connectors.ts';
import type { Statement } from '../store/database.ts';
import { findSealedSecret, type SecretRow } from '../store/secrets.ts';
import { commit } from './commit.ts';
import { credentialProblem, nothingStored } from './connector_problems.ts';
import { connectorEvent } from './connectors.ts';
import { type OAuthBundle, readBundle, writeBundle } from './oauth_bundle.ts';
import { type OAuthClient, storedClient } from './oauth_client.ts';
import type { Tokens } from './oauth_grants.ts';
import { controlChain } from './policy_change.ts';
import { opened } from './secrets.ts';
import { laterThan, nowText, type ServiceContext } from './service_context.ts';
import { vaultWrite } from './vault_write.ts';

/** A credential of kind oauth2 as it was read. */
export interface HeldCredential {
  readonly connector: ConnectorRow;
  readonly credential: ConnectorCredentialRow;
  readonly client: OAuthClient;
  readonly secret: SecretRow;
  readonly bundle: OAuthBundle;
}

/** A connector's oauth2 credential, whatever its state. Refuses with `binding_required`. */
export async function readHeld(
  context: ServiceContext,
  connectorId: string,
): Promise<Result<HeldCredential, ApiError>> {
  const row = await findConnectorById(context.database, connectorId);
  const gone = { id: connectorId, fqn: 'the connector' };
  if (row === null) return err(nothingStored(gone));
  const { connector, credential } = row;
  const client = credential === null ? null : storedClient(credential);
  const secret = credential === null ? null : await findSealedSecret(context.database, credential);
  if (credential === null || client === null || secret === null) return err(nothingStored(connector));
  return ok({ connector, credential, client, secret, bundle: readBundle(await opened(context, secret)) });
}

/** Why a held credential gives no token; null when it may. */
export function heldProblem(held: HeldCredential): ApiError | null {
  return credentialProblem(held);
}

/** For a provider that gives a refresh token and does not say how long the access token lasts. */
const UNTOLD_SECONDS = 3600;

/**
 * Stores what a provider gave: both tokens in one write, before anybody is given one of them. False when somebody else
 * replaced the credential meanwhile: nothing is written over that.
 */
export async function storeTokens(
  context: ServiceContext,
  held: HeldCredential,
  tokens: Tokens,
  by: { readonly type: AuditEventType; readonly actor: string | null; readonly more: readonly Statement[] },
): Promise<boolean> {
  const { connector, bundle } = held;
  const refreshToken = tokens.refreshToken ?? bundle.refreshToken;
  const expiresIn = tokens.expiresIn ?? (refreshToken === null ? null : UNTOLD_SECONDS);
  const change = {
    state: 'ready' as const,
    expiresAt: expiresIn === null ? null : new Date(context.clock.now() + expiresIn * 1000).toISOString(),
    renewable: refreshToken !== null,
    ...released(context, held),
  };
  const value = writeBundle({ ...bundle, accessToken: tokens.accessToken, refreshToken });
  return changeHeld(context, held, by, async () => [
    ...(await vaultWrite(context, connector, value)),
    ...changeCredential(context.database, held.credential, change),
    ...by.more,
  ]);
}

/** Notes that the provider does not take the authorisation any more. False when the credential was replaced meanwhile. */
export function markRevoked(context: ServiceContext, held: HeldCredential): Promise<boolean> {
  const change = { state: 'reauthorisation_required' as const, ...released(context, held) };
  const by = { type: 'control.connector.reauthorisation_required' as const, actor: null };
  return changeHeld(context, held, by, async () => changeCredential(context.database, held.credential, change));
}

function released(context: ServiceContext, { credential }: HeldCredential) {
  return { lease: null, leaseUntil: null, updatedAt: laterThan(nowText(context), credential.updatedAt) };
}

async function changeHeld(
  context: ServiceContext,
  { connector, credential }: HeldCredential,
  by: { readonly type: AuditEventType; readonly actor: string | null },
  statements: () => Promise<readonly Statement[]>,
): Promise<boolean> {
  const changed = await commit(context, controlChain(connector), async () => {
    const now = await findConnectorById(context.database, connector.id);
    if (now?.credential?.updatedAt !== credential.updatedAt) return ok({ statements: [], events: [], value: false });
    const events = [connectorEvent(by.type, by.actor, connector)];
    return ok({ statements: [...(await statements()), bumpPolicy(context.database, connector)], events, value: true });
  });
  return changed.ok && changed.value;
}
