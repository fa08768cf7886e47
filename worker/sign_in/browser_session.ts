import { sha256Base64Url } from '../kernel/encoding.ts';
import type { ServiceContext } from '../kernel/service_context.ts';
import { deleteBrowserSession } from '../store/browser_sessions.ts';

/** Ends the session of a token, if there is one. */
export async function endBrowserSession(context: ServiceContext, token: string): Promise<void> {
  await context.database.write([deleteBrowserSession(context.database, await sha256Base64Url(token))]);
}
