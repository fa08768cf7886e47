import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { serialize } from 'hono/utils/cookie';
import type { ProgramContext } from '../../installation/program_context.ts';
import { SESSION_SECONDS } from '../../services/people/sign_in.ts';
import { FLOW_SECONDS } from '../../sign_in/flows.ts';
import type { AppContext } from '../http/app_env.ts';
import { sessionCookie } from '../http/authenticate.ts';

/** The specification's name for a provider's state in the browser (section 5). */
const EXTRA_COOKIE = 'oauth_extra';

/**
 * `__Host-` keeps other hosts of the domain from planting their own state. It needs https, which local mode does not
 * have.
 */
function stateCookie(c: AppContext): string {
  return isLocal(c) ? 'oauth_state' : '__Host-oauth_state';
}

function isLocal(c: AppContext): boolean {
  return c.get('context').local !== null;
}

function options(c: AppContext, maxAge: number) {
  return { httpOnly: true, secure: !isLocal(c), sameSite: 'Lax', path: '/', maxAge } as const;
}

/** Stores the state of a started sign-in in the browser. */
export function setFlowCookies(c: AppContext, flow: { readonly state: string; readonly extraState: string }): void {
  setCookie(c, stateCookie(c), flow.state, options(c, FLOW_SECONDS));
  if (flow.extraState === '') return deleteFlowCookie(c, EXTRA_COOKIE);
  setCookie(c, EXTRA_COOKIE, flow.extraState, options(c, FLOW_SECONDS));
}

/** Reads and deletes the browser's state, so that a sign-in returns only once. */
export function takeFlowCookies(c: AppContext): { readonly cookieState: string; readonly extraState: string } {
  const kept = { cookieState: getCookie(c, stateCookie(c)) ?? '', extraState: getCookie(c, EXTRA_COOKIE) ?? '' };
  deleteFlowCookie(c, stateCookie(c));
  deleteFlowCookie(c, EXTRA_COOKIE);
  return kept;
}

function deleteFlowCookie(c: AppContext, name: string): void {
  deleteCookie(c, name, { path: '/', secure: !isLocal(c) });
}

export function setSessionCookie(c: AppContext, token: string): void {
  setCookie(c, sessionCookie(c.get('context')), token, options(c, SESSION_SECONDS));
}

/** The same as a header, for an API operation. */
export function sessionCookieHeader(context: Pick<ProgramContext, 'local'>, token: string): string {
  const how = { httpOnly: true, secure: context.local === null, sameSite: 'Lax', path: '/' } as const;
  return serialize(sessionCookie(context), token, { ...how, maxAge: SESSION_SECONDS });
}

/** Reads and deletes the session token. */
export function takeSessionCookie(c: AppContext): string | null {
  const name = sessionCookie(c.get('context'));
  const token = getCookie(c, name) ?? null;
  deleteCookie(c, name, { path: '/', secure: !isLocal(c) });
  return token;
}
