import type { OpenAPIHono } from '@hono/zod-openapi';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { codePointName, replaceHidden } from '../../../shared/model/shown_text.ts';
import { docsPage } from '../../pages/frame/docs.ts';
import { messagePage, type Page } from '../../pages/frame/layout.ts';
import { type Person, renderPage } from '../../pages/frame/shell.ts';
import { consoleHintPage, signInPage } from '../../pages/people/sign_in.ts';
import { describePerson, VERSION } from '../../services/people/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listMethods } from '../../sign_in/methods.ts';
import { exchangeSignInCode } from '../../services/people/sign_in.ts';
import type { AppContext, AppEnv } from '../http/app_env.ts';
import { setSessionCookie } from '../auth/auth_cookies.ts';
import { isStranger } from '../http/authenticate.ts';
import { once } from './once.ts';
import { localPath } from '../auth/return_to.ts';

/**
 * Pages load and run files of ours alone, under no name but this origin's, and nothing of theirs can become markup or code:
 * trusted types refuse every text where one would.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Every way to sign in. With 401 in place of a page that only somebody who is signed in may see: it comes back to it. */
export function showSignIn(c: AppContext, status: 200 | 401): Promise<Response> {
  const context = c.get('context');
  const { pathname, search } = new URL(c.req.url);
  const returnTo = localPath(status === 401 ? pathname + search : c.req.query('return_to'));
  return page(c, signInPage({ methods: listMethods(context), isLocal: context.local !== null, returnTo }), status);
}

/** In place of a page of the console that was called by a loopback name. It does not tell the console's own. */
export function showConsoleHint(c: AppContext): Promise<Response> {
  return page(c, consoleHintPage(), 401);
}

/** Signs a browser in: uses the link's code up and sets the session's cookie. */
export async function openSignInLink(c: AppContext): Promise<Response> {
  if (await isStranger(c)) return page(c, messagePage('Sign-in link', OTHER_USER), 403);
  const token = await exchangeSignInCode(c.get('context'), c.req.param('code') ?? '', c.req.header('user-agent') ?? '');
  if (!token.ok) return page(c, messagePage('Sign-in link', token.error.message), 410);
  setSessionCookie(c, token.value);
  return c.redirect('/', 303);
}

const OTHER_USER = 'This link is for the user of this machine who started svc.';

/** Nobody signs in to read the description: each reading has to cost little. */
export function getOpenApi(app: OpenAPIHono<AppEnv>): (c: AppContext) => Response {
  const describe = once(() => openApiDocument(app));
  return (c) => c.json(describe());
}

export function getDocs(app: OpenAPIHono<AppEnv>): (c: AppContext) => Promise<Response> {
  const describe = once(() => docsPage(openApiDocument(app)));
  return (c) => page(c, describe(), 200);
}

function openApiDocument(app: OpenAPIHono<AppEnv>) {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'svc control API', version: VERSION, description: DESCRIPTION },
  });
}

const DESCRIPTION =
  'JSON in snake_case; times are RFC 3339 in UTC; lists are paged by cursor. A refusal is {"error": {code, message, details?, request_id}}.';

/** A page of ours that needs no sign-in. */
export function page(c: AppContext, view: Page, status: ContentfulStatusCode): Promise<Response> {
  return send(c, view, null, status);
}

/** A page of the console, for who is signed in. */
export async function consolePage(
  c: AppContext,
  caller: Caller,
  view: Page,
  status: ContentfulStatusCode = 200,
): Promise<Response> {
  return send(c, view, await describePerson(c.get('context'), caller), status);
}

async function send(c: AppContext, view: Page, person: Person | null, status: ContentfulStatusCode): Promise<Response> {
  c.header('content-security-policy', PAGE_POLICY);
  c.header('cross-origin-opener-policy', 'same-origin');
  const document = await renderPage(view, { assets: c.get('assets'), person, path: c.req.path });
  // Whatever a page forgot to ask for: no character that a person cannot see, or that turns others round, leaves here.
  return c.html(replaceHidden(document.toString(), { keepsLines: true, write: markInMarkup }), status);
}

function markInMarkup(character: string): string {
  return `&lt;${codePointName(character)}&gt;`;
}
