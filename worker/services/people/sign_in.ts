import { replaceHidden } from '../../../shared/model/shown_text.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { type Account, findAccount } from '../../store/accounts.ts';
import {
  type BrowserSessionRow,
  exchangeSignInLink,
  findBrowserSession,
  findSignInLink,
  insertSignInLink,
  touchBrowserSession,
} from '../../store/browser_sessions.ts';
import type { Statement } from '../../store/database.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import { freshId, nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';

const LINK_SECONDS = 10 * 60;
/** A browser session lasts a working day. */
export const SESSION_SECONDS = 12 * 3600;

/** Creates a code that signs a browser in once, within ten minutes. Only its hash is stored. */
export async function createSignInCode(
  context: ServiceContext,
  caller: Caller,
): Promise<{ readonly code: string; readonly expiresAt: string }> {
  const { statements, ...link } = await newSignInLink(context, caller.userId);
  const written = await context.database.write(statements);
  if (!written.ok) throw new Error('two sign-in codes have the same hash');
  return link;
}

/** Makes a code that is not stored yet, and the statements that store it. */
export async function newSignInLink(
  context: ServiceContext,
  userId: string,
): Promise<{ readonly code: string; readonly expiresAt: string; readonly statements: Statement[] }> {
  const code = randomToken();
  const now = nowSeconds(context);
  const row = { codeHash: await sha256Base64Url(code), userId, expiresAt: now + LINK_SECONDS };
  const expiresAt = new Date(row.expiresAt * 1000).toISOString();
  return { code, expiresAt, statements: insertSignInLink(context.database, row, now) };
}

/** What a list of sessions shows: how the user signed in, and the browser's name for itself. */
export interface SessionMeta {
  readonly provider: string;
  readonly client: string;
}

/** Makes a session that is not stored yet, and its token. Only the token's hash is stored. */
export async function newBrowserSession(
  context: ServiceContext,
  userId: string,
  meta: SessionMeta,
): Promise<{ readonly token: string; readonly session: BrowserSessionRow }> {
  const token = randomToken();
  const now = nowText(context);
  const session = {
    id: freshId(context, 'bse'),
    tokenHash: await sha256Base64Url(token),
    userId,
    provider: meta.provider,
    client: clientName(meta.client),
    createdAt: now,
    lastSeenAt: now,
    expiresAt: nowSeconds(context) + SESSION_SECONDS,
  };
  return { token, session };
}

const MAX_CLIENT = 200;

/** A client-supplied name, made safe to display. */
function clientName(text: string): string {
  return replaceHidden(text, { keepsLines: false, write: () => '' }).slice(0, MAX_CLIENT);
}

/** Exchanges a sign-in code for a browser session and returns its token. Refuses with `link_expired`. In local mode it is not recorded: the link is the user's own. */
export async function exchangeSignInCode(
  context: ServiceContext,
  code: string,
  client: string,
): Promise<Result<string, ApiError>> {
  const codeHash = await sha256Base64Url(code);
  const link = await findSignInLink(context.database, codeHash);
  const now = nowSeconds(context);
  if (link === null || link.expiresAt <= now) return err(expiredError());
  const account = await findAccount(context.database, link.userId);
  if (account === null) return err(expiredError());
  return commit(context, controlChain(account.user), async () => {
    if ((await findSignInLink(context.database, codeHash)) === null) return err(expiredError());
    const { token, session } = await newBrowserSession(context, link.userId, { provider: 'link', client });
    const statements = exchangeSignInLink(context.database, codeHash, session, now);
    return ok({ statements, events: context.local === null ? [signedInByLink(link.userId)] : [], value: token });
  });
}

function signedInByLink(userId: string): AuditDraft {
  const data = { 'svc.control.resource': userId, 'svc.control.provider': 'link' };
  return { type: 'control.user.signed_in', actor: userId, data };
}

function expiredError(): ApiError {
  return apiError(
    'link_expired',
    'this sign-in link was used or has expired after ten minutes: make a new one with "svc console"',
  );
}

/** How precisely the last use of a session is recorded. */
const SEEN_MS = 60_000;

/** The account of a browser's session token; null if there is none or its user is suspended. */
export async function accountOfSession(context: ServiceContext, token: string): Promise<Account | null> {
  const session = await findBrowserSession(context.database, await sha256Base64Url(token), nowSeconds(context));
  if (session === null) return null;
  const account = await findAccount(context.database, session.userId);
  if (account === null || account.user.suspendedAt !== null) return null;
  if (context.clock.now() - Date.parse(session.lastSeenAt) >= SEEN_MS) {
    await context.database.write([touchBrowserSession(context.database, session.id, nowText(context))]);
  }
  return account;
}

/** The account of a bearer token; null if there is none. */
export async function accountOfBearer(context: ServiceContext, token: string): Promise<Account | null> {
  if (context.local === null || (await sha256Base64Url(token)) !== context.local.keyHash) return null;
  return findAccount(context.database, context.local.userId);
}
