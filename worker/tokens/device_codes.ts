import { err, ok, type Result } from '../../shared/model/result.ts';
import type { DeviceReply, TokenPair } from '../../shared/wire/device.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { commit } from '../kernel/commit.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import type { TokenContext } from './token_context.ts';
import { nowSeconds, nowText } from '../kernel/service_context.ts';
import { takeClientAttempt, type Throttle } from '../sign_in/throttle.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import {
  type DeviceCodeRow,
  findDeviceCode,
  insertDeviceCode,
  postponeDevicePoll,
  takeDeviceCode,
} from '../store/device_codes.ts';
import { newProgramSignIn, publicUrlMissing } from './program_sign_ins.ts';

const CODE_SECONDS = 10 * 60;
const INTERVAL_SECONDS = 5;
/** RFC 8628 section 3.5. */
const SLOW_DOWN_SECONDS = 5;

/** Letters that are easy to distinguish when read out, and that form no words (RFC 8628 section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LETTER_COUNT = 8;

/** Limits requests from one address. */
const REQUESTS: Throttle = { kind: 'device requests', most: 30, windowSeconds: 10 * 60 };

/** Starts the sign-in of a program. Refuses with `public_url_missing`, `too_many_attempts`. */
export async function requestDeviceCode(
  context: TokenContext,
  request: { readonly clientName: string; readonly address: string | null },
): Promise<Result<DeviceReply, ApiError>> {
  if (context.publicUrl === null) return err(publicUrlMissing());
  const address = request.address ?? 'unknown';
  const allowed = await takeClientAttempt(context, REQUESTS, address);
  if (!allowed.ok) return allowed;
  const deviceCode = randomToken();
  const userCode = newUserCode();
  const now = nowSeconds(context);
  const row: DeviceCodeRow = {
    codeHash: await sha256Base64Url(deviceCode),
    userCodeMac: await context.vault.mac(codeText(userCode)),
    client: request.clientName,
    address,
    createdAt: nowText(context),
    expiresAt: now + CODE_SECONDS,
    intervalSeconds: INTERVAL_SECONDS,
    nextPollAt: now,
    state: 'pending',
    userId: null,
    provider: '',
  };
  const written = await context.database.write(insertDeviceCode(context.database, row, now));
  if (!written.ok) throw new Error('two waiting programs have the same code');
  return ok({
    device_code: deviceCode,
    user_code: `${userCode.slice(0, 4)}-${userCode.slice(4)}`,
    verification_uri: `${context.publicUrl}/device`,
    expires_in: CODE_SECONDS,
    interval: INTERVAL_SECONDS,
  });
}

/**
 * Answers a polling program: its tokens, once, if a user approved it. Refuses with `authorization_pending`,
 * `slow_down`, `access_denied`, and `expired_token`, also for an unknown code.
 */
export async function redeemDeviceCode(
  context: TokenContext,
  deviceCode: string,
): Promise<Result<TokenPair, ApiError>> {
  const codeHash = await sha256Base64Url(deviceCode);
  const row = await findDeviceCode(context.database, codeHash, nowSeconds(context));
  if (row === null) return err(expiredError());
  const early = await notePoll(context, row);
  if (early !== null) return err(early);
  if (row.state === 'pending') return err(pendingError());
  return row.state === 'approved' && row.userId !== null ? redeem(context, row, row.userId) : deny(context, row);
}

/** Records a poll. One that is too early increases the interval. */
async function notePoll(context: TokenContext, row: DeviceCodeRow): Promise<ApiError | null> {
  const now = nowSeconds(context);
  const isEarly = now < row.nextPollAt;
  const intervalSeconds = row.intervalSeconds + (isEarly ? SLOW_DOWN_SECONDS : 0);
  const next = { intervalSeconds, nextPollAt: now + intervalSeconds };
  const isOnlyOne = (await context.database.write(postponeDevicePoll(context.database, row, next))).ok;
  return isEarly || !isOnlyOne ? slowDown() : null;
}

async function redeem(context: TokenContext, row: DeviceCodeRow, userId: string): Promise<Result<TokenPair, ApiError>> {
  const account = await liveAccount(context, userId);
  if (account === null) return deny(context, row);
  const made = await newProgramSignIn(context, account, row);
  if (!made.ok) return made;
  const { family, statements, tokens } = made.value;
  const event = {
    type: 'control.session.began' as const,
    actor: userId,
    data: { 'svc.control.resource': family.id },
  };
  return commit(context, controlChain(account.user), async () => {
    const isThere = (await findDeviceCode(context.database, row.codeHash, nowSeconds(context))) !== null;
    if (!isThere || (await liveAccount(context, userId)) === null) return err(expiredError());
    const taken = [...takeDeviceCode(context.database, row.codeHash), ...statements];
    const adds = [{ kind: 'program_sign_ins' as const, holder: userId }];
    return ok({ statements: taken, events: [event], adds, value: tokens });
  });
}

/** Checked again within the write, so that no sign-in can start after its user was suspended. */
async function liveAccount(context: TokenContext, userId: string): Promise<Account | null> {
  const account = await findAccount(context.database, userId);
  return account === null || account.user.suspendedAt !== null ? null : account;
}

async function deny(context: TokenContext, row: DeviceCodeRow): Promise<Result<never, ApiError>> {
  await context.database.write(takeDeviceCode(context.database, row.codeHash));
  return err(apiError('access_denied', 'the sign-in was not approved'));
}

/** Every letter is equally likely: bytes that would favour some are drawn again. */
function newUserCode(): string {
  const most = 256 - (256 % LETTERS.length);
  let code = '';
  while (code.length < LETTER_COUNT) {
    const [byte = 0] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < most) code += LETTERS.charAt(byte % LETTERS.length);
  }
  return code;
}

/** The stored form of a typed code. It is keyed, because all codes could be hashed and compared. */
export function userCodeMacs({ vault }: Pick<TokenContext, 'vault'>, typed: string): Promise<readonly string[]> {
  return vault.macs(codeText(typed));
}

/** Ignores case, spaces and dashes. */
function codeText(typed: string): string {
  return JSON.stringify(['svc device code', typed.toUpperCase().replaceAll(/[^A-Z]/g, '')]);
}

function pendingError(): ApiError {
  return apiError('authorization_pending', 'not decided yet: poll again after the interval');
}

function slowDown(): ApiError {
  return apiError('slow_down', 'polled too early: wait five seconds longer from now on');
}

function expiredError(): ApiError {
  return apiError('expired_token', 'this code was used or has expired after ten minutes: start the sign-in again');
}
