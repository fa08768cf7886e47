import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { err, ok, type Result } from '../shared/model/result.ts';
import { errorCode } from '../shared/model/error_code.ts';
import type { Problem } from '../shared/model/problem.ts';

/** Why a file of `$SVC_HOME` cannot be used. It is never replaced, because it may be the only copy. */
export type StateFileProblemReason = 'state_file_unreadable' | 'state_file_exposed' | 'state_file_corrupt';

/** A {@link Problem} for a file with invalid content. */
export function corruptStateFile(path: string, problem: string, fix: string): Problem<StateFileProblemReason> {
  return { reason: 'state_file_corrupt', message: `${path} is damaged: ${problem}. ${fix}` };
}

/** Reads a file that only its owner may read; null if there is none. */
export function readPrivateFile(path: string): Result<string | null, Problem<StateFileProblemReason>> {
  try {
    const mode = statSync(path).mode & 0o777;
    if ((mode & 0o077) !== 0) return err(exposedProblem(path, mode));
    return ok(readFileSync(path, 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return ok(null);
    return err(unreadableProblem(path, error));
  }
}

/**
 * Writes a file that only its owner may read. After a crash it contains either the old text or the new: a new file is written,
 * synced and renamed over it. Rejects with the file system's error.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  // Loaded on use, because most commands only read, and both take a tenth of the start of Node.
  const [{ randomBytes }, { mkdir, rename, rm }] = await Promise.all([
    import('node:crypto'),
    import('node:fs/promises'),
  ]);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeSynced(temporary, text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function writeSynced(path: string, text: string): Promise<void> {
  const { open } = await import('node:fs/promises');
  const file = await open(path, 'wx', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

function exposedProblem(path: string, mode: number): Problem<StateFileProblemReason> {
  const shown = mode.toString(8).padStart(4, '0');
  return {
    reason: 'state_file_exposed',
    message: `${path} has mode ${shown}, so other users may read it; it must be 0600. Run: chmod 600 ${path}`,
  };
}

function unreadableProblem(path: string, error: unknown): Problem<StateFileProblemReason> {
  const code = errorCode(error) || 'unknown error';
  return {
    reason: 'state_file_unreadable',
    message: `${path} cannot be read (${code}). Give this user read access to it, or move it away.`,
  };
}
