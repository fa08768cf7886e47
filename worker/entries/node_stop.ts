import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgramLifetime } from '../kernel/lifetime.ts';
import { closeFile } from '../store/database.ts';
import type { Clients } from './node_database.ts';
import { refuse } from './program_error.ts';

/** What a program has to end, in this order. */
interface Stoppable {
  readonly server: Server;
  /** Passes its connections to `server`; null if there is none. */
  readonly twin: NetServer | null;
  readonly lifetime: ProgramLifetime;
  readonly clients: Clients;
  /** How long open requests may take. */
  readonly graceMs: number;
}

/** How often idle connections are closed. */
const SWEEP_MS = 50;
/** How long deferred work may take after the last reply. */
const DRAIN_MS = 5_000;

/** Stops in order at the first SIGTERM or SIGINT; the second one ends the program at once. */
export function stopOnSignal(program: Stoppable): void {
  const stop = () => {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
    stopServing(program).then(() => process.exit(0), refuse);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/** Refuses new connections, ends waits, answers open requests, finishes deferred work, and closes the database. */
async function stopServing({ server, twin, lifetime, clients, graceMs }: Stoppable): Promise<void> {
  lifetime.beginStop();
  const listeners = twin === null ? [server] : [server, twin];
  const closed = Promise.all(listeners.map((listener) => once(listener, 'close')));
  for (const listener of listeners) listener.close();
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  const late = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(late);
  await Promise.race([lifetime.drain(), sleep(DRAIN_MS)]);
  clients.replica?.close();
  await closeFile(clients.client);
}
