import { leftUntil, momentAt, readClocks } from '../../../shared/model/clock.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { BORROWED_KIND, keySetProblem } from '../../../shared/model/source_kind.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { SourcePlan } from '../../../shared/wire/secret_sources.ts';
import { lifeSecondsOf, type SecretSource, SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import {
  BACKOFF,
  BACKOFF_MS,
  currentEnd,
  isRenewalDue,
  isUsable,
  MINT_MS,
  type Renewal,
  renewedValue,
} from '../../kernel/leased_renewal.ts';
import { twoClocks, wallTimeOf } from '../../kernel/clock.ts';
import { withinTime } from '../../kernel/outbound_within.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, timeAfter, type ServiceContext } from '../../kernel/service_context.ts';
import { hasSuspended } from '../../store/active_users.ts';
import {
  changeSource,
  findSource,
  type SourcedSecret,
  type SourceRow,
  takeSourceLease,
} from '../../store/sources/secret_sources.ts';
import type { SecretRow } from '../../store/secrets.ts';
import { openRow } from '../vault/secrets.ts';
import { revokeDiscarded } from './given_up_values.ts';
import { fromSealedText, toSealedRevocation, toSealedText } from './sealed_value.ts';
import type { Minted, MintFailure, SignedAs } from './source_port.ts';
import { BORROWED_WHY } from './kinds/borrowed.ts';
import { configured } from './source_table.ts';
import {
  mintedForOf,
  mintEvent,
  openSealed,
  openSourceKey,
  revocationPlace,
  sourceOf,
  valuePlace,
} from './sourced_secret.ts';

/** The value behind a vault reference, with its end if it has one. */
export interface CurrentValue {
  readonly secret: Secret;
  /** The rest of a key set, whose secret access key is `secret`. */
  readonly signedAs?: SignedAs;
  readonly expiresAt: string | null;
}

type Value = Result<CurrentValue, ApiError>;

/** The current value of a secret for a use of one text, which a key set has not. Refuses like {@link currentCredential}. */
export async function currentValue(context: ServiceContext, row: SecretRow): Promise<Value> {
  const current = await currentCredential(context, row);
  if (!current.ok || current.value.signedAs === undefined) return current;
  const reference = formatVaultReference(row.path);
  return err(apiError('credential_unavailable', keySetProblem(reference), { ref: reference }));
}

/**
 * The current value of a secret: the stored one, or one that its source mints. A minted value is renewed a minute before its
 * end, by one worker for all requests, and is never given out at its end. Refuses with `credential_unavailable`.
 */
export async function currentCredential(context: ServiceContext, row: SecretRow): Promise<Value> {
  const first = await findSource(context.database, row.id);
  if (first === null) {
    const secret = await openRow(context, row);
    // Only the row of a source that was removed since it was read has no value.
    return isEmpty(secret) ? err(changedError(row)) : ok({ secret, expiresAt: null });
  }
  if (first.source.kind === BORROWED_KIND) return err(borrowedError(row));
  const isSame = ({ secret }: SourcedSecret) => secret.version === row.version;
  return renewedValue(context, async () => {
    const read = await findSource(context.database, row.id);
    if (read === null || !isSame(read)) return { answer: err(changedError(row)) };
    return { renewal: await renewalOf(context, read) };
  });
}

async function renewalOf(context: ServiceContext, read: SourcedSecret): Promise<Renewal<CurrentValue>> {
  const usable = await usableValue(context, read);
  const { mintedAt: storedAt, expiresAt } = read.source;
  return {
    row: read.source,
    usable,
    isDue: storedAt === null || isRenewalDue(context, read.secret.id, { storedAt, expiresAt }),
    takeLease: (lease) => takeSourceLease(context.database, read, lease),
    renew: () => renew(context, read),
    notInTime: () => unavailable(read, read.source.failure ?? 'its provider has not answered yet'),
  };
}

async function usableValue(context: ServiceContext, read: SourcedSecret): Promise<CurrentValue | null> {
  const { sealedValue, mintedAt: storedAt, expiresAt } = read.source;
  if (sealedValue === null || storedAt === null || expiresAt === null) return null;
  if (!isUsable(context, read.secret.id, { storedAt, expiresAt })) return null;
  const { value: secret, ...more } = fromSealedText(
    read.source,
    await openSealed(context, valuePlace(read), sealedValue),
  );
  return { secret, ...more, expiresAt: currentEnd(context, read.secret.id, { storedAt, expiresAt }) };
}

async function renew(context: ServiceContext, read: SourcedSecret): Promise<Value | 'wait'> {
  const minting = mint(context, read);
  context.defer('the value that a source mints', () => minting);
  const minted = await minting;
  const stored = minted.ok
    ? await store(context, read, minted.value)
    : await recordFailure(context, read, minted.error);
  if (!stored) {
    if (minted.ok) revokeDiscarded(context, read, minted.value);
    return 'wait';
  }
  if (!minted.ok) {
    // The provider may have taken longer than the value still had.
    const usable = await usableValue(context, read);
    return usable === null ? err(unavailable(read, minted.error.message)) : ok(usable);
  }
  const { value: secret, expiresAtMs, signedAs } = minted.value;
  if (context.clock.now() >= expiresAtMs) return err(unavailable(read, 'its value ended before it was stored'));
  return ok({ secret, ...(signedAs && { signedAs }), expiresAt: new Date(expiresAtMs).toISOString() });
}

/** The longest life of a minted value. A provider that says more is asked again. */
export const LONGEST_MS = 24 * 3_600_000;
/** A value with a shorter life is of no use: it would end on its way. */
const SHORTEST_MS = 5_000;

/** Mints a value now, whatever is held. All calls together take less time than the lease, so that no other worker begins a second mint. */
export async function mint(
  context: ServiceContext,
  read: SourcedSecret,
  source = sourceOf(read.source),
): Promise<Result<Minted, MintFailure>> {
  // By a call that was authenticated before.
  if (await hasSuspended(context.database, [read.secret.ownerId])) {
    return err({ reason: 'failed', message: 'its owner is suspended' });
  }
  const key = await openSourceKey(context, read);
  const clocks = twoClocks(context.clock);
  const asked = readClocks(clocks);
  const outbound = withinTime(context, MINT_MS);
  const minted = await configured(source).mint({ key, outbound, nowMs: asked.wall });
  if (!minted.ok) return minted;
  const end = momentAt(Math.min(minted.value.expiresAtMs, asked.wall + LONGEST_MS), asked);
  const leftMs = leftUntil(end, clocks);
  if (leftMs < SHORTEST_MS) {
    revokeDiscarded(context, read, minted.value);
    return err({ reason: 'failed', message: 'its provider issued a value that has already ended, or ends at once' });
  }
  return ok({ ...minted.value, expiresAtMs: wallTimeOf(end, context.clock) });
}

/** False if the source was changed meanwhile: then the value is discarded. */
async function store(context: ServiceContext, read: SourcedSecret, minted: Minted): Promise<boolean> {
  const mintedFor = mintedForOf(read);
  const expiresAt = new Date(minted.expiresAtMs).toISOString();
  const now = nowText(context);
  context.seenEnds.leftOf(read.secret.id, { storedAt: now, expiresAt });
  return change(context, read, {
    set: async () => ({
      sealedValue: await context.vault.seal(valuePlace(read), toSealedText(minted)),
      sealedRevocation:
        minted.revokeBy === undefined
          ? null
          : await context.vault.seal(revocationPlace(read), toSealedRevocation(minted.revokeBy, now)),
      mintedFor,
      mintedAt: now,
      expiresAt,
      failure: null,
      failedAt: null,
      lease: null,
      leaseUntil: null,
    }),
    events: [
      mintEvent('control.secret.minted', read, { 'svc.control.minted_for': mintedFor, 'svc.control.until': expiresAt }),
    ],
  });
}

/** A failure that is the same as the last one is in the audit log once. */
async function recordFailure(context: ServiceContext, read: SourcedSecret, { message }: MintFailure): Promise<boolean> {
  const isNew = read.source.failure !== message;
  return change(context, read, {
    set: async () => ({
      failure: message,
      failedAt: nowText(context),
      lease: BACKOFF,
      leaseUntil: context.clock.now() + BACKOFF_MS,
    }),
    events: isNew ? [mintEvent('control.secret.mint_failed', read, { 'svc.proxy.reason': message })] : [],
  });
}

interface SourceChange {
  readonly set: () => Promise<Partial<SourceRow>>;
  readonly events: readonly AuditDraft[];
}

async function change(context: ServiceContext, read: SourcedSecret, { set, events }: SourceChange): Promise<boolean> {
  const changed = await commit(context, controlChain(read.secret), async () => {
    const now = await findSource(context.database, read.secret.id);
    const isSame = now?.source.updatedAt === read.source.updatedAt && now.secret.version === read.secret.version;
    if (!isSame) return ok({ statements: [], events: [], value: false });
    const updatedAt = timeAfter(nowText(context), read.source.updatedAt);
    return ok({
      statements: changeSource(context.database, now, { ...(await set()), updatedAt }),
      events,
      value: true,
    });
  });
  return changed.ok && changed.value;
}

/** What a mint would ask for now. Nothing is asked. */
export function planMint(source: SecretSource, nowMs: number): Omit<SourcePlan, 'key_checked'> {
  const { plan, describe } = configured(source);
  const { identity, scope, audience, providerUrl } = plan();
  const lifeSeconds = lifeSecondsOf(source);
  return {
    kind: source.kind,
    value: SOURCE_TABLE[source.kind].value,
    minted_for: describe(),
    identity,
    scope: [...scope],
    audience,
    provider_url: providerUrl,
    life_seconds: lifeSeconds,
    until_at_latest: new Date(nowMs + (lifeSeconds === null ? LONGEST_MS : lifeSeconds * 1000)).toISOString(),
  };
}

export function unavailable({ secret: { path } }: SourcedSecret, why: string): ApiError {
  const reference = formatVaultReference(path);
  const message = `the source of ${reference} gives no value: ${why}; try it with "svc secret source test ${path}"`;
  return apiError('credential_unavailable', message, { ref: reference });
}

function borrowedError({ path }: Pick<SecretRow, 'path'>): ApiError {
  const reference = formatVaultReference(path);
  return apiError('credential_unavailable', `the control plane does not have ${reference}: ${BORROWED_WHY}`, {
    ref: reference,
  });
}

function isEmpty(secret: Secret): boolean {
  return secret.reveal() === '';
}

export function changedError({ path }: Pick<SecretRow, 'path'>): ApiError {
  const reference = formatVaultReference(path);
  return apiError('credential_unavailable', `${reference} was changed or deleted just now: try again`, {
    ref: reference,
  });
}
