import { chmod, lstat, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';

/**
 * Removes a directory with its whole content, also read-only parts. Links are removed, never followed. No process may still
 * run in it: a directory that is swapped during the removal is not detected.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return await unlink(path);
    await chmod(path, 0o700);
    for (const name of await readdir(path)) await removeTree(join(path, name));
    await rmdir(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}
