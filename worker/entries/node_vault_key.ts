import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogEntry } from '../routes/app_env.ts';
import { VAULT_KEY_FILE } from '../services/local_home.ts';
import type { ServiceContext } from '../services/service_context.ts';
import { Vault } from '../services/vault.ts';
import { checkVaultKey } from '../services/vault_key_check.ts';
import type { Database } from '../store/database.ts';
import { readInstallation, sealingWith } from '../store/installation.ts';
import { AccessKeys } from '../tokens/access_keys.ts';
import { masterKeys } from './vault_key_files.ts';

interface FollowInput {
  readonly home: string;
  /** The database as it is, without the check of the key that seals. */
  readonly database: Database;
  readonly context: ServiceContext;
  readonly log: (entry: LogEntry) => void;
}

/**
 * The context for each request, of a worker whose master key is in a file: when `svc vault rotate` has replaced the file,
 * the next request has both keys. A request keeps the context that it began with, so that what it seals and what it writes
 * are of one key.
 */
export function contextOfKeys(input: FollowInput): () => Promise<ServiceContext> {
  let version = fileVersion(input.home);
  let context = Promise.resolve(input.context);
  return () => {
    const found = fileVersion(input.home);
    if (found === version) return context;
    version = found;
    context = withKeys(input, context);
    return context;
  };
}

/** A key that is not the database's changes nothing: the one before is still good for what it sealed. */
async function withKeys(
  { home, database, log }: FollowInput,
  before: Promise<ServiceContext>,
): Promise<ServiceContext> {
  const context = await before;
  try {
    const { masterKey, previousMasterKey } = await masterKeys({}, home);
    if (masterKey === null) return context;
    const vault = await Vault.open(masterKey, previousMasterKey);
    const problem = await checkVaultKey(vault, await readInstallation(database));
    if (problem === null) {
      return {
        ...context,
        vault,
        database: sealingWith(database, vault),
        accessKeys: new AccessKeys(vault, context.clock),
      };
    }
    log({ level: 'error', message: problem.message, code: problem.reason });
  } catch {
    const message = `${VAULT_KEY_FILE} was replaced and cannot be used: put the right one back`;
    log({ level: 'error', message, code: 'vault_key_unreadable' });
  }
  return context;
}

/** What tells the file from the one that takes its place. */
function fileVersion(home: string): string {
  const found = statSync(join(home, VAULT_KEY_FILE), { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.ino}.${found.mtimeMs}`;
}
