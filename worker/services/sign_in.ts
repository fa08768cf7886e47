import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { exchangeSignInLink, findBrowserSession, findSignInLink, insertSignInLink } from '../store/browser_sessions.ts';
import type { Caller } from './caller.ts';
import { randomToken, sha256Base64Url } from './encoding.ts';
import type { ServiceContext } from './service_context.ts';

const LINK_SECONDS = 10 * 60;
/** A browser stays signed in for a working day. */
export const SESSION_SECONDS = 12 * 3600;

/** A code that signs a browser in once, within ten minutes. Only its hash is stored. */
export async function createSignInCode(
  context: ServiceContext,
  caller: Caller,
): Promise<{ readonly code: string; readonly expiresAt: string }> {
  const code = randomToken();
  const now = seconds(context);
  const row = { codeHash: await sha256Base64Url(code), userId: caller.userId, expiresAt: now + LINK_SECONDS };
  const written = await context.database.write(insertSignInLink(context.database, row, now));
  if (!written.ok) throw new Error('two sign-in codes have one hash');
  return { code, expiresAt: new Date(row.expiresAt * 1000).toISOString() };
}

/** Uses a code up and begins a browser session: its token. Refuses with `link_expired`. */
export async function exchangeSignInCode(context: ServiceContext, code: string): Promise<Result<string, ApiError>> {
  const codeHash = await sha256Base64Url(code);
  const link = await findSignInLink(context.database, codeHash);
  const now = seconds(context);
  if (link === null || link.expiresAt <= now) return err(expired());
  const token = randomToken();
  const session = { tokenHash: await sha256Base64Url(token), userId: link.userId, expiresAt: now + SESSION_SECONDS };
  const begun = await context.database.write(exchangeSignInLink(context.database, codeHash, session, now));
  return begun.ok ? ok(token) : err(expired());
}

function expired(): ApiError {
  return apiError(
    'link_expired',
    'this sign-in link was used or its ten minutes are over: make a new one with "svc api POST /v1/sign-in-links"',
  );
}

/** The account of a browser's session token; null when there is none. */
export async function accountOfSession(context: ServiceContext, token: string): Promise<Account | null> {
  const session = await findBrowserSession(context.database, await sha256Base64Url(token), seconds(context));
  return session === null ? null : findAccount(context.database, session.userId);
}

/** The account of a bearer token; null when it is none. */
export async function accountOfBearer(context: ServiceContext, token: string): Promise<Account | null> {
  if (context.local === null || (await sha256Base64Url(token)) !== context.local.keyHash) return null;
  return findAccount(context.database, context.local.userId);
}

function seconds(context: ServiceContext): number {
  return Math.floor(context.clock.now() / 1000);
}
