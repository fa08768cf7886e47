import type { MiddlewareHandler } from 'hono';
import type { AppContext, AppEnv } from './app_env.ts';

/** After this time the sender of a body is authenticated again: it may have been suspended meanwhile, or lost its role. */
const LATE_MS = 1_000;

/** Reads a body, and says whether it took so long that who sent it has to be looked up again. */
export async function readBody<T>(
  c: AppContext,
  read: () => Promise<T>,
): Promise<{ readonly body: T; readonly isLate: boolean }> {
  const { clock } = c.get('context');
  const timeMs = () => clock.monotonicNow?.() ?? clock.now();
  const began = timeMs();
  const body = await read();
  return { body, isLate: timeMs() - began >= LATE_MS };
}

/** Authenticates again after a body that was late: a call is not held open to outlast a suspension or a new role. */
export function authenticateLate(authenticate: MiddlewareHandler<AppEnv>): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const { isLate } = await readBody(c, () => c.req.arrayBuffer());
    return isLate ? authenticate(c, next) : next();
  };
}
