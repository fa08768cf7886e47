import type { Database, Statement } from './database.ts';
import { installation } from './tables.ts';

/** What an installation remembers about itself. */
export type InstallationName =
  | 'control_plane_id'
  | 'vault_key_check'
  | 'signing_key_public'
  | 'signing_key_sealed'
  | 'local_user_id';

export async function readInstallation(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.read.select().from(installation);
  return new Map(rows.map((row) => [row.name, row.value]));
}

/** Sets a name once; a name that is set already makes the whole write a conflict. */
export function setOnce(database: Database, name: InstallationName, value: string): Statement {
  return database.read.insert(installation).values({ name, value });
}
