import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { CliError, EXIT } from '../exit_codes.ts';
import { readPlace } from './credential_places.ts';

/**
 * Replaces a file that still has the expected text, atomically and with its mode. No copy of the old text is kept, because
 * it holds a credential. Never writes through a link. Throws if the file has changed.
 */
export async function rewriteFile(path: string, before: string, after: string): Promise<void> {
  const found = await readPlace(path);
  if (found?.kind !== 'text' || found.text !== before) {
    throw new CliError(EXIT.failed, `${path} has changed since it was read: it was not written`, [
      'Run the command again.',
    ]);
  }
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(after);
      await file.chmod(found.mode);
      await file.sync();
    } finally {
      await file.close();
    }
    // The name itself is replaced: a link that took the file's place is not followed.
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
