import { sessionEnvironment } from '../../sandbox/launch/session_environment.ts';
import type { ServerSession } from '../gateway_ports.ts';

/**
 * The variables of a server whose only way out is the proxy. Its own come after the placeholders, so that a reference to the vault
 * still resolves, and before those of the proxy, so that no configuration replaces them. `caBundlePath` is as the server sees it.
 */
export function proxiedEnvironment(
  own: Readonly<Record<string, string>>,
  session: ServerSession,
): Record<string, string> {
  const kept = Object.entries(own).filter(([name]) => !isReserved(name));
  const { sessionId, proxyUrl, caBundlePath } = session;
  const sentinels = session.sentinels.filter((each) => !Object.hasOwn(own, each.env));
  const access = { sessionId, proxyUrl, caBundlePath, sentinels };
  const proxied = Object.entries(sessionEnvironment({}, access)).filter(([name]) => !isReserved(name));
  return Object.fromEntries([...kept, ...proxied]);
}

/** No configuration sets these, and no server needs the API of the sidecar. */
function isReserved(name: string): boolean {
  return /^(svc_|npm_config_(?!cafile$)|path$)/i.test(name);
}
