import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What `look` gives; null when the file or folder it looks at is not there (any more). */
export function ifThere<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isGone) return null;
    throw error;
  }
}

/**
 * Everything under a folder in which programs are at work, a folder before what is in it: what goes while this looks is left
 * out. Symbolic links are not followed. The folder itself has to be there.
 */
export function entriesUnder(folder: string): Generator<Dirent> {
  return walk(readdirSync(folder, { withFileTypes: true }));
}

function* walk(entries: readonly Dirent[]): Generator<Dirent> {
  for (const entry of entries) {
    yield entry;
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) yield* walk(ifThere(() => readdirSync(path, { withFileTypes: true })) ?? []);
  }
}

/** A file of {@link entriesUnder} with its content; null for what is no file or has gone. */
export function contentOf(entry: Dirent): { path: string; bytes: Buffer } | null {
  const path = join(entry.parentPath, entry.name);
  const bytes = entry.isFile() ? ifThere(() => readFileSync(path)) : null;
  return bytes === null ? null : { path, bytes };
}
