import { expect } from 'vitest';
import { succeeds } from '../../tools/system_parts.mjs';
import { AWS_CLIENTS } from './aws_clients.ts';
import type { MatrixClient } from './client.ts';
import { CLOUD_CLIENTS } from './cloud_clients.ts';
import { HTTP_CLIENTS } from './http_clients.ts';
import { RELAY_CLIENTS } from './relay_clients.ts';
import { RPC_CLIENTS } from './rpc_clients.ts';
import { TOOL_CLIENTS } from './tool_clients.ts';
import { credentialsSeen, forgetRequests, type MatrixWorld } from './world.ts';

/** The rows of the matrix, in the order of the page. */
export const CLIENTS: readonly MatrixClient[] = [
  ...HTTP_CLIENTS,
  ...RPC_CLIENTS,
  ...TOOL_CLIENTS,
  ...AWS_CLIENTS,
  ...CLOUD_CLIENTS,
  ...RELAY_CLIENTS,
];

/**
 * Uses a client as its row says, or skips its test if it is not here; returns how many requests the service got, all with
 * the right credential. Calls that wait for their deadline are not counted: either side may end them, or both before they arrive.
 */
export async function useClient(
  world: MatrixWorld,
  client: MatrixClient,
  skip: (note: string) => never,
): Promise<number> {
  if (!succeeds(client.probe)) skip(`${client.name} is not here: apt-get install ${client.packages ?? '(npm ci)'}`);
  forgetRequests(world);
  await client.use(world);
  const { seen, wanted } = credentialsSeen(world, client.service);
  expect(seen.filter((credential) => JSON.stringify(credential) !== JSON.stringify(wanted))).toEqual([]);
  const waited = client.service === 'grpc' ? world.grpc.calls.filter(({ method }) => method === 'wait').length : 0;
  return seen.length - waited;
}
