import { ok } from '../../../shared/model/result.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listHoldingSources, type SourcedSecret } from '../../store/sources/secret_sources.ts';
import { fromSealedText } from './sealed_value.ts';
import type { Minted } from './source_port.ts';
import { configured } from './source_table.ts';
import { mintEvent, openSealed, openSourceKey, revocationPlace, sourceOf, valuePlace } from './sourced_secret.ts';

type Revocable = Pick<Minted, 'value' | 'revokeBy'>;

/** What became of a value that nobody is to use any more. `ends`: its provider revokes nothing, so that it ends by itself. */
type Revoked = 'revoked' | 'ends' | 'not_revoked';

/** Has the provider revoke a value. Either answer is recorded. */
export async function revokeMinted(
  context: ServiceContext,
  read: SourcedSecret,
  minted: Revocable,
  actor: string | null,
): Promise<Revoked> {
  const { revoke } = configured(sourceOf(read.source));
  if (revoke === null) return 'ends';
  const revoked = await revoke({ key: await openSourceKey(context, read), outbound: context.outbound, minted });
  const event: AuditDraft = revoked.ok
    ? mintEvent('control.secret.value_revoked', read, {})
    : mintEvent('control.secret.value_not_revoked', read, { 'svc.proxy.reason': revoked.error.message });
  const events = [{ ...event, actor }];
  await commit(context, controlChain(read.secret), async () => ok({ statements: [], events, value: null }));
  return revoked.ok ? 'revoked' : 'not_revoked';
}

/** The same for a value that was minted for nobody. Not awaited: a provider that does not answer delays no request. */
export function revokeDiscarded(context: ServiceContext, read: SourcedSecret, minted: Revocable): void {
  context.defer('the revocation of a discarded value', () => revokeMinted(context, read, minted, null));
}

/**
 * The same for what the sources of secrets hold now, to be called once these are deleted or replaced. A value that nobody holds, such as
 * one that was minted for a session's scope, ends by itself.
 */
export async function revocationOfHeld(
  context: ServiceContext,
  ownerId: string,
  paths: readonly string[],
): Promise<() => void> {
  const holding = await listHoldingSources(context.database, ownerId, paths);
  const revocable = holding.filter(({ source }) => configured(sourceOf(source)).revoke !== null);
  const revocations = await Promise.all(
    revocable.map(async (read) => ({ read, minted: await openHeld(context, read) })),
  );
  return () => {
    for (const { read, minted } of revocations) if (minted !== null) revokeDiscarded(context, read, minted);
  };
}

/** Null: none is held, or it has ended. */
async function openHeld(context: ServiceContext, read: SourcedSecret): Promise<Revocable | null> {
  const { sealedValue, sealedRevocation, expiresAt } = read.source;
  if (sealedValue === null || Date.parse(expiresAt ?? '') <= context.clock.now()) return null;
  const held = fromSealedText(read.source, await openSealed(context, valuePlace(read), sealedValue));
  if (sealedRevocation === null) return held;
  return { ...held, revokeBy: await openSealed(context, revocationPlace(read), sealedRevocation) };
}
