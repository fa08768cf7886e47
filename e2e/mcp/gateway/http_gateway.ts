import { createServer } from 'node:http';
import { CALLER_HEADER, type Caller, callerHeader, HOST_CALLER } from '../../../machine/mcp_caller.ts';
import type { RuntimeImages } from '../../../gateway/servers/container_command.ts';
import type { GatewayLimits } from '../../../gateway/gateway_limits.ts';
import { createHttpFront, httpFrontListener } from '../../../gateway/fronts/http_front.ts';
import { type LocalGateway, startLocalGateway } from '../../../gateway/servers/local_gateway.ts';
import type { ToolSource } from '../../../gateway/tool_source.ts';
import { listen } from '../../support/tls_upstream.ts';
import type { FakePorts } from './fake_ports.ts';
import type { GatewayEndpoint } from './test_clients.ts';

export interface HttpGateway {
  readonly local: LocalGateway;
  readonly url: URL;
  /** The URL for a caller's client; the host's by default. */
  endpointFor(caller?: Caller): Extract<GatewayEndpoint, { readonly kind: 'http' }>;
  stop(): Promise<void>;
}

interface HttpGatewayOptions {
  readonly ports: FakePorts;
  readonly home: string;
  readonly limits?: Partial<GatewayLimits>;
  readonly sources?: readonly ToolSource[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly images?: RuntimeImages;
}

/** A gateway in this process, on a loopback port. The test sets the caller's header, as the sidecar would. */
export async function startHttpGateway({
  ports,
  home,
  limits = {},
  sources = [],
  env = process.env,
  images,
}: HttpGatewayOptions): Promise<HttpGateway> {
  const local = startLocalGateway({
    ports,
    sources,
    mcpHome: home,
    env,
    version: '0.0.0-test',
    isLocal: true,
    extraRoots: [],
    // A busy machine starts servers slowly, and most tests list once.
    limits: { listMs: 30_000, ...limits },
    ...(images === undefined ? {} : { images }),
  });
  const front = createHttpFront({ gateway: local.gateway, now: () => Date.now() });
  const server = createServer(httpFrontListener(front));
  const url = new URL(`http://127.0.0.1:${await listen(server)}/mcp`);
  return {
    local,
    url,
    endpointFor: (caller = HOST_CALLER) => ({ kind: 'http', url, headers: { [CALLER_HEADER]: callerHeader(caller) } }),
    async stop() {
      await front.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await local.stop();
    },
  };
}
