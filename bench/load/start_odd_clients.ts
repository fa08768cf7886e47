import { spawn } from 'node:child_process';
import { z } from 'zod';
import { type Running, runningOf } from './programs.ts';

export const oddClientsSettings = z.object({
  proxyPort: z.number(),
  authorization: z.string(),
  caFile: z.string(),
  bulkHost: z.string(),
  credentialedHost: z.string(),
  eventsHost: z.string(),
});
export type OddClientsSettings = z.infer<typeof oddClientsSettings>;

/** Clients that run until they are stopped; see `odd_clients.ts`. */
export function startOddClients(settings: OddClientsSettings): Running {
  const file = new URL('odd_clients.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin.end(JSON.stringify(settings));
  return runningOf(child);
}
