import {
  type AuthProvider,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { FilledLaunch } from './fill_launch.ts';
import { createRemoteFetch } from './remote_fetch.ts';
import { remoteUrlProblem } from './remote_url.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';
import type { FilledBearer } from './current_mask.ts';

interface RemoteLaunchOptions {
  /** The control plane is on this machine. */
  readonly isLocal: boolean;
  readonly extraRoots: readonly string[];
  readonly proxy?: UpstreamProxy | null;
  readonly limits: Pick<GatewayLimits, 'maxMessageBytes' | 'maxBytesPerSecond'>;
  readonly now: () => number;
  /** Called when the connection can no longer be used. */
  readonly onFault: (message: string) => void;
  /** Returns a new access token for the server, or null if there is none. */
  readonly refresh: () => Promise<FilledBearer | null>;
}

interface OpenedRemote {
  readonly transport: Transport;
  /** Ends its connections. */
  release(): void;
}

/** An access token is renewed this long before its expiry. */
const AHEAD_MS = 30_000;

/** The SDK's transport to a remote server, over a restricted fetch. Nothing is sent yet. */
export function openRemote(
  server: McpServer,
  filled: FilledLaunch,
  options: RemoteLaunchOptions,
): Result<OpenedRemote, Failure<ServerFailureReason>> {
  const problem = remoteUrlProblem(server.url, options.isLocal) ?? remoteUrlProblem(filled.values.url, options.isLocal);
  if (problem !== null || filled.values.url === null) {
    return err({ reason: 'url_refused', message: problem ?? 'the server has no url' });
  }
  const url = new URL(filled.values.url);
  const { isLocal, extraRoots, proxy = null, limits, onFault } = options;
  const remote = createRemoteFetch({ origin: url.origin, isLocal, extraRoots, proxy, onFault, ...limits });
  const settings = {
    fetch: remote.fetch,
    requestInit: { headers: { ...filled.values.headers }, redirect: 'error' as const },
    ...(filled.bearer === null ? {} : { authProvider: bearerOf(filled.bearer, options) }),
  };
  const transport =
    server.transport === 'sse'
      ? new SSEClientTransport(url, settings)
      : new StreamableHTTPClientTransport(url, settings);
  return ok({ transport, release: () => remote.close() });
}

function bearerOf(first: FilledBearer, { now, refresh }: RemoteLaunchOptions): AuthProvider {
  let bearer: FilledBearer | null = first;
  const renew = async (): Promise<void> => {
    bearer = await refresh();
  };
  return {
    async token() {
      if (bearer !== null && bearer.expiresAt !== null && bearer.expiresAt - AHEAD_MS <= now()) await renew();
      return bearer?.text;
    },
    // The provider may have revoked the token. If the new one is also refused, the error is returned.
    onUnauthorized: renew,
  };
}
