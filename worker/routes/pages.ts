import type { OpenAPIHono } from '@hono/zod-openapi';
import { setCookie } from 'hono/cookie';
import { docsPage } from '../pages/docs.ts';
import { homePage, signInPage } from '../pages/home.ts';
import { messagePage } from '../pages/layout.ts';
import { STYLE } from '../pages/style.ts';
import { VERSION } from '../services/account.ts';
import { describeOverview } from '../services/overview.ts';
import { exchangeSignInCode, SESSION_SECONDS } from '../services/sign_in.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { callerOfBrowser, sessionCookie } from './authenticate.ts';

type Page = Parameters<AppContext['html']>[0];

/** Pages load one style sheet of ours and run nothing. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src 'self'";

export async function getHome(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return page(c, signInPage(), 401);
  return page(c, homePage(await describeOverview(c.get('context'), caller)), 200);
}

/** Signs a browser in: uses the link's code up and sets the session's cookie. */
export async function openSignInLink(c: AppContext): Promise<Response> {
  const token = await exchangeSignInCode(c.get('context'), c.req.param('code') ?? '');
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
export async function page(c: AppContext, html: Page, status: 200 | 400 | 401 | 410): Promise<Response> {
  c.header('content-security-policy', PAGE_POLICY);
  return c.html(html, status);
}
