import type { OpenAPIHono } from '@hono/zod-openapi';
import { setCookie } from 'hono/cookie';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { docsPage } from '../pages/docs.ts';
import { homePage } from '../pages/home.ts';
import { messagePage } from '../pages/layout.ts';
import { signInPage } from '../pages/sign_in.ts';
import { STYLE } from '../pages/style.ts';
import { VERSION } from '../services/account.ts';
import { describeOverview } from '../services/overview.ts';
import { listMethods } from '../sign_in/methods.ts';
import { exchangeSignInCode, SESSION_SECONDS } from '../services/sign_in.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { localPath } from './return_to.ts';
import { callerOfBrowser, sessionCookie } from './authenticate.ts';

type Page = Parameters<AppContext['html']>[0];

/** Pages load one style sheet of ours and run nothing. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src 'self'";

export async function getHome(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  return page(c, homePage(await describeOverview(c.get('context'), caller)), 200);
}

/** Every way to sign in. With 401 in place of a page that only somebody who is signed in may see: it comes back to it. */
export function showSignIn(c: AppContext, status: 200 | 401): Promise<Response> {
  const context = c.get('context');
  const returnTo = localPath(status === 401 ? c.req.path : c.req.query('return_to'));
  return page(c, signInPage({ methods: listMethods(context), isLocal: context.local !== null, returnTo }), status);
}

/** Signs a browser in: uses the link's code up and sets the session's cookie. */
export async function openSignInLink(c: AppContext): Promise<Response> {
  const token = await exchangeSignInCode(c.get('context'), c.req.param('code') ?? '', c.req.header('user-agent') ?? '');
  if (!token.ok) return page(c, messagePage('Sign-in link', token.error.message), 410);
  const secure = new URL(c.req.url).protocol === 'https:';
  setCookie(c, sessionCookie(c.get('context')), token.value, {
    httpOnly: true,
    secure,
    sameSite: 'Lax',
    path: '/',
    maxAge: SESSION_SECONDS,
  });
  return c.redirect('/', 303);
}

export function getOpenApi(app: OpenAPIHono<AppEnv>): (c: AppContext) => Response {
  const describe = once(() => openApiDocument(app));
  return (c) => c.json(describe());
}

export function getDocs(app: OpenAPIHono<AppEnv>): (c: AppContext) => Promise<Response> {
  const describe = once(() => docsPage(openApiDocument(app)));
  return (c) => page(c, describe(), 200);
}

export function getStyle(c: AppContext): Response {
  return c.body(STYLE, 200, { 'content-type': 'text/css; charset=utf-8', 'cache-control': 'max-age=300' });
}

/** Makes a thing when it is first asked for. Nobody signs in to read the description: each reading has to cost little. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function openApiDocument(app: OpenAPIHono<AppEnv>) {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'svc control API', version: VERSION, description: DESCRIPTION },
  });
}

const DESCRIPTION =
  'JSON in snake_case; times are RFC 3339 in UTC; lists are paged by cursor. A refusal is {"error": {code, message, details?, request_id}}.';

/** A page of ours. */
export async function page(c: AppContext, html: Page, status: ContentfulStatusCode): Promise<Response> {
  c.header('content-security-policy', PAGE_POLICY);
  return c.html(html, status);
}
