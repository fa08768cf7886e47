import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { SignInRecord } from '../../../shared/wire/sign_ins.ts';
import { accountPage, signOutPage } from '../../pages/people/account.ts';
import { describeUser } from '../../services/people/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listPersonalTokenPage } from '../../tokens/personal_tokens.ts';
import { endSignIn, listSignInPage } from '../../tokens/sign_ins.ts';
import type { AppContext } from '../http/app_env.ts';
import { redirectDone, forChange, forReader, problem } from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';

const SHOWN = 50;

/** `GET /account?sign_ins=&tokens=`: each list from its cursor on. */
export const getAccount = forReader(async (c, caller) => {
  const context = c.get('context');
  const { sign_ins: after, tokens: tokensAfter, done: code } = c.req.query();
  const signIns = await listSignInPage(context, caller, { limit: SHOWN, cursor: after });
  if (!signIns.ok) return problem(c, caller, signIns.error);
  const tokens = await listPersonalTokenPage(context, caller, { limit: SHOWN, cursor: tokensAfter });
  if (!tokens.ok) return problem(c, caller, tokens.error);
  const me = await describeUser(context, caller);
  const view = { me, signIns: signIns.value, tokens: tokens.value, done: code, nowMs: context.clock.now() };
  return consolePage(c, caller, accountPage(view));
});

/** `GET /account/sign-ins/{id}/end`: asks for confirmation. */
export const askSignOut = forReader(async (c, caller) => {
  const signIn = await ownSignIn(c, caller);
  return signIn.ok ? consolePage(c, caller, signOutPage(signIn.value)) : problem(c, caller, signIn.error);
});

/** `POST /account/sign-ins/{id}/end`. After signing out the current browser, the user gets the sign-in page. */
export const submitSignOut = forChange(async (c, caller) => {
  const ended = await endSignIn(c.get('context'), caller, c.req.param('id') ?? '');
  return ended.ok ? redirectDone(c, '/account', 'signed_out') : problem(c, caller, ended.error);
});

function ownSignIn(c: AppContext, caller: Caller): Promise<Result<SignInRecord, ApiError>> {
  return findListed(
    c,
    (query) => listSignInPage(c.get('context'), caller, query),
    (id) => `there is no sign-in ${id}: the page Sign-ins and tokens lists yours`,
  );
}
