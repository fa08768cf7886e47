import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext, timeAfter } from '../../kernel/service_context.ts';
import { type Leaving, onlyUser } from '../../store/people/departures.ts';
import {
  changeSource,
  listHoldingSources,
  listSourcesOfOwners,
  type SourcedSecret,
} from '../../store/sources/secret_sources.ts';
import { fromSealedRevocation, fromSealedText } from './sealed_value.ts';
import type { Minted, MintFailure } from './source_port.ts';
import { configured } from './source_table.ts';
import {
  isDamaged,
  mintEvent,
  openSealed,
  openSourceKey,
  revocationPlace,
  sourceOf,
  valuePlace,
} from './sourced_secret.ts';

type Revocable = Pick<Minted, 'value' | 'revokeBy'>;

/** What became of a value that nobody is to use any more. `ends`: its provider revokes nothing, so that it ends by itself. */
type Revoked = 'revoked' | 'ends' | 'not_revoked';

/** Has the provider revoke a value. Either answer is recorded. */
export async function revokeMinted(
  context: ServiceContext,
  read: SourcedSecret,
  minted: Revocable | Promise<Revocable>,
  actor: string | null,
): Promise<Revoked> {
  const { revoke } = configured(sourceOf(read.source));
  if (revoke === null) return 'ends';
  const opened = await opening(minted, openSourceKey(context, read));
  const { outbound, clock } = context;
  const revoked = opened.ok ? await revoke({ ...opened.value, outbound, nowMs: clock.now() }) : opened;
  const event: AuditDraft = revoked.ok
    ? mintEvent('control.secret.value_revoked', read, {})
    : mintEvent('control.secret.value_not_revoked', read, { 'svc.proxy.reason': revoked.error.message });
  const events = [{ ...event, actor }];
  await commit(context, controlChain(read.secret), async () => ok({ statements: [], events, value: null }));
  return revoked.ok ? 'revoked' : 'not_revoked';
}

type Opened = Result<{ readonly minted: Revocable; readonly key: Secret }, MintFailure>;

/** A row that the vault cannot open is damaged: its value is not revoked, and that is recorded too. */
async function opening(minted: Revocable | Promise<Revocable>, key: Promise<Secret>): Promise<Opened> {
  try {
    const [openedValue, openedKey] = await Promise.all([minted, key]);
    return ok({ minted: openedValue, key: openedKey });
  } catch (error) {
    if (!isDamaged(error)) throw error;
    return err({ reason: 'failed', message: 'what is stored of it is damaged, so it ends by itself' });
  }
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
  return revocationOf(context, await listHoldingSources(context.database, ownerId, paths));
}

/** The same for all that is the owners', once they have left. */
export async function revocationOfLeaving(
  context: ServiceContext,
  { owners }: Pick<Leaving, 'owners'>,
): Promise<() => void> {
  return revocationOf(context, await listSourcesOfOwners(context.database, owners));
}

/**
 * The part of a suspension that gives up the values of the user: none is held any more, and one that is being minted is discarded. Its
 * sources stay, and mint again once the user is back.
 */
export async function giveUpValues(
  context: ServiceContext,
  userId: string,
): Promise<Pick<Change<null>, 'statements'> & { readonly afterwards: () => void }> {
  const all = await listSourcesOfOwners(context.database, onlyUser(userId).owners);
  const none = { sealedValue: null, sealedRevocation: null, lease: null, leaseUntil: null };
  return {
    statements: all.flatMap((read) =>
      changeSource(context.database, read, {
        ...none,
        updatedAt: timeAfter(nowText(context), read.source.updatedAt),
      }),
    ),
    afterwards: revocationOf(context, all),
  };
}

function revocationOf(context: ServiceContext, given: readonly SourcedSecret[]): () => void {
  const revocable = given.filter(({ source }) => configured(sourceOf(source)).revoke !== null);
  return () => {
    for (const read of revocable) revokeHeld(context, read);
  };
}

/** Nothing if none is held, or it has ended. Opened only now: a damaged row stops no deletion. */
function revokeHeld(context: ServiceContext, read: SourcedSecret): void {
  const { sealedValue, expiresAt } = read.source;
  if (sealedValue === null || Date.parse(expiresAt ?? '') <= context.clock.now()) return;
  context.defer('the revocation of a held value', () =>
    revokeMinted(context, read, openHeld(context, read, sealedValue), null),
  );
}

async function openHeld(context: ServiceContext, read: SourcedSecret, sealedValue: string): Promise<Revocable> {
  const { sealedRevocation, mintedAt } = read.source;
  const held = fromSealedText(read.source, await openSealed(context, valuePlace(read), sealedValue));
  if (sealedRevocation === null || mintedAt === null) return held;
  const revokeBy = fromSealedRevocation(await openSealed(context, revocationPlace(read), sealedRevocation), mintedAt);
  return { ...held, ...(revokeBy && { revokeBy }) };
}
