import { err, ok, type Result } from '../../../shared/model/result.ts';
import { loginInput, signedInReply, signupInput, signupReply, verifyInput } from '../../../shared/wire/auth.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { SignedIn } from '../../sign_in/sign_in_identity.ts';
import { signInWithPassword } from '../../sign_in/password_sign_in.ts';
import { beginSignup, verifySignup } from '../../sign_in/signup.ts';
import { sessionCookieHeader } from './auth_cookies.ts';
import { holdsCookies } from '../console/console_host.ts';
import { forAnyone, type Reply } from '../http/operation.ts';

export const postSignup = forAnyone({
  summary: 'Request a code to set a password',
  description:
    'For a new account, or a new password of an existing one. The code is sent to the address; the reply does not reveal whether it has an account.',
  body: signupInput,
  replies: { 202: signupReply },
  async handle({ context, body, clientAddress }) {
    const begun = await beginSignup(context, body, clientAddress);
    return begun.ok ? ok({ status: 202, json: begun.value }) : begun;
  },
});

export const postVerify = forAnyone({
  summary: 'Set the password with the code, and sign in',
  description: 'Five attempts within ten minutes. The reply sets a session cookie.',
  body: verifyInput,
  replies: { 200: signedInReply },
  async handle({ context, body, request }) {
    if (!holdsCookies(context, request.url)) return err(noCookieError());
    return answerSignedIn(context, await verifySignup(context, body, nameOf(request)));
  },
});

export const postLogin = forAnyone({
  summary: 'Sign in with an email and a password',
  description: 'The reply sets a session cookie.',
  body: loginInput,
  replies: { 200: signedInReply },
  async handle({ context, body, request, clientAddress }) {
    if (!holdsCookies(context, request.url)) return err(noCookieError());
    const client = { client: nameOf(request), address: clientAddress };
    return answerSignedIn(context, await signInWithPassword(context, body, client));
  },
});

/** Sets the session cookie. */
function answerSignedIn(context: ProgramContext, result: Result<SignedIn, ApiError>): Result<Reply, ApiError> {
  if (!result.ok) return result;
  const { userId, token } = result.value;
  const headers = { 'set-cookie': sessionCookieHeader(context, token) };
  return ok({ status: 200, json: { user_id: userId }, headers });
}

function noCookieError(): ApiError {
  const message = "use the console's own host name, which svc console prints: under this name no cookie is set";
  return apiError('misdirected_host', message);
}

function nameOf(request: Request): string {
  return request.headers.get('user-agent') ?? '';
}
