/** A gateway over stdio with fake ports, as a program. Its argument is JSON: `{home, servers, secrets}`. */
import { z } from 'zod';
import { HOST_CALLER } from '../../../machine/mcp_caller.ts';
import { startLocalGateway } from '../../../gateway/servers/local_gateway.ts';
import { serveStdioFront } from '../../../gateway/fronts/stdio_front.ts';
import type { GatewayServer } from '../../../gateway/gateway_ports.ts';
import type { McpServer } from '../../../shared/model/mcp_server.ts';
import { FakePorts } from './fake_ports.ts';

const given = z
  .custom<{
    readonly home: string;
    readonly servers: readonly (McpServer | GatewayServer)[];
    readonly secrets?: Readonly<Record<string, string>>;
  }>()
  .parse(JSON.parse(process.argv[2] ?? '{}'));
const local = startLocalGateway({
  ports: new FakePorts(given.servers, given.secrets),
  sources: [],
  mcpHome: given.home,
  env: process.env,
  version: '0.0.0-test',
  isLocal: true,
  extraRoots: [],
  // A busy machine starts servers slowly, and most tests list once.
  limits: { listMs: 30_000 },
});
const front = serveStdioFront({
  gateway: local.gateway,
  caller: HOST_CALLER,
  stdin: process.stdin,
  stdout: process.stdout,
});
await front.ended;
await local.stop();
process.exit(0);
