import type { McpServer } from '../../model/mcp_server.ts';

export const SERVER_ID = 'mcp_00000000000000000000000001';

/** A valid local server, with the test's changes. */
export function localServer(changes: Partial<McpServer> = {}): McpServer {
  return {
    id: SERVER_ID,
    owner: 'personal',
    name: 'demo',
    description: 'A server',
    mode: 'local',
    version: '1.0.0',
    registryId: null,
    command: ['npx', '-y', 'demo-mcp@1.0.0'],
    env: {},
    url: null,
    transport: null,
    headers: {},
    tools: { allow: null, deny: [], approval: [] },
    enabled: true,
    isolation: 'process',
    revision: 1,
    ...changes,
  };
}

/** A valid remote server, with the test's changes. */
export function remoteServer(changes: Partial<McpServer> = {}): McpServer {
  const remote = {
    mode: 'remote',
    command: [],
    url: 'https://mcp.example.com/mcp',
    transport: 'streamable-http',
  } as const;
  return localServer({ ...remote, ...changes });
}
