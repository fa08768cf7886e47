import { type BearerOptions, type BearerProvider, bearerOf } from './bearer_provider.ts';
import {
  type FetchLike,
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

interface RemoteLaunchOptions extends BearerOptions {
  /** The control plane is on this machine. */
  readonly isLocal: boolean;
  readonly extraRoots: readonly string[];
  readonly proxy?: UpstreamProxy | null;
  readonly limits: Pick<GatewayLimits, 'maxMessageBytes' | 'maxBytesPerSecond' | 'maxMessagesPerSecond'>;
  /** True once a value in a header has ended. */
  readonly hasEnded: () => boolean;
  /** Called when the connection can no longer be used. */
  readonly onFault: (message: string) => void;
}

interface OpenedRemote {
  readonly transport: Transport;
  /** Ends its connections. */
  release(): void;
}

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
  const send = refuseWhenEnded(remote.fetch, options.hasEnded);
  const bearer = filled.bearer === null ? null : bearerOf(filled.bearer, options);
  const settings = {
    fetch: bearer === null ? send : withNewerToken(send, bearer),
    requestInit: { headers: { ...filled.values.headers }, redirect: 'error' as const },
    ...(bearer === null ? {} : { authProvider: bearer }),
  };
  const transport =
    server.transport === 'sse'
      ? new SSEClientTransport(url, settings)
      : new StreamableHTTPClientTransport(url, settings);
  return ok({ transport, release: () => remote.close() });
}

/** A call may take so long that a value ends in between, and a slow server may be asked several times. */
function refuseWhenEnded(send: FetchLike, hasEnded: () => boolean): FetchLike {
  return async (url, init) => {
    if (hasEnded()) throw new Error('a credential of it has ended: call it again');
    return send(url, init);
  };
}

/** A person may have granted more access since this token was issued, which the token itself cannot have. */
function withNewerToken(send: FetchLike, bearer: BearerProvider): FetchLike {
  return async (url, init) => {
    const reply = await send(url, init);
    const challenge = reply.headers.get('www-authenticate') ?? '';
    if (reply.status !== 403 || !challenge.includes('insufficient_scope')) return reply;
    const headers = new Headers(init?.headers);
    const newer = await bearer.newerThan((headers.get('authorization') ?? '').replace(/^Bearer /, ''));
    if (newer === null) return reply;
    await reply.body?.cancel();
    headers.set('authorization', `Bearer ${newer}`);
    return send(url, { ...init, headers });
  };
}
