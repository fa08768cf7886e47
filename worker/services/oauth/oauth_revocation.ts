import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { RevocationReply } from '../../../shared/wire/connectors/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorRow } from '../../store/connectors.ts';
import { setLease, takeLease } from '../../store/connectors.ts';
import type { Caller } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { BACKOFF, BACKOFF_MS, lease, LOOK_MS } from '../../kernel/leased_renewal.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { connectorEvent, writableConnector } from '../connectors/connectors.ts';
import { requestRevocation, revocableToken } from './given_up_tokens.ts';
import { type HeldCredential, markRevokedBy, readHeld } from './oauth_tokens.ts';

/** A refresh of another worker is waited for: the tokens that it brings are the ones to revoke. */
const PATIENCE_MS = 10_000;

/**
 * Asks the provider to revoke the tokens of a connector, at the URL that was stored with them (decision 0068). If it does, the
 * connector needs a new authorisation; if not, nothing is changed. Either is recorded. Refuses with `not_found`,
 * `admin_required`, `binding_required` if it has no oauth2 credential.
 */
export async function revokeConnectorTokens(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<RevocationReply, ApiError>> {
  const row = await writableConnector(context, caller, id);
  if (!row.ok) return row;
  const { connector } = row.value;
  const held = await leaseHeld(context, id);
  if (!held.ok) return held;
  const token = revocableToken(held.value.bundle);
  if (token === null) return ok({ outcome: 'nothing', message: null });
  const url = held.value.client.revocation_url;
  if (url === undefined) return ok({ outcome: 'not_named', message: null });
  const revoking = revokeHeld(context, caller, connector, held.value, { url, token });
  // What the provider has revoked is recorded also if the caller disconnects, or the control plane is shut down.
  context.defer('a revocation', () => revoking);
  return revoking;
}

async function revokeHeld(
  context: ServiceContext,
  caller: Caller,
  connector: ConnectorRow,
  held: HeldCredential,
  at: Parameters<typeof requestRevocation>[2],
): Promise<Result<RevocationReply, ApiError>> {
  const revoked = await requestRevocation(context, held, at);
  if (!revoked.ok) return recordFailure(context, caller, connector, held, revoked.error.message);
  const event = connectorEvent('control.connector.tokens_revoked', caller.userId, connector);
  if (!(await markRevokedBy(context, held, event))) {
    // The credential was replaced meanwhile: the new one stays as it is.
    const recorded = await commit(context, controlChain(held.subject), async () =>
      ok({ ...EVENT_ONLY, events: [event] }),
    );
    if (!recorded.ok) return recorded;
  }
  return ok({ outcome: 'revoked', message: null });
}

const EVENT_ONLY = { statements: [], value: null };

/**
 * Has the tokens of a connector revoked, and then deletes them, whatever the provider says. `left`: they may stay valid there.
 * Refuses what the deletion refuses.
 */
export async function revokeBefore(
  context: ServiceContext,
  caller: Caller,
  id: string,
  remove: () => Promise<Result<unknown, ApiError>>,
): Promise<Result<{ readonly left: boolean }, ApiError>> {
  const revoked = await revokeConnectorTokens(context, caller, id);
  const removed = await remove();
  if (!removed.ok) return removed;
  // Without an oauth2 credential there is no token.
  const left = revoked.ok
    ? revoked.value.outcome === 'failed' || revoked.value.outcome === 'not_named'
    : revoked.error.code !== 'binding_required';
  return ok({ left });
}

/** The credential, which nobody else refreshes now; or one that there is nothing to revoke of. */
async function leaseHeld(context: ServiceContext, id: string): Promise<Result<HeldCredential, ApiError>> {
  const ends = context.clock.now() + PATIENCE_MS;
  for (;;) {
    const held = await readHeld(context, id);
    if (!held.ok || held.value.client.revocation_url === undefined || revocableToken(held.value.bundle) === null)
      return held;
    const { credential } = held.value;
    if (await lease(context, credential, (taken) => takeLease(context.database, credential, taken))) return held;
    if (context.clock.now() >= ends) return err(apiError('conflict', 'its tokens are being refreshed: try again'));
    await context.clock.sleep(LOOK_MS);
  }
}

async function recordFailure(
  context: ServiceContext,
  caller: Caller,
  connector: ConnectorRow,
  { subject, credential }: HeldCredential,
  message: string,
): Promise<Result<RevocationReply, ApiError>> {
  const until = context.clock.now() + BACKOFF_MS;
  const events = [connectorEvent('control.connector.tokens_not_revoked', caller.userId, connector)];
  const statements = setLease(context.database, credential, { id: BACKOFF, until });
  const recorded = await commit(context, controlChain(subject), async () => ok({ statements, events, value: null }));
  return recorded.ok ? ok({ outcome: 'failed', message }) : recorded;
}
