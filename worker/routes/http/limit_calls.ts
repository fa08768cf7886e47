import type { MiddlewareHandler } from 'hono';
import { ok } from '../../../shared/model/result.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import type { CallSide } from '../../kernel/call_rate.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { errorReply } from './error_reply.ts';

const WHO: Readonly<Record<CallSide, string>> = {
  people: 'the people and programs',
  sidecars: 'the sidecars',
  directory: 'the directories',
};

/** {@link refuseExcess} for the caller of an operation. */
export function limitCalls(side: 'people' | 'sidecars'): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const caller = side === 'people' ? c.get('caller') : c.get('sidecar');
    return refuseExcess(c, side, caller.enterpriseId) ?? next();
  };
}

/**
 * Refuses an authenticated call with `too_many_calls` once its enterprise has made as many as it may; null if it may be made. The
 * audit log has the first refusal of each minute and worker, and not each of them: a flood of calls must not become one of events.
 */
export function refuseExcess(c: AppContext, side: CallSide, enterpriseId: string): Response | null {
  const context = c.get('context');
  const verdict = context.callRate?.take(side, enterpriseId) ?? { isAdmitted: true };
  if (verdict.isAdmitted) return null;
  if (verdict.isFirst) context.defer('the event of a refused call', () => record(context, side, enterpriseId));
  const { retryAfterSeconds } = verdict;
  c.header('Retry-After', String(retryAfterSeconds));
  const message = `${WHO[side]} of your enterprise have made as many calls as they may: try again in ${retryAfterSeconds} s`;
  return errorReply(c, apiError('too_many_calls', message, { retry_after_seconds: retryAfterSeconds }));
}

async function record(context: ServiceContext, side: CallSide, enterpriseId: string): Promise<void> {
  const data = { 'svc.control.reason': side };
  const events = [{ type: 'control.enterprise.calls_refused' as const, actor: null, data }];
  const written = await commit(context, controlChain({ enterpriseId }), async () =>
    ok({ statements: [], events, value: null }),
  );
  if (!written.ok) throw new Error(written.error.message);
}
