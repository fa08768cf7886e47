import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import type { Statement } from '../store/database.ts';
import { randomToken } from './encoding.ts';
import type { ServiceContext } from './service_context.ts';

/** How long before its end a value is renewed; a short-lived one after half of its lifetime. */
const AHEAD_MS = 60_000;
/**
 * A value this close to its end is not sent, because it could end on the way. For a short-lived one: its last quarter.
 */
const MARGIN_MS = 10_000;
/** Longer than any call takes. After that another worker may take over the lease. */
export const LEASE_MS = 45_000;
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

export interface Lease {
  readonly id: string;
  readonly until: number;
  readonly now: number;
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
  const patienceEnds = context.clock.now() + PATIENCE_MS;
  for (;;) {
    const reading = await read();
    const answer = 'answer' in reading ? reading.answer : await answerOf(context, reading.renewal);
    if (answer !== 'wait') return answer;
    if (context.clock.now() >= patienceEnds && 'renewal' in reading) return err(reading.renewal.notInTime());
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

/** True if this call now holds the lease: nobody held it, and the row was not changed since it was read. */
export async function lease(
  context: ServiceContext,
  row: Leasable,
  take: (lease: Lease) => readonly Statement[],
): Promise<boolean> {
  const now = context.clock.now();
  if (row.lease !== null && (row.leaseUntil ?? 0) > now) return false;
  return (await context.database.write(take({ id: randomToken(), until: now + LEASE_MS, now }))).ok;
}

function isBackingOff(context: ServiceContext, { lease: holder, leaseUntil }: Leasable): boolean {
  return holder === BACKOFF && (leaseUntil ?? 0) > context.clock.now();
}

/** When a value was stored, and its end; null if it has none. */
export interface Lifespan {
  readonly storedAt: string;
  readonly expiresAt: string | null;
}

/** Whether a value may still be sent. */
export function isUsable(nowMs: number, span: Lifespan): boolean {
  return span.expiresAt === null || nowMs < Date.parse(span.expiresAt) - Math.min(MARGIN_MS, lifetimeMs(span) / 4);
}

/** Whether it is time to renew a value. */
export function isRenewalDue(nowMs: number, span: Lifespan): boolean {
  return span.expiresAt !== null && nowMs >= Date.parse(span.expiresAt) - Math.min(AHEAD_MS, lifetimeMs(span) / 2);
}

function lifetimeMs({ storedAt, expiresAt }: Lifespan): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Math.max(0, Date.parse(expiresAt) - Date.parse(storedAt));
}
