import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext, timeAfter } from '../../kernel/service_context.ts';
import type { Statement } from '../../store/database.ts';
import { type Leaving, onlyUser } from '../../store/people/departures.ts';
import {
  changeSource,
  findSource,
  listHoldingSources,
  listLiveHolders,
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

/**
 * What became of a value that nobody is to use any more. `ends`: its provider revokes nothing, so that it ends by itself.
 * `held`: its provider gave the same one out more than once, and it is in use.
 */
export type Revoked = 'revoked' | 'ends' | 'not_revoked' | 'held';

const STILL_HELD =
  'its provider gave the same value out more than once, and a secret of the enterprise still holds it: it ends by itself';

/** Has the provider revoke a value, unless a secret of the enterprise holds it. Either answer is recorded. */
export async function revokeMinted(
  context: ServiceContext,
  read: SourcedSecret,
  minted: Revocable | Promise<Revocable>,
  actor: string | null,
): Promise<Revoked> {
  const { revoke } = configured(sourceOf(read.source));
  if (revoke === null) return 'ends';
  const opened = await opening(minted, openSourceKey(context, read));
  const isHeld = opened.ok && (await listHolders(context, read, opened.value.minted.value)).length > 0;
  const revoked = opened.ok && !isHeld ? await revokeUnheld(context, read, { ...opened.value, revoke }) : null;
  const failure = isHeld ? STILL_HELD : failureOf(revoked ?? opened);
  const event: AuditDraft =
    failure === null
      ? mintEvent('control.secret.value_revoked', read, {})
      : mintEvent('control.secret.value_not_revoked', read, { 'svc.proxy.reason': failure });
  const events = [{ ...event, actor }];
  await commit(context, controlChain(read.secret), async () => ok({ statements: [], events, value: null }));
  if (isHeld) return 'held';
  return failure === null ? 'revoked' : 'not_revoked';
}

function failureOf(revoked: Result<unknown, MintFailure>): string | null {
  return revoked.ok ? null : revoked.error.message;
}

interface Revocation {
  readonly minted: Revocable;
  readonly key: Secret;
  readonly revoke: NonNullable<ReturnType<typeof configured>['revoke']>;
}

async function revokeUnheld(
  context: ServiceContext,
  read: SourcedSecret,
  { minted, key, revoke }: Revocation,
): Promise<Result<void, MintFailure>> {
  const { outbound, clock } = context;
  const revoked = await revoke({ minted, key, outbound, nowMs: clock.now() });
  // One that was given out again meanwhile is dead now.
  if (revoked.ok) await forgetValues(context, await listHolders(context, read, minted.value));
  return revoked;
}

/**
 * The sources of the enterprise that hold a value now, of those which have it from the same issuer: whoever has learned a value can
 * have a provider of their own give it out, and that keeps no value from being revoked. Values are compared by their keyed digests.
 * What cannot be opened is given to nobody. Another enterprise is not looked at: nothing that it stores is to be observable here.
 */
async function listHolders(context: ServiceContext, given: SourcedSecret, value: Secret): Promise<SourcedSecret[]> {
  const { vault } = context;
  const { enterpriseId } = given.secret;
  const wanted = await vault.fingerprint(enterpriseId, value);
  const holders: SourcedSecret[] = [];
  for (const live of await listOfIssuer(context, given)) {
    const sealed = await vault.open(valuePlace(live), live.source.sealedValue ?? '');
    const held = sealed === null ? null : fromSealedText(live.source, sealed).value;
    if (held !== null && (await vault.fingerprint(enterpriseId, held)) === wanted) holders.push(live);
  }
  return holders;
}

/** So many rows are read at a time. */
const PAGE = 200;

/** Live holders whose values come from the same issuer. Nothing that is sealed is read of the others. */
async function listOfIssuer(context: ServiceContext, { source, secret }: SourcedSecret): Promise<SourcedSecret[]> {
  const { database } = context;
  const about = { enterpriseId: secret.enterpriseId, kind: source.kind, now: nowText(context), limit: PAGE };
  const issuer = issuerOf(source);
  const found: SourcedSecret[] = [];
  for (let after: string | undefined = ''; after !== undefined;) {
    const page = await listLiveHolders(database, { ...about, after });
    for (const { secretId } of page.filter((each) => issuerOf(each) === issuer)) {
      const live = await findSource(database, secretId);
      if (live !== null && issuerOf(live.source) === issuer) found.push(live);
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.secretId;
  }
  return found;
}

/** Who gives out the values of a source, and to whom: kind, URL, and the client or whoever else the provider knows. */
function issuerOf(row: Pick<SourcedSecret['source'], 'config'>): string {
  const source = sourceOf(row);
  const { identity, providerUrl } = configured(source).plan();
  const client = 'client_id' in source ? source.client_id : null;
  const namespace = 'namespace' in source ? source.namespace : null;
  return JSON.stringify([source.kind, providerUrl, identity, client, namespace]);
}

const NO_VALUE = { sealedValue: null, sealedRevocation: null, lease: null, leaseUntil: null };

/** The statements that forget what a source holds. A value that is being minted for it is discarded. */
function forgetValue(context: ServiceContext, read: SourcedSecret): Statement[] {
  const updatedAt = timeAfter(nowText(context), read.source.updatedAt);
  return changeSource(context.database, read, { ...NO_VALUE, updatedAt });
}

/** Forgets what these sources hold, so that the next use mints anew. One that was changed meanwhile holds something else. */
async function forgetValues(context: ServiceContext, holders: readonly SourcedSecret[]): Promise<void> {
  for (const read of holders) await context.database.write(forgetValue(context, read));
}

/**
 * Forgets what the source of a secret holds, if a mint or a revocation of another of its values may have ended it: a server keeps one
 * token for each client, or ends all tokens of the same grant (RFC 7009 section 2.1).
 */
export async function forgetDoubtful(context: ServiceContext, secretId: string): Promise<void> {
  const now = await findSource(context.database, secretId);
  if (now !== null && now.source.sealedValue !== null && configured(sourceOf(now.source)).endsSiblings)
    await forgetValues(context, [now]);
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
  return {
    statements: all.flatMap((read) => forgetValue(context, read)),
    afterwards: revocationOf(context, all),
  };
}

function revocationOf(context: ServiceContext, given: readonly SourcedSecret[]): () => void {
  const revocable = given.filter(({ source }) => configured(sourceOf(source)).revoke !== null);
  const byProvider = Map.groupBy(revocable, ({ source }) => providerOf(source));
  return () => {
    for (const values of byProvider.values()) revokeInTurn(context, values);
  };
}

function providerOf(source: Pick<SourcedSecret['source'], 'config'>): string {
  const { providerUrl } = configured(sourceOf(source)).plan();
  return providerUrl === null ? '' : new URL(providerUrl).origin;
}

/** One after another at each provider: one that does not answer delays no other provider. */
function revokeInTurn(context: ServiceContext, values: readonly SourcedSecret[], at = 0): void {
  const read = values[at];
  if (read === undefined) return;
  context.defer('the revocation of a held value', () =>
    revokeHeld(context, read).finally(() => revokeInTurn(context, values, at + 1)),
  );
}

/** Nothing if none is held, or it has ended. Opened only now: a damaged row stops no deletion. */
async function revokeHeld(context: ServiceContext, read: SourcedSecret): Promise<void> {
  const { sealedValue, expiresAt } = read.source;
  if (sealedValue === null || Date.parse(expiresAt ?? '') <= context.clock.now()) return;
  await revokeMinted(context, read, openHeld(context, read, sealedValue), null);
}

async function openHeld(context: ServiceContext, read: SourcedSecret, sealedValue: string): Promise<Revocable> {
  const { sealedRevocation, mintedAt } = read.source;
  const held = fromSealedText(read.source, await openSealed(context, valuePlace(read), sealedValue));
  if (sealedRevocation === null || mintedAt === null) return held;
  const revokeBy = fromSealedRevocation(await openSealed(context, revocationPlace(read), sealedRevocation), mintedAt);
  return { ...held, ...(revokeBy && { revokeBy }) };
}
