import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, createClient } from '@libsql/client';
import type { Settings } from '../../shared/model/settings.ts';
import {
  type Database,
  fetchInTime,
  fetchReplica,
  isDamage,
  openDatabase,
  createWriteSlots,
  prepareFile,
} from '../store/database.ts';
import type { Slots } from '../store/slots.ts';
import { makePrivate } from './node_home.ts';
import { ProgramError } from './program_error.ts';

/** The clients of the database and of its replica, if there is one. */
export interface Clients {
  readonly client: Client;
  readonly replica: Client | null;
  /** The queue of writes. */
  readonly writes: Slots | null;
}

export function databaseOf({ client, replica, writes }: Clients): Database {
  return openDatabase(client, replica, writes);
}

/** The libSQL server from the settings, otherwise the file in `home`, made private and checked. */
export async function openClients(settings: Settings, home: string): Promise<Clients> {
  const { databaseUrl, databaseReplicaUrl, databaseToken } = settings;
  const token = databaseToken && { authToken: databaseToken.reveal() };
  const client = openClient(databaseUrl, join(home, 'control.db'), token ?? {});
  if (client.protocol === 'file' && !(await prepareFile(client))) throw damagedError(home);
  const writes = createWriteSlots(client);
  if (databaseReplicaUrl === undefined) return { client, replica: null, writes };
  return { client, replica: createClient({ url: databaseReplicaUrl, fetch: fetchReplica, ...token }), writes };
}

function openClient(databaseUrl: string | undefined, file: string, token: { readonly authToken?: string }): Client {
  const url = databaseUrl ?? pathToFileURL(file).href;
  try {
    if (databaseUrl === undefined) makePrivate(file);
    return createClient({ url, timeout: 5_000, fetch: fetchInTime, ...token });
  } catch (error) {
    if (isDamage(error)) throw damagedError(url);
    throw new ProgramError(
      'database_unavailable',
      `${url} cannot be opened: check SVC_DATABASE_URL and the file's rights`,
    );
  }
}

function damagedError(place: string): ProgramError {
  const message = `the database in ${place} is damaged, or is not a libSQL database: restore it from a backup, or move it away to start with a new one`;
  return new ProgramError('database_damaged', message);
}
