import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Settings } from '../../shared/model/settings.ts';
import type { HomeFiles } from '../installation/local_home.ts';
import { ProgramError } from './program_error.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** The directory of all local state: the flag's, otherwise `SVC_HOME`, otherwise `~/.svc`. */
export function homeDirectory(flag: string | undefined, settings: Settings): string {
  return resolve(flag ?? settings.home ?? join(homedir(), '.svc'));
}

export function makeHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    const code = errorCode(error) || 'unknown';
    throw new ProgramError('home_unusable', `--home ${home}: cannot be created (${code}); choose a writable directory`);
  }
}

/** The URL of the database: from the settings, otherwise of a file in `home`. */
export function databaseUrlOf({ databaseUrl }: Settings, home: string): string {
  return databaseUrl ?? pathToFileURL(join(home, 'control.db')).href;
}

/**
 * The database's file if it is in `home`. Null for a server, and for a file elsewhere: its directory and permissions
 * are not ours.
 */
export function databaseInHome(settings: Settings, home: string): string | null {
  try {
    // A relative path starts at the working directory.
    const file = fileURLToPath(new URL(databaseUrlOf(settings, home), `${pathToFileURL(process.cwd()).href}/`));
    return file.startsWith(home + sep) ? file : null;
  } catch {
    return null;
  }
}

/** Creates the file and its directory if they do not exist. SQLite gives its other files the same permissions. */
export function makePrivate(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
}

/** Files of mode 0600. A file is created atomically, by a link that fails if the name exists. */
export function homeFiles(home: string): HomeFiles {
  return {
    async read(name) {
      try {
        return readFileSync(join(home, name), 'utf8');
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return null;
        throw new ProgramError('home_unreadable', `${join(home, name)} cannot be read: check its permissions`);
      }
    },
    async createOnce(name, text) {
      const draft = join(home, `.${name}.${randomBytes(8).toString('hex')}`);
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
      try {
        linkSync(draft, join(home, name));
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error;
      } finally {
        rmSync(draft);
      }
    },
  };
}
