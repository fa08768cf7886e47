import { sha256Base64Url } from '../services/encoding.ts';
import type { ServiceContext } from '../services/service_context.ts';
import { newBrowserSession, type SessionMeta } from '../services/sign_in.ts';
import { deleteBrowserSession, insertBrowserSession } from '../store/browser_sessions.ts';

/** Begins a session of a user's browser: the token that it is known by, which is stored as a hash. */
export async function beginBrowserSession(context: ServiceContext, userId: string, meta: SessionMeta): Promise<string> {
  const { token, session } = await newBrowserSession(context, userId, meta);
  const nowSeconds = Math.floor(context.clock.now() / 1000);
  const written = await context.database.write(insertBrowserSession(context.database, session, nowSeconds));
  if (!written.ok) throw new Error('two browser sessions have one token');
  return token;
}

/** Ends the session of a token; harmless when there is none. */
export async function endBrowserSession(context: ServiceContext, token: string): Promise<void> {
  await context.database.write([deleteBrowserSession(context.database, await sha256Base64Url(token))]);
}
