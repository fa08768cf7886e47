import { err } from '../../shared/model/result.ts';
import { nodeOutbound } from '../../worker/entries/node_outbound.ts';
import { type Outbound, targetProblem } from '../../worker/kernel/outbound.ts';

/** The headers that a TLS proxy sends to the server behind it. */
export function forwardedHeaders(host: string): Record<string, string> {
  return { 'x-forwarded-proto': 'https', 'x-forwarded-host': host };
}

/**
 * The outgoing calls of a hosted control plane: only https, where the given names are servers on loopback, as if behind a TLS
 * proxy.
 */
export function namedOutbound(servers: Readonly<Record<string, string>>): Outbound {
  const loopback = nodeOutbound({ isLocal: true, pinned: new Map() });
  return {
    async call(request) {
      const url = new URL(request.url);
      const problem = targetProblem(url, false);
      if (problem !== null) return err(problem);
      const server = servers[url.host];
      if (server === undefined) return err({ reason: 'upstream_unreachable', message: `${url.host} is not there` });
      const headers = { ...request.headers, ...forwardedHeaders(url.host) };
      return loopback.call({ ...request, url: server + url.pathname + url.search, headers });
    },
  };
}
