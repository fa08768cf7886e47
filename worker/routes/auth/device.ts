import { ok, type Result } from '../../../shared/model/result.ts';
import { deviceInput, devicePoll, deviceReply, refreshInput, tokenPair } from '../../../shared/wire/device.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { deviceDecidedPage, devicePage, deviceQuestionPage } from '../../pages/people/device.ts';
import type { Caller } from '../../kernel/caller.ts';
import { decideOnProgram, findWaitingProgram } from '../../tokens/device_approval.ts';
import { redeemDeviceCode, requestDeviceCode } from '../../tokens/device_codes.ts';
import { refreshTokens, signProgramOut } from '../../tokens/program_sign_ins.ts';
import type { AppContext } from '../http/app_env.ts';
import { callerOfBrowser, crossSite, isSameOrigin } from '../http/authenticate.ts';
import { errorReply } from '../http/error_reply.ts';
import { readBody } from '../http/late_body.ts';
import { forAnyone } from '../http/operation.ts';
import { consolePage, showSignIn } from '../console/pages.ts';
import { jsonReply } from '../http/replies.ts';

export const postDeviceCode = forAnyone({
  summary: 'Start a device sign-in, which a signed-in person approves',
  description: 'For a program (RFC 8628): a person types the code on the page /device within ten minutes.',
  body: deviceInput,
  replies: { 200: deviceReply },
  async handle({ context, body, clientAddress }) {
    return jsonReply(await requestDeviceCode(context, { clientName: body.client_name, address: clientAddress }));
  },
});

export const postDeviceToken = forAnyone({
  summary: 'Get the tokens of an approved program',
  description: 'Refused with authorization_pending or slow_down until a person decides; then returns the tokens once.',
  body: devicePoll,
  replies: { 200: tokenPair },
  async handle({ context, body }) {
    return jsonReply(await redeemDeviceCode(context, body.device_code));
  },
});

export const postRefresh = forAnyone({
  summary: 'Exchange a refresh token for new tokens',
  description: 'Using a refresh token a second time ends the whole sign-in.',
  body: refreshInput,
  replies: { 200: tokenPair },
  async handle({ context, body }) {
    return jsonReply(await refreshTokens(context, body.refresh_token));
  },
});

export const postRevoke = forAnyone({
  summary: 'Sign a program out',
  body: refreshInput,
  replies: { 204: 'Signed out, or was not signed in' },
  async handle({ context, body }) {
    await signProgramOut(context, body.refresh_token);
    return ok({ status: 204 });
  },
});

/** `GET /device`: the form for the code. */
export async function getDevicePage(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  return caller === null ? showSignIn(c, 401) : consolePage(c, caller, devicePage(null));
}

/** `POST /device`: shows the program of the code and asks for a decision. */
export function postDevicePage(c: AppContext): Promise<Response> {
  return fromOurPage(c, async (caller, field) => {
    const typed = field('user_code');
    const found = await findWaitingProgram(c.get('context'), caller, typed);
    return found.ok ? consolePage(c, caller, deviceQuestionPage(found.value, typed)) : answerRefusal(c, caller, found);
  });
}

/** `POST /device/decide`: the decision. */
export function postDeviceDecision(c: AppContext): Promise<Response> {
  return fromOurPage(c, async (caller, field) => {
    const decision = field('decision') === 'approve' ? 'approve' : 'deny';
    const decided = await decideOnProgram(c.get('context'), caller, { typed: field('user_code'), decision });
    return decided.ok
      ? consolePage(c, caller, deviceDecidedPage(decided.value, decision))
      : answerRefusal(c, caller, decided);
  });
}

type Field = (name: string) => string;

/** A form from one of our own pages, with a signed-in browser. */
async function fromOurPage(
  c: AppContext,
  answer: (caller: Caller, field: Field) => Promise<Response>,
): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  if (!isSameOrigin(c)) return errorReply(c, crossSite());
  const { body: form, isLate } = await readBody(c, () => c.req.parseBody());
  const sender = isLate ? await callerOfBrowser(c) : caller;
  if (sender === null) return showSignIn(c, 401);
  return answer(sender, (name) => {
    const value = form[name];
    return typeof value === 'string' ? value.slice(0, MAX_FIELD) : '';
  });
}

const MAX_FIELD = 64;

function answerRefusal(
  c: AppContext,
  caller: Caller,
  { error }: Extract<Result<never, ApiError>, { ok: false }>,
): Promise<Response> {
  return consolePage(c, caller, devicePage(error.message), ERROR_STATUS[error.code]);
}
