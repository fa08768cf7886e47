import { type Finished, run } from './program.ts';
import type { Svc } from './svc.ts';

/**
 * Runs curl in a session of its own, made through the sidecar's local API: what `svc run -- curl` sends, without two starts of Node.
 * For tests of requests and replies, and not of `svc run`.
 */
export async function curlInSession(svc: Svc, args: readonly string[], input?: string): Promise<Finished> {
  const session = await svc.session();
  const proxy = new URL(session.proxyUrl);
  proxy.username = session.sessionId;
  proxy.password = session.token;
  const env = { HTTPS_PROXY: proxy.href, CURL_CA_BUNDLE: session.caBundle };
  const done = await run('curl', ['-sS', ...args], { env, ...(input !== undefined && { input }) });
  await session.end();
  return done;
}
