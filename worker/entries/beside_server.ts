import { start } from '../installation/start.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { QueuedTurns } from '../kernel/turns.ts';
import type { Settings } from '../../shared/model/settings.ts';
import { closeFile } from '../store/database.ts';
import { databaseOf, openClients } from './node_database.ts';
import { log, ProgramError } from './program_error.ts';
import { masterKeys } from './vault_key_files.ts';

/** The services of a control plane, for a command that serves no requests. */
export interface BesideServer {
  readonly context: ProgramContext;
  /** Waits for deferred work, and closes the database. */
  readonly close: () => Promise<void>;
}

/** Opens the database and its vault, whether or not a server runs on them. Nobody is called, and no master key is made. */
export async function openBesideServer(settings: Settings, home: string): Promise<BesideServer> {
  const clients = await openClients(settings, home);
  const lifetime = new ProgramLifetime((what) => log({ level: 'error', message: `deferred work failed: ${what}` }));
  const started = await start({
    database: databaseOf(clients),
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    outbound: { call: () => Promise.reject(new Error('this command calls nobody')) },
    ...(await masterKeys(settings, home)),
    makeMasterKey: null,
    localKey: null,
    publicUrl: settings.publicUrl,
    log,
  });
  if (!started.ok) throw new ProgramError(started.error.reason, started.error.message);
  const close = async () => {
    await lifetime.drain();
    clients.replica?.close();
    await closeFile(clients.client);
  };
  return { context: started.value, close };
}
