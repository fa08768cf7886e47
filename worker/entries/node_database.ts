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
import { databaseInHome, databaseUrlOf, makePrivate } from './node_home.ts';
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

/** The database from the settings, otherwise a file in `home`. A file is checked; one in `home` is made private. */
export async function openClients(settings: Settings, home: string): Promise<Clients> {
  const { databaseReplicaUrl, databaseToken } = settings;
  const token = databaseToken && { authToken: databaseToken.reveal() };
  const url = databaseUrlOf(settings, home);
  const client = openClient(url, databaseInHome(settings, home), token ?? {});
  if (client.protocol === 'file' && !(await prepareFile(client))) throw damagedError(url);
  const writes = createWriteSlots(client);
  if (databaseReplicaUrl === undefined) return { client, replica: null, writes };
  return { client, replica: createClient({ url: databaseReplicaUrl, fetch: fetchReplica, ...token }), writes };
}

function openClient(url: string, file: string | null, token: { readonly authToken?: string }): Client {
  try {
    if (file !== null) makePrivate(file);
    return createClient({ url, timeout: 5_000, fetch: fetchInTime, ...token });
  } catch (error) {
    if (isDamage(error)) throw damagedError(url);
    throw new ProgramError(
      'database_unavailable',
      `${url} cannot be opened: check SVC_DATABASE_URL and the file's rights`,
    );
  }
}

function damagedError(url: string): ProgramError {
  const message = `the database ${url} is damaged, or is not a libSQL database: restore it from a backup, or move it away to start with a new one`;
  return new ProgramError('database_damaged', message);
}
