import type { AccountChoice } from '../../shared/model/account_choice.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { parseVaultReference } from '../../shared/model/vault_path.ts';
import { covers } from '../../shared/net/host_pattern.ts';
import { decideAccounts } from '../../shared/resolve/account_choice.ts';
import type { SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { parseScopes, type SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { StepReach } from '../session/step_scope.ts';
import type { Session } from '../session/session.ts';
import type { PlanLockInput, StepScopeInput, StepStartInput } from './inputs.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { auditUnavailableError, localError, type LocalError, noSessionError } from './local_error.ts';
import { mintScopes } from './mint_scopes.ts';
import { sentinelsOf } from './sentinels.ts';

/** Signs a frozen plan. */
export async function signPlanLock(
  { planLocks }: LocalApiOptions,
  { content }: PlanLockInput,
): Promise<Result<object, LocalError>> {
  const lock = await planLocks.sign(content);
  return lock.ok ? ok({ lock: lock.value }) : err(localError(lock.error.reason, lock.error.message));
}

/**
 * Mints the proxy credential of one step (specification section 1, Tool-step egress). Hosts, effect and time come from the
 * lock that was verified when the session was created, and what it narrows is minted now, for it alone. The reach is recorded when the step starts or, if nobody reports a
 * start, when the scope ends.
 */
export async function openStepScope(
  options: LocalApiOptions,
  input: StepScopeInput,
): Promise<Result<object, LocalError>> {
  const { audit, sessions } = options;
  const session = sessions.get(input.session_id);
  if (session === null) return err(noSessionError(input.session_id));
  const step = findSealedStep(session, input.step_id);
  if (!step.ok) return step;
  const choice = choiceOf(options, step.value);
  if (!choice.ok) return choice;
  const scopes = parseScopes(step.value.scopes ?? []);
  if (!scopes.ok)
    return err(localError('plan_lock_invalid', `step_id: step ${step.value.id}: ${scopes.error.message}`));
  const reach = scopeReach(step.value, choice.value, scopes.value);
  if (!reach.ok) return reach;
  if (!audit.accepting) return err(auditUnavailableError());
  const { scope, token } = session.openScope(reach.value, options.clock.now());
  const minted = await mintScopes(options, { id: scope.credentialsId, scopes: scope.scopes });
  if (!minted.ok) {
    await session.endScope(scope.scopeId);
    return minted;
  }
  scope.onUnreported(() =>
    recordReach(options, session, step.value, { enforced: false, reason: 'step_start_unknown' }),
  );
  const { effect, hosts } = reach.value;
  const expiresAt = new Date(scope.expiresAt).toISOString();
  const sentinels = sentinelsOf(options.policy.bindings(), choice.value);
  return ok({ scope_id: scope.scopeId, token, expires_at: expiresAt, hosts, effect, sentinels });
}

/**
 * Records what a step reaches (specification section 6). `enforced` is true if the reach came from the verified lock, the
 * step runs, and its scope was minted here and is open.
 */
export function recordStepStart(options: LocalApiOptions, input: StepStartInput): Result<void, LocalError> {
  const session = options.sessions.get(input.session_id);
  if (session === null) return err(noSessionError(input.session_id));
  const step = findSealedStep(session, input.step_id);
  if (!step.ok) return step;
  const scope = input.scope_id === undefined ? null : session.scope(input.scope_id);
  const ownScope = scope?.step.stepId === step.value.id ? scope : null;
  if (!options.audit.accepting) return err(auditUnavailableError());
  ownScope?.noteReported();
  const reason = input.began ? null : 'step_not_started';
  recordReach(options, session, step.value, { enforced: input.began && ownScope !== null, reason });
  return ok(undefined);
}

interface StartFacts {
  readonly enforced: boolean;
  /** Why it is unknown whether the step ran. */
  readonly reason: 'step_not_started' | 'step_start_unknown' | null;
}

function recordReach(
  { audit }: LocalApiOptions,
  session: Session,
  { id, effect, hosts }: SealedStep,
  { enforced, reason }: StartFacts,
): void {
  audit.record({
    type: 'flightplan.launch.reach',
    session_id: session.id,
    actor: 'session',
    data: {
      'svc.step.id': id,
      ...(effect !== undefined && { 'svc.reach.effect': effect }),
      'svc.reach.hosts': hosts,
      'svc.reach.enforced': enforced,
      ...(session.sandbox !== null && { 'svc.reach.egress': session.sandbox.egress === 'open' ? 'open' : 'sealed' }),
      ...(reason !== null && { 'svc.proxy.reason': reason }),
    },
  });
}

/** Revokes a scope; its tunnels are closed when this resolves. */
export async function closeStepScope(
  { sessions }: LocalApiOptions,
  scopeId: string,
): Promise<Result<void, LocalError>> {
  if (await sessions.endScope(scopeId)) return ok(undefined);
  return err(localError('not_found', `There is no scope ${JSON.stringify(scopeId.slice(0, 64))}, or it has ended.`));
}

function findSealedStep({ lock }: Session, stepId: string): Result<SealedStep, LocalError> {
  if (lock === null) {
    const message = 'The session was not created with the lock of a plan, so it has no reach to seal.';
    return err(localError('session_without_plan', message));
  }
  const step = lock.steps.find(({ id }) => id === stepId);
  if (step !== undefined) return ok(step);
  const known = lock.steps.map(({ id }) => id).join(', ');
  const asked = JSON.stringify(stepId.slice(0, 64));
  return err(localError('step_not_in_lock', `step_id: the lock has no step ${asked}. It has: ${known}`));
}

/**
 * The account that a step uses where its hosts have several: that of the credential in its lock. Decided when the scope opens. A
 * step whose credential is bound to none of its hosts gets no scope, because it would act as another account.
 */
function choiceOf(
  { policy }: LocalApiOptions,
  { id, credential, hosts }: SealedStep,
): Result<AccountChoice | null, LocalError> {
  if (credential === undefined) return ok(null);
  const path = parseVaultReference(credential);
  if (!path.ok) return err(localError('plan_lock_invalid', `step_id: step ${id}: ${path.error.message}`));
  const choice = decideAccounts([{ path: path.value, by: 'option', from: null }], policy.bindings());
  const isBound = choice.decisions.some(({ pattern }) => hosts.some((host) => covers(pattern, host)));
  if (isBound) return ok(choice);
  const message = `step_id: step ${id} needs ${credential}, and none of its hosts is bound to it.`;
  return err(localError('credential_unavailable', message));
}

function scopeReach(
  { id, effect, hosts, timeout_seconds: timeoutSeconds }: SealedStep,
  choice: AccountChoice | null,
  scopes: readonly SecretScope[],
): Result<StepReach, LocalError> {
  if (effect !== undefined && hosts.length > 0)
    return ok({ stepId: id, effect, hosts, timeoutSeconds, choice, scopes });
  const message = `step_id: step ${id} has no hosts in the lock, so it gets no proxy and no scope.`;
  return err(localError('step_without_reach', message));
}
