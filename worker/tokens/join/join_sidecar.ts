import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { JoinInput, JoinRefusal, JoinReply } from '../../../shared/wire/service_accounts.ts';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { takeAttempt, takeClientAttempt, type Throttle } from '../../sign_in/throttle.ts';
import {
  findServiceAccount,
  isJoinTokenUsed,
  type ServiceAccountRow,
  takeJoinToken,
} from '../../store/service_accounts.ts';
import { insertSidecar } from '../../store/sidecars.ts';
import { enrolled, keyProblem, newSidecar } from '../../services/sidecars/sidecars.ts';
import { checkToken, type CheckedToken, type TokenRefusal } from './check_token.ts';

/** Joins from one network: the jobs of a large runner. Each costs calls to the issuer. */
const JOINS_OF_CLIENT: Throttle = { kind: 'joins', most: 300, windowSeconds: 10 * 60 };
/** Joins with tokens that satisfy the policy: each is in the audit log. */
const JOINS_OF_ACCOUNT: Throttle = { kind: 'joins of an account', most: 600, windowSeconds: 10 * 60 };
/**
 * Refusals of tokens that the issuer signed: each is in the audit log. They are counted apart from the joins, because anybody can
 * get such tokens from an issuer that serves everybody, and could otherwise use up the joins of an account.
 */
const REFUSALS_OF_ACCOUNT: Throttle = { kind: 'refused joins of an account', most: 60, windowSeconds: 10 * 60 };

const MINUTE_MS = 60_000;

/**
 * Enrols a sidecar for a while, for a job that shows a token of the service account's issuer. Refuses with `join_refused`,
 * `invalid_input`, `too_many_attempts`, `issuer_failed`, `limit_reached`.
 */
export async function joinSidecar(
  context: ServiceContext,
  input: JoinInput,
  clientAddress: string | null,
): Promise<Result<JoinReply, ApiError>> {
  const allowed = await takeClientAttempt(context, JOINS_OF_CLIENT, clientAddress);
  if (!allowed.ok) return allowed;
  const problem = await keyProblem(input);
  if (problem !== null) return err(problem);
  const found = await findServiceAccount(context.database, input.service_account);
  if (found === null || found.user.suspendedAt !== null) return err(refused({ reason: 'unknown_service_account' }));
  const checked = await checkToken(context, found, input.token);
  if (!checked.ok) {
    const { error } = checked;
    return error.kind === 'failure' ? err(error.error) : refuseToken(context, found, error.refusal);
  }
  const counted = await takeAttempt(context, JOINS_OF_ACCOUNT, found.account.userId);
  if (!counted.ok) return counted;
  const joined = await enrol(context, found, { input, token: checked.value });
  const isReplay = !joined.ok && joined.error.details?.['reason'] === 'used_before';
  return isReplay ? refuseToken(context, found, { reason: 'used_before', subject: checked.value.subject }) : joined;
}

async function enrol(
  context: ServiceContext,
  found: ServiceAccountRow,
  { input, token }: { readonly input: JoinInput; readonly token: CheckedToken },
): Promise<Result<JoinReply, ApiError>> {
  const { account } = found;
  const minutes = Math.min(account.minutes, input.minutes ?? account.minutes);
  const expiresAt = new Date(context.clock.now() + minutes * MINUTE_MS).toISOString();
  const row = { ...newSidecar(context, account, input), expiresAt, ownOnly: account.reach === 'own' };
  const now = { seconds: nowSeconds(context), text: nowText(context) };
  return commit(context, controlChain(account), async () => {
    if (await isJoinTokenUsed(context.database, token.tokenHash)) return err(refused({ reason: 'used_before' }));
    const current = await findServiceAccount(context.database, account.userId);
    // A change or a suspension ends its sidecars in the same chain, so none may join by the policy before it.
    if (current === null || current.user.suspendedAt !== null || !isSamePolicy(current, found)) {
      return err(refused({ reason: 'unknown_service_account' }));
    }
    const data = { ...aboutToken(found, token.subject), 'svc.control.resource': row.id };
    return ok({
      statements: [...takeJoinToken(context.database, found, token, now), ...insertSidecar(context.database, row)],
      events: [{ type: 'control.sidecar.joined', actor: account.userId, data }],
      begins: [row.id],
      adds: [{ kind: 'job_sidecars', holder: account.userId }],
      value: { ...enrolled(context, row), expires_at: expiresAt },
    });
  });
}

function isSamePolicy(one: ServiceAccountRow, other: ServiceAccountRow): boolean {
  return policyText(one) === policyText(other);
}

function policyText({ account }: ServiceAccountRow): string {
  const { issuer, audience, claims, reach, minutes, keys } = account;
  return JSON.stringify([issuer, audience, claims, reach, minutes, keys]);
}

/** Refuses, and records it if the issuer signed the token: then it says which job was refused, and nobody can invent it. */
async function refuseToken(
  context: ServiceContext,
  { account }: ServiceAccountRow,
  refusal: TokenRefusal,
): Promise<Result<never, ApiError>> {
  const { subject, reason } = refusal;
  if (subject === undefined) return err(refused(refusal));
  const counted = await takeAttempt(context, REFUSALS_OF_ACCOUNT, account.userId);
  if (!counted.ok) return counted;
  const data = {
    ...aboutToken({ account }, subject),
    'svc.control.resource': account.userId,
    'svc.control.reason': reason,
  };
  const event = { type: 'control.service_account.join_refused' as const, actor: null, data };
  const recorded = await commit(context, controlChain(account), async () =>
    ok({ statements: [], events: [event], value: null }),
  );
  return recorded.ok ? err(refused(refusal)) : recorded;
}

function aboutToken({ account }: Pick<ServiceAccountRow, 'account'>, subject: string): AuditEventData {
  return { 'svc.control.issuer': account.issuer, 'svc.control.subject': subject };
}

/** What each refusal says to the job: the problem and the fix. It names no value of the policy. */
const WORDS: Readonly<Record<JoinRefusal, string>> = {
  unknown_service_account:
    'there is no such service account, or it is suspended or was just changed: ask an admin for its id',
  not_a_token: 'the token is not a complete signed JWT: give the token of the job',
  algorithm: 'the token is not signed with a public-key algorithm such as RS256',
  issuer: 'the token is of another issuer than the service account takes tokens from',
  audience: 'the token is for another audience: request one for the audience of the service account alone',
  expired: 'the token has expired: request a new one just before joining',
  not_yet_valid: 'the token is not valid yet: compare the clocks of its issuer and of the control plane',
  lives_too_long: 'the token lives longer than a day: request one for the job',
  signature:
    'no key of the issuer verifies the token: give it unchanged, and have an admin compare the stored keys, if any',
  used_before: 'the token was used before: request a new one for each join',
  claims: 'the token does not satisfy the rules of the service account about',
};

function refused({ reason, claims }: TokenRefusal): ApiError {
  const words = claims === undefined ? WORDS[reason] : `${WORDS[reason]} ${claims.join(', ')}`;
  return apiError('join_refused', words, { reason, ...(claims !== undefined && { claims }) });
}
