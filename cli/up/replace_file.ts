import { randomBytes } from 'node:crypto';
import { copyFileSync, constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';

/** The file changed since it was read: another program writes it too. */
export class ChangedMeanwhile extends Error {
  readonly code = 'CHANGED_MEANWHILE';
}

interface ReplaceOptions {
  readonly keepsBackup?: boolean;
  /** The text that the file had when it was read, null for no file. If it has another one now, {@link ChangedMeanwhile} is thrown. */
  readonly readText?: string | null;
}

/** The state of a user's file before it is replaced. */
interface ReplacedFile {
  /** The backup of the file; null if there was no file. */
  readonly backup: string | null;
}

const NEW_FILE_MODE = 0o600;

/**
 * Replaces a user's file atomically, so that it contains either the old text or the new. For a symbolic link, the target is
 * written. The mode is kept. A backup is kept beside the file, unless it is not wanted.
 */
export async function replaceFile(
  path: string,
  text: string,
  now: number,
  { keepsBackup = true, readText }: ReplaceOptions = {},
): Promise<ReplacedFile> {
  const stats = statSync(path, { throwIfNoEntry: false });
  const target = stats === undefined ? path : realpathSync(path);
  const backup = stats === undefined || !keepsBackup ? null : `${target}.${stamp(now)}.bak`;
  if (backup !== null) copyFileSync(target, backup, constants.COPYFILE_EXCL);
  const temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', NEW_FILE_MODE);
    try {
      await file.writeFile(text);
      if (stats !== undefined) await file.chmod(stats.mode & 0o777);
      await file.sync();
    } finally {
      await file.close();
    }
    if (readText !== undefined && currentText(path) !== readText) throw new ChangedMeanwhile(`${path} was changed`);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return { backup };
}

function currentText(path: string): string | null {
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

/** `20261121T181500123Z` */
function stamp(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:.]/g, '');
}
