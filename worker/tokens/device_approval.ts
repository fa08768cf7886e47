import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Caller } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { takeAttempt, type Throttle } from '../sign_in/throttle.ts';
import { findBrowserSession } from '../store/browser_sessions.ts';
import { decideDevice, type DeviceCodeRow, findPendingDevice } from '../store/device_codes.ts';
import { userCodeMacs } from './device_codes.ts';

/** Limits the codes that one user types, right or wrong, so that nobody can guess another program's code. */
const TYPED_CODES: Throttle = { kind: 'device codes', most: 20, windowSeconds: 10 * 60 };

/** A program that requests a sign-in, as shown to the person who decides. */
export interface WaitingProgram {
  /** Its name for itself; unverified. */
  readonly client: string;
  /** The address that it called from. */
  readonly address: string;
  readonly requestedAt: string;
}

/** Finds the program that shows this code. Refuses with `not_found`, `too_many_attempts`. */
export async function findWaitingProgram(
  context: ServiceContext,
  caller: Caller,
  typed: string,
): Promise<Result<WaitingProgram, ApiError>> {
  const row = await rowOf(context, caller, typed);
  if (!row.ok) return row;
  const { client, address, createdAt } = row.value;
  return ok({ client, address, requestedAt: createdAt });
}

/**
 * Signs the program that shows this code in as the caller, or denies it. The sign-in has the provider of the caller's
 * browser session, and ends when rules end that. Refuses with `not_found`, `too_many_attempts`, and `unauthenticated`
 * if the browser was signed out meanwhile.
 */
export async function decideOnProgram(
  context: ServiceContext,
  caller: Caller,
  answer: { readonly typed: string; readonly decision: 'approve' | 'deny' },
): Promise<Result<WaitingProgram, ApiError>> {
  const allowed = await takeAttempt(context, TYPED_CODES, caller.userId);
  if (!allowed.ok) return allowed;
  const state = answer.decision === 'approve' ? ('approved' as const) : ('denied' as const);
  const data = { 'svc.control.resource': 'device', 'svc.approval.decision': answer.decision };
  return commit(context, controlChain(caller), async () => {
    const row = await findPending(context, answer.typed);
    if (!row.ok) return row;
    const session = await findBrowserSession(context.database, caller.signIn ?? '', nowSeconds(context));
    if (session === null) return err(apiError('unauthenticated', 'this browser was signed out: sign in again'));
    const { client, address, createdAt } = row.value;
    const decision = { state, userId: caller.userId, provider: session.provider };
    return ok({
      statements: decideDevice(context.database, row.value.codeHash, decision),
      events: [{ type: 'control.device.decided' as const, actor: caller.userId, data }],
      value: { client, address, requestedAt: createdAt },
    });
  });
}

async function rowOf(context: ServiceContext, caller: Caller, typed: string): Promise<Result<DeviceCodeRow, ApiError>> {
  const allowed = await takeAttempt(context, TYPED_CODES, caller.userId);
  return allowed.ok ? findPending(context, typed) : allowed;
}

/** One refusal for a code that never existed, was decided, or has expired. */
async function findPending(context: ServiceContext, typed: string): Promise<Result<DeviceCodeRow, ApiError>> {
  const row = await findPendingDevice(context.database, await userCodeMacs(context, typed), nowSeconds(context));
  if (row !== null) return ok(row);
  return err(apiError('not_found', 'no program is waiting with this code: check the code, or start the sign-in again'));
}
