import { err, ok, type Result } from '../../shared/model/result.ts';
import type { StepReach } from '../session/step_scope.ts';
import type { Session } from '../session/session.ts';
import type { PlanLockInput, StepScopeInput } from './inputs.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { auditUnavailable, localError, type LocalError, noSession } from './local_error.ts';

/** Signs what a plan was frozen to. */
export async function signPlanLock(
  { planLocks }: LocalApiOptions,
  { content }: PlanLockInput,
): Promise<Result<object, LocalError>> {
  const lock = await planLocks.sign(content);
  return lock.ok ? ok({ lock: lock.value }) : err(localError(lock.error.reason, lock.error.message));
}

/**
 * Mints the proxy credential of one step and records what it reaches (specification sections 1 and 6). Hosts, effect and
 * time come from the lock that the session was made with, which was verified then.
 */
export function openStepScope(options: LocalApiOptions, input: StepScopeInput): Result<object, LocalError> {
  const { audit, sessions } = options;
  const session = sessions.get(input.session_id);
  if (session === null) return err(noSession(input.session_id));
  const step = sealedStep(session, input.step_id);
  if (!step.ok) return step;
  if (!audit.accepting) return err(auditUnavailable());
  const { scope, token } = session.openScope(step.value, options.clock.now());
  const { stepId, effect, hosts } = step.value;
  audit.record({
    type: 'flightplan.launch.reach',
    session_id: session.id,
    actor: 'session',
    data: {
      'svc.step.id': stepId,
      'svc.reach.effect': effect,
      'svc.reach.hosts': hosts,
      'svc.reach.enforced': true,
    },
  });
  const expiresAt = new Date(scope.expiresAt).toISOString();
  return ok({ scope_id: scope.scopeId, token, expires_at: expiresAt, hosts, effect });
}

/** Revokes a scope; its tunnels are closed when this resolves. */
export async function closeStepScope(
  { sessions }: LocalApiOptions,
  scopeId: string,
): Promise<Result<void, LocalError>> {
  if (await sessions.endScope(scopeId)) return ok(undefined);
  return err(localError('not_found', `There is no scope ${JSON.stringify(scopeId.slice(0, 64))}, or it has ended.`));
}

function sealedStep({ lock }: Session, stepId: string): Result<StepReach, LocalError> {
  if (lock === null) {
    const message = 'The session was not made with the lock of a plan, so that there is no reach to seal.';
    return err(localError('session_without_plan', message));
  }
  const step = lock.steps.find(({ id }) => id === stepId);
  if (step === undefined) {
    const known = lock.steps.map(({ id }) => id).join(', ');
    const asked = JSON.stringify(stepId.slice(0, 64));
    return err(localError('step_not_in_lock', `step_id: the lock has no step ${asked}. It has: ${known}`));
  }
  const { effect, hosts, timeout_seconds: timeoutSeconds } = step;
  if (effect !== undefined && hosts.length > 0) return ok({ stepId, effect, hosts, timeoutSeconds });
  const message = `step_id: step ${stepId} is sealed without hosts: it runs without network and gets no scope.`;
  return err(localError('step_without_reach', message));
}
