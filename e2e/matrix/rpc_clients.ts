import { join } from 'node:path';
import { expect } from 'vitest';
import { pythonWith } from '../../tools/system_parts.mjs';
import { GO_CACHE } from '../support/program.ts';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, PROGRAMS, type MatrixWorld } from './world.ts';

const GRPC_PYTHON = pythonWith('grpc') ?? 'python3';
const NODE_CLIENT = join(PROGRAMS, '..', '..', 'clients', 'grpc_client.mjs');
const MESSAGES = 20;

/** What every client prints of its calls of the service of grpc_upstream.ts. */
const CALLS = {
  unary: { reply: 'echo a', head: 'head', tail: 'tail' },
  down: [0, '0', '1', '2'],
  up: { reply: 'a,b,c' },
  both: [0, MESSAGES],
  fail: { code: 5, details: '100% gone: ü' },
  wait: { code: 4 },
};

function grpcClient(
  row: Pick<MatrixClient, 'name' | 'probe' | 'packages' | 'sets'>,
  command: (world: MatrixWorld) => Promise<readonly string[]>,
): MatrixClient {
  return {
    ...row,
    tried: 'a unary call, streams in one direction and in both, a status, a deadline',
    note: 'with `body: stream` in the binding for streams in both directions',
    works: true,
    service: 'grpc',
    use: async (world) => {
      const said = await world.run([...(await command(world)), `${HOSTS.grpc}:443`, String(MESSAGES)]);
      expect(JSON.parse(said)).toMatchObject(CALLS);
      const unary = world.grpc.calls.find(({ method }) => method === 'unary');
      expect(unary?.metadata).toMatchObject({ 'x-note': 'from the agent' });
    },
  };
}

/** Debian has Go's packages as sources, for the way of building without modules. */
async function buildGrpc(world: MatrixWorld): Promise<readonly string[]> {
  const binary = join(world.folder('go-grpc'), 'calls');
  const env = {
    GOCACHE: GO_CACHE,
    GOPATH: '/usr/share/gocode',
    GO111MODULE: 'off',
    GOTOOLCHAIN: 'local',
  };
  const build = ['go', 'build', '-o', binary, join(PROGRAMS, 'grpc_calls.go')];
  await world.run(build, { env });
  return [binary];
}

async function useConnect(world: MatrixWorld): Promise<void> {
  const said: unknown = JSON.parse(
    await world.run([process.execPath, join(PROGRAMS, 'connect_calls.mjs'), HOSTS.connect]),
  );
  const calls = {
    unary: 'echo a',
    down: ['0', '1', '2'],
    both: ['message 0', 'message 1', 'message 2'],
    fail: ['NotFound', '100% gone: ü'],
  };
  expect(said).toEqual([calls, calls, calls]);
  const types = world.connect.requests.map(({ type }) => type);
  expect(types.slice(0, 4)).toEqual(
    ['proto', 'connect+proto', 'connect+proto', 'proto'].map((form) => `application/${form}`),
  );
  expect(types.slice(4, 8)).toEqual(Array.from({ length: 4 }, () => 'application/grpc+proto'));
  expect(types.slice(8)).toEqual(Array.from({ length: 4 }, () => 'application/grpc-web+proto'));
}

export const RPC_CLIENTS: readonly MatrixClient[] = [
  grpcClient(
    {
      name: 'gRPC for Node (@grpc/grpc-js)',
      probe: 'true',
      packages: null,
      sets: [PROXY, 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH'],
    },
    async () => [process.execPath, NODE_CLIENT],
  ),
  grpcClient(
    {
      name: 'gRPC for Python (grpcio)',
      probe: `${GRPC_PYTHON} -c 'import grpc'`,
      packages: 'python3-grpcio',
      sets: [PROXY, 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH'],
    },
    async () => [GRPC_PYTHON, join(PROGRAMS, 'grpc_python.py')],
  ),
  grpcClient(
    {
      name: 'gRPC for Go (grpc-go)',
      probe: 'go version && test -d /usr/share/gocode/src/google.golang.org/grpc',
      packages: 'golang-go golang-google-grpc-dev',
      sets: [PROXY, 'SSL_CERT_FILE'],
    },
    buildGrpc,
  ),
  {
    name: 'Connect for Node (@connectrpc/connect-node)',
    probe: 'true',
    packages: null,
    sets: [PROXY, 'NODE_EXTRA_CA_CERTS'],
    tried:
      'by the protocols of Connect, gRPC and gRPC-Web: a unary call, streams in one direction and in both, a status',
    note: 'with `body: stream` in the binding, and `nodeOptions: { createConnection }`, which has to open the tunnel: over HTTP/2 it knows no proxy',
    works: true,
    service: 'connect',
    use: useConnect,
  },
];
