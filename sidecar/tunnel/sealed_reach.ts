import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { LiveSession } from '../ports.ts';

/** Whether a tunnel to the host may be opened at all: with a step's scope only to the hosts that its lock seals. */
export function checkReach({ reach }: LiveSession, host: string): Result<void, Refusal> {
  if (reach === undefined || reach.includes(host)) return ok(undefined);
  const message = `${host} is not among the hosts that the lock seals for step ${reach.stepId}; add it to the plan and freeze that again`;
  return err(refusal('step_scope_host_denied', message));
}
