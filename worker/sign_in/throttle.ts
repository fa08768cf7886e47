import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { clientNetwork } from './client_network.ts';
import { clearThrottle, countAttempt, forgetOldThrottles } from '../store/throttles.ts';
import { counted } from '../../shared/model/sentence.ts';

/** A limit on attempts. */
export interface Throttle {
  readonly kind: string;
  readonly most: number;
  readonly windowSeconds: number;
}

type Counting = Pick<ServiceContext, 'database' | 'vault' | 'clock'>;

/**
 * Counts one attempt for a subject, such as an address. The count is in the database and shared by all its workers.
 * Refuses with `too_many_attempts`.
 */
export async function takeAttempt(
  context: Counting,
  throttle: Throttle,
  subject: string,
): Promise<Result<void, ApiError>> {
  const now = nowSeconds(context);
  const key = await keyOf(context, throttle, subject);
  const window = { most: throttle.most, windowEnds: now + throttle.windowSeconds, nowSeconds: now };
  const written = await context.database.write([
    forgetOldThrottles(context.database, now),
    countAttempt(context.database, key, window),
  ]);
  return written.ok && written.value.at(-1) === 1 ? ok(undefined) : err(tooMany(throttle));
}

/**
 * The same for a client by its network ({@link clientNetwork}), and by what it asks about if that is given. Does not count if the
 * runtime does not provide the address.
 */
export async function takeClientAttempt(
  context: Counting,
  throttle: Throttle,
  clientAddress: string | null,
  about?: string,
): Promise<Result<void, ApiError>> {
  if (clientAddress === null) return ok(undefined);
  const network = clientNetwork(clientAddress);
  return takeAttempt(context, throttle, about === undefined ? network : JSON.stringify([network, about]));
}

/** Resets the count of a subject that has authenticated. */
export async function clearAttempts(context: Counting, throttle: Throttle, subject: string): Promise<void> {
  await context.database.write([clearThrottle(context.database, await keyOf(context, throttle, subject))]);
}

/** Keyed, so that the table does not reveal which addresses were tried. */
function keyOf({ vault }: Counting, { kind }: Throttle, subject: string): Promise<string> {
  return vault.mac(JSON.stringify(['svc throttle', kind, subject]));
}

function tooMany({ windowSeconds }: Throttle): ApiError {
  const message = `too many attempts: try again in ${counted(Math.ceil(windowSeconds / 60), 'minute')}`;
  return apiError('too_many_attempts', message, { retry_after_seconds: windowSeconds });
}
