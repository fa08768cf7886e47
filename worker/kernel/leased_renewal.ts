import { leftUntil, momentAt, readClocks } from '../../shared/model/clock.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import type { Statement } from '../store/database.ts';
import type { Lease } from '../store/sources/lease.ts';
import { twoClocks } from './clock.ts';
import { randomToken } from './encoding.ts';
import type { ServiceContext } from './service_context.ts';

/** How long before its end a value is renewed; a short-lived one after half of its lifetime. */
const AHEAD_MS = 60_000;
/**
 * A value this close to its end is not sent, because it could end on the way. For a short-lived one: its last quarter.
 */
const MARGIN_MS = 10_000;
/** Longer than a refresh or {@link MINT_MS} takes. After that another worker may take over the lease. */
export const LEASE_MS = 45_000;
/** The clocks of two workers may differ by as much. */
export const MOST_SKEW_MS = 60_000;
/** A lease of another worker may end later than any that is taken here, because its clock may be ahead. */
const LONGEST_LEASE_MS = LEASE_MS + MOST_SKEW_MS;
/** What all calls of one mint together may take. */
export const MINT_MS = 35_000;
/** Pause after a failure of the provider, however many requests wait. */
export const BACKOFF_MS = 5_000;
/** The holder and end of a lease. */
export const BACKOFF = 'backoff';
export const LOOK_MS = 100;
const PATIENCE_MS = LEASE_MS + 5_000;

/** A lease on the renewal of one row, and the time of the row's last change. */
export interface Leasable {
  readonly lease: string | null;
  readonly leaseUntil: number | null;
}

/** One reading of a value that a provider renews. */
export interface Renewal<T> {
  readonly row: Leasable;
  /** The value, while it may be sent; else null. */
  readonly usable: T | null;
  readonly isDue: boolean;
  /** Takes the lease, if nobody holds it and the row was not changed since it was read. */
  takeLease(lease: Lease): readonly Statement[];
  /** Calls the provider, as the only one who does. `wait`: the row was changed meanwhile. */
  renew(): Promise<Result<T, ApiError> | 'wait'>;
  /** The refusal when no new value came in time. */
  notInTime(): ApiError;
}

/** What a reading comes to: something to renew, or an answer; `wait` reads again. */
type Reading<T> = { readonly renewal: Renewal<T> } | { readonly answer: Result<T, ApiError> | 'wait' };

/**
 * Returns a value that ends, renewed a minute before. One worker renews, holding a lease in the database. The others use the
 * current value while it is valid, then wait for the new one.
 */
export async function renewedValue<T>(
  context: ServiceContext,
  read: () => Promise<Reading<T>>,
): Promise<Result<T, ApiError>> {
  const clocks = twoClocks(context.clock);
  const begun = readClocks(clocks);
  const patienceEnds = momentAt(begun.wall + PATIENCE_MS, begun);
  for (;;) {
    const reading = await read();
    const answer = 'answer' in reading ? reading.answer : await answerOf(context, reading.renewal);
    if (answer !== 'wait') return answer;
    if (leftUntil(patienceEnds, clocks) <= 0 && 'renewal' in reading) return err(reading.renewal.notInTime());
    await context.clock.sleep(LOOK_MS);
  }
}

async function answerOf<T>(context: ServiceContext, renewal: Renewal<T>): Promise<Result<T, ApiError> | 'wait'> {
  const { usable, row } = renewal;
  if (usable !== null && !renewal.isDue) return ok(usable);
  if (await lease(context, row, (taken) => renewal.takeLease(taken))) return renewal.renew();
  if (usable !== null) return ok(usable);
  return isBackingOff(context, row) ? err(renewal.notInTime()) : 'wait';
}

interface Leasing extends Pick<ServiceContext, 'clock'> {
  readonly database: Pick<ServiceContext['database'], 'write'>;
}

/** True if this call now holds the lease: nobody held it, and the row was not changed since it was read. */
export async function lease(
  context: Leasing,
  row: Leasable,
  take: (lease: Lease) => readonly Statement[],
): Promise<boolean> {
  const now = context.clock.now();
  if (row.lease !== null && isHeld(row, now)) return false;
  const taken = { id: randomToken(), until: now + LEASE_MS, now, longest: now + LONGEST_LEASE_MS };
  return (await context.database.write(take(taken))).ok;
}

/** A lease that ends later than any that is taken now is from before the clock was set back. */
function isHeld({ leaseUntil }: Leasable, now: number): boolean {
  return leaseUntil !== null && leaseUntil > now && leaseUntil <= now + LONGEST_LEASE_MS;
}

function isBackingOff(context: ServiceContext, row: Leasable): boolean {
  return row.lease === BACKOFF && isHeld(row, context.clock.now());
}

/** When a value was stored, and its end; null if it has none. */
export interface Lifespan {
  readonly storedAt: string;
  readonly expiresAt: string | null;
  /** No provider gives another one, but only a person. By default one does. */
  readonly isLast?: boolean;
}

type Ends = Pick<ServiceContext, 'clock' | 'seenEnds'>;

/**
 * Whether a value may still be sent. `key` names its row. A value of the future is from before the clock was set back, so how much is
 * left of it is unknown. By a little it may be, because the clocks of two workers differ.
 */
export function isUsable(ends: Ends, key: string, span: Lifespan): boolean {
  const { expiresAt } = span;
  if (expiresAt === null) return true;
  return !isOfFuture(ends, span) && ends.seenEnds.leftOf(key, { ...span, expiresAt }) > marginMs(span);
}

/** The end of a value by the machine's clock as it is now, which may have been set back since the value was stored. */
export function currentEnd(ends: Ends, key: string, span: Lifespan): string | null {
  const { expiresAt } = span;
  if (expiresAt === null) return null;
  return new Date(ends.clock.now() + ends.seenEnds.leftOf(key, { ...span, expiresAt })).toISOString();
}

/** Whether the clock is behind the time at which a value was stored. */
export function isOfFuture({ clock }: Pick<Ends, 'clock'>, span: Lifespan): boolean {
  return clock.now() < Date.parse(span.storedAt) - mostAheadMs(span);
}

/** A value that can be renewed is rather renewed than sent after its end. */
function mostAheadMs(span: Lifespan): number {
  return span.isLast === true ? MOST_SKEW_MS : marginMs(span);
}

/** Whether it is time to renew a value. */
export function isRenewalDue(ends: Ends, key: string, span: Lifespan): boolean {
  const { expiresAt } = span;
  if (expiresAt === null) return false;
  const aheadMs = Math.min(AHEAD_MS, lifetimeMs(span) / 2);
  return isOfFuture(ends, span) || ends.seenEnds.leftOf(key, { ...span, expiresAt }) <= aheadMs;
}

function marginMs(span: Lifespan): number {
  return Math.min(MARGIN_MS, lifetimeMs(span) / 4);
}

function lifetimeMs({ storedAt, expiresAt }: Lifespan): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Math.max(0, Date.parse(expiresAt) - Date.parse(storedAt));
}
