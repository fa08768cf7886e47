import { chmod, lstat, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';

/**
 * Removes a directory with all that is in it, also what was made read-only. A link is removed and never followed. Nothing may
 * run there any more: what takes a directory's place while it is looked at is not noticed.
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
