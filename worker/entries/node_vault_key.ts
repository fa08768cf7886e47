import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogEntry } from '../routes/http/app_env.ts';
import { KEY_CHANGE_FILE, VAULT_KEY_FILE } from '../installation/local_home.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { Vault } from '../kernel/vault.ts';
import { checkVaultKey } from '../installation/vault_key_check.ts';
import type { Database } from '../store/database.ts';
import { readInstallation, withSealGuard } from '../store/installation.ts';
import { AccessKeys } from '../tokens/access_keys.ts';
import { ProgramError } from './program_error.ts';
import { fileKeys, type UnlockSettings } from './vault_key_files.ts';

interface FollowInput {
  readonly home: string;
  /** What opens the key files. */
  readonly settings: UnlockSettings;
  /** The version of the key files, read before `context` was made with them. */
  readonly version: string;
  /** The database without the check of the sealing key. */
  readonly database: Database;
  readonly context: ProgramContext;
  readonly log: (entry: LogEntry) => void;
}

/**
 * The context for each request of a worker whose master key is in a file. When `svc vault rotate` has replaced the
 * file, the next request has both keys, and when it has finished, only the new one. A request keeps its context, so
 * that it seals and writes with the same key.
 */
export function contextOfKeys(input: FollowInput): () => Promise<ProgramContext> {
  let { version } = input;
  let context = Promise.resolve(input.context);
  let failedAt = '';
  return () => {
    const found = keyVersion(input.home);
    if (found === version) return context;
    version = found;
    context = withKeys(input, context, (problem) => {
      // The next request tries again: the file or the database may be fixed by then.
      version = '';
      if (failedAt !== found) input.log(problem);
      failedAt = found;
    });
    return context;
  };
}

/** If the file's key is not the database's, the previous context stays: its key still opens what it sealed. */
async function withKeys(
  { home, settings, database }: FollowInput,
  before: Promise<ProgramContext>,
  failed: (problem: LogEntry) => void,
): Promise<ProgramContext> {
  const context = await before;
  try {
    const { masterKey, previousMasterKey } = await fileKeys(settings, home);
    if (masterKey === null) throw new Error('there is no key');
    const vault = await Vault.open(masterKey, previousMasterKey);
    const problem = await checkVaultKey(vault, await readInstallation(database));
    if (problem === null) return withSealingDatabase(context, vault, database);
    failed({ level: 'error', message: problem.message, code: problem.reason });
  } catch (error) {
    if (error instanceof ProgramError) {
      failed({ level: 'error', message: error.message, code: error.code });
      return context;
    }
    const message = `${VAULT_KEY_FILE} was changed and cannot be used: restore the right one`;
    failed({ level: 'error', message, code: 'vault_key_unreadable' });
  }
  return context;
}

function withSealingDatabase(context: ProgramContext, vault: Vault, database: Database): ProgramContext {
  const accessKeys = new AccessKeys(vault, context.clock);
  return { ...context, vault, database: withSealGuard(database, vault), accessKeys };
}

/** Distinguishes the current key files from their replacements. */
export function keyVersion(home: string): string {
  return [VAULT_KEY_FILE, KEY_CHANGE_FILE].map((name) => fileVersion(join(home, name))).join(' ');
}

function fileVersion(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? '-' : `${found.ino}.${found.mtimeMs}`;
}
