import type { OpenAPIHono } from '@hono/zod-openapi';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { toSentence } from '../../../shared/model/sentence.ts';
import { codePointName, replaceHidden } from '../../../shared/model/shown_text.ts';
import { NOT_SENT } from '../../pages/components/alert.ts';
import { nameCommands } from '../../pages/components/code_block.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { docsPage } from '../../pages/frame/docs.ts';
import { messagePage, type Page } from '../../pages/frame/layout.ts';
import { withoutCalls } from '../../pages/frame/page_words.ts';
import { type Person, renderPage } from '../../pages/frame/shell.ts';
import { consoleHintPage, type RefusedSignIn, signInPage } from '../../pages/people/sign_in.ts';
import { countWaiting } from '../../services/approvals/approvals.ts';
import { describePerson, VERSION } from '../../services/people/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listMethods } from '../../sign_in/methods.ts';
import { exchangeSignInCode } from '../../services/people/sign_in.ts';
import type { AppContext, AppEnv } from '../http/app_env.ts';
import { setSessionCookie } from '../auth/auth_cookies.ts';
import { callerOfBrowser, isStranger } from '../http/authenticate.ts';
import { isAtConsole } from './console_host.ts';
import { makeOnce } from './once.ts';
import { localPath } from '../auth/local_path.ts';
import { themeOf } from '../http/theme_cookie.ts';

/** What islands/push.js names its policy. */
const PUSH_POLICY = 'svc-push';

/**
 * Pages load and run only files of their own origin, and their scripts cannot turn text into markup or code: trusted
 * types refuse that. A page that registers the service worker has one policy, which allows that script's URL alone.
 */
const pagePolicy = (forms: FormTargets, { registersWorker = false }: Pick<Page, 'registersWorker'>) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    ...(forms === 'own' ? ["form-action 'self'"] : []),
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    `trusted-types ${registersWorker ? PUSH_POLICY : "'none'"}`,
  ].join('; ');

/** All ways to sign in. It replaces, with 401, a page that needs a session; the browser returns there after sign-in. */
export function showSignIn(c: AppContext, status: 200 | 401): Promise<Response> {
  if (status === 401 && c.req.method === 'POST') return showSignInForForm(c);
  const { pathname, search } = new URL(c.req.url);
  const returnTo = localPath(status === 401 ? pathname + search : c.req.query('return_to'));
  return page(c, signInView(c, returnTo), status);
}

/** A form was sent after the sign-in had ended: the browser returns to its page, which says that nothing was done. */
function showSignInForForm(c: AppContext): Promise<Response> {
  const returnTo = localPath(pathWith(c.get('pageOfForm')(new URL(c.req.url).pathname), { done: NOT_SENT }));
  return page(c, signInView(c, returnTo, { message: ENDED, email: '' }), 401);
}

const ENDED = 'your sign-in has ended, so nothing was changed: sign in, and send the form again';

/** The same page after a refusal, so that the person can try again or choose another way. */
export function showSignInAgain(c: AppContext, error: ApiError, email: string): Promise<Response> {
  const returnTo = localPath(c.req.query('return_to'));
  return page(c, signInView(c, returnTo, { message: withoutCalls(error.message), email }), ERROR_STATUS[error.code]);
}

function signInView(c: AppContext, returnTo: string, refused?: RefusedSignIn): Page {
  const context = c.get('context');
  return signInPage({ methods: listMethods(context), isLocal: context.local !== null, returnTo, refused });
}

/** Replaces a console page that was called by a loopback name. It does not reveal the console's name. */
export function showConsoleHint(c: AppContext): Promise<Response> {
  return page(c, consoleHintPage(), 401);
}

/** Signs a browser in: uses up the link's code and sets the session cookie. */
export async function openSignInLink(c: AppContext): Promise<Response> {
  if (await isStranger(c)) return page(c, messagePage('Sign-in link', OTHER_USER, TO_CONSOLE), 403);
  const token = await exchangeSignInCode(c.get('context'), c.req.param('code') ?? '', c.req.header('user-agent') ?? '');
  if (!token.ok) return page(c, messagePage('Sign-in link', toSentence(token.error.message), TO_CONSOLE), 410);
  setSessionCookie(c, token.value);
  return c.redirect('/', 303);
}

/** Without a session it shows how to sign in. */
export const TO_CONSOLE = { path: '/', title: 'Open the console' };

const OTHER_USER = 'This link is for the user of this machine who started svc.';

/** The description is public, so serving it must be cheap. */
export function getOpenApi(app: OpenAPIHono<AppEnv>): (c: AppContext) => Response {
  const describe = makeOnce(() => openApiDocument(app));
  return (c) => c.json(describe());
}

export function getDocs(app: OpenAPIHono<AppEnv>): (c: AppContext) => Promise<Response> {
  const describe = makeOnce(() => docsPage(openApiDocument(app)));
  return (c) => ownPage(c, describe(), 200);
}

function openApiDocument(app: OpenAPIHono<AppEnv>) {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'svc control API', version: VERSION, description: DESCRIPTION },
  });
}

const DESCRIPTION =
  'JSON in snake_case; times are RFC 3339 in UTC; lists are paged by cursor. An error is {"error": {code, message, details?, request_id}}.';

/** One of our own pages that needs no sign-in. */
export function page(c: AppContext, view: Page, status: ContentfulStatusCode): Promise<Response> {
  return send(c, view, { person: null, status, forms: 'own' });
}

/** A page that everybody may read. For a signed-in user it is in the console's frame. */
export async function ownPage(c: AppContext, view: Page, status: ContentfulStatusCode): Promise<Response> {
  const caller = await callerOfBrowser(c);
  return caller === null ? page(c, view, status) : consolePage(c, caller, view, status);
}

/**
 * Where the forms of a page may lead. Browsers apply `form-action` to every redirect after the form, so it would also
 * limit where another site redirects further.
 */
type FormTargets = 'own' | 'any';

/** A console page, for signed-in users. */
export async function consolePage(
  c: AppContext,
  caller: Caller,
  view: Page,
  status: ContentfulStatusCode = 200,
  forms: FormTargets = 'own',
): Promise<Response> {
  const context = c.get('context');
  const person = {
    ...(await describePerson(context, caller)),
    waiting: await countWaiting(context, caller),
  };
  return send(c, view, { person, status, forms });
}

interface Sent {
  readonly person: Person | null;
  readonly status: ContentfulStatusCode;
  readonly forms: FormTargets;
}

async function send(c: AppContext, view: Page, { person, status, forms }: Sent): Promise<Response> {
  c.header('content-security-policy', pagePolicy(forms, view));
  c.header('cross-origin-opener-policy', 'same-origin');
  const { search } = new URL(c.req.url);
  const path = c.req.method === 'POST' ? c.get('pageOfForm')(c.req.path) : c.req.path;
  const frame = { assets: c.get('assets'), person, path, search, theme: themeOf(c) };
  const document = await renderPage(view, frame);
  // Escapes invisible and bidirectional characters in every page, as a last line of defence.
  const local = isAtConsole(c) ? c.get('context').local : null;
  const named = local === null ? document.toString() : nameCommands(document.toString(), local.command);
  return c.html(replaceHidden(named, { keepsLines: true, write: markInMarkup }), status);
}

function markInMarkup(character: string): string {
  return `&lt;${codePointName(character)}&gt;`;
}
