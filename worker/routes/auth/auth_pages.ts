import type { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { loginInput, type SignupInput, signupInput, verifyInput } from '../../../shared/wire/auth.ts';
import { apiError, type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { codePage, signUpPage } from '../../pages/people/sign_up.ts';
import { passwordsOff } from '../../sign_in/password_identity.ts';
import { signInWithPassword } from '../../sign_in/password_sign_in.ts';
import { beginSignup, verifySignup } from '../../sign_in/signup.ts';
import { endBrowserSession, type SignedIn } from '../../sign_in/sign_in_identity.ts';
import type { AppContext } from '../http/app_env.ts';
import { setSessionCookie, takeSessionCookie } from './auth_cookies.ts';
import { refusalPage } from './auth_refusal.ts';
import { isSameOrigin } from '../http/authenticate.ts';
import { errorReply, invalidInput } from '../http/error_reply.ts';
import { page, showSignIn, showSignInAgain } from '../console/pages.ts';
import { localPath } from './local_path.ts';

/** `GET /sign-in`: all ways to sign in. */
export function getSignIn(c: AppContext): Promise<Response> {
  return showSignIn(c, 200);
}

/** `POST /sign-in`: the form with email and password. */
export async function submitSignIn(c: AppContext): Promise<Response> {
  const form = await readForm(c, loginInput);
  if (!form.ok) return showSignInAgain(c, form.error, '');
  const client = { client: nameOf(c), address: c.get('clientAddress') };
  const signedIn = await signInWithPassword(c.get('context'), form.value, client);
  if (!signedIn.ok) return showSignInAgain(c, signedIn.error, form.value.email);
  return enter(c, signedIn.value, c.req.query('return_to'));
}

/** `GET /sign-up`: the form to create an account with a password, or set a new password. */
export function getSignUp(c: AppContext): Promise<Response> {
  return c.get('context').signIn.mail === null ? refusalPage(c, passwordsOff()) : page(c, signUpPage(), 200);
}

/** `POST /sign-up`: sends the code, and asks for it. */
export async function submitSignUp(c: AppContext): Promise<Response> {
  const form = await readForm(c, signupInput);
  if (!form.ok) return showSignUpAgain(c, form.error, {});
  const begun = await beginSignup(c.get('context'), form.value, c.get('clientAddress'));
  return begun.ok ? page(c, codePage(begun.value), 200) : showSignUpAgain(c, begun.error, form.value);
}

/** The form again, without the password. */
function showSignUpAgain(c: AppContext, error: ApiError, typed: Partial<SignupInput>): Promise<Response> {
  if (c.get('context').signIn.mail === null) return refusalPage(c, error);
  const { email = '', display_name: name = '' } = typed;
  return page(c, signUpPage({ message: error.message, email, name }), ERROR_STATUS[error.code]);
}

/** `POST /sign-up/code`: the mailed code. */
export async function submitCode(c: AppContext): Promise<Response> {
  const form = await readForm(c, verifyInput);
  if (!form.ok) return refusalPage(c, form.error);
  const signedIn = await verifySignup(c.get('context'), form.value, nameOf(c));
  if (signedIn.ok) return enter(c, signedIn.value, undefined);
  if (signedIn.error.code !== 'verification_failed') return refusalPage(c, signedIn.error);
  return page(c, codePage(form.value, signedIn.error.message), ERROR_STATUS[signedIn.error.code]);
}

/** `POST /auth/logout`: ends this browser's session; only from one of our own pages. */
export async function postLogout(c: AppContext): Promise<Response> {
  if (!isSameOrigin(c)) return errorReply(c, crossSite());
  const token = takeSessionCookie(c);
  if (token !== null) await endBrowserSession(c.get('context'), token);
  return c.req.header('accept')?.includes('text/html') === true ? c.redirect('/sign-in', 303) : c.body(null, 204);
}

/** Accepts forms only from our own pages; otherwise another site could sign people in as a user of its choice. */
async function readForm<T>(c: AppContext, schema: z.ZodType<T>): Promise<Result<T, ApiError>> {
  if (!isSameOrigin(c)) return err(crossSite());
  const fields = Object.entries(await c.req.parseBody()).filter(([, value]) => value !== '');
  const parsed = schema.safeParse(Object.fromEntries(fields));
  return parsed.success ? ok(parsed.data) : err(invalidInput('json', parsed.error));
}

function nameOf(c: AppContext): string {
  return c.req.header('user-agent') ?? '';
}

function enter(c: AppContext, { token }: SignedIn, returnTo: string | undefined): Response {
  setSessionCookie(c, token);
  return c.redirect(localPath(returnTo), 303);
}

function crossSite(): ApiError {
  return apiError(
    'cross_site_request',
    'sign in or out on a page of this control plane: forms of other sites are refused',
  );
}
