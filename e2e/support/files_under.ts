import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The result of `look`; null if its file or folder does not exist (any more). */
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
 * Everything under a folder that running programs may change; a folder comes before its content, and what disappears meanwhile
 * is omitted. Symbolic links are not followed. The folder itself must exist.
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

/** A file of {@link entriesUnder} with its content; null if it is not a file or has disappeared. */
export function contentOf(entry: Dirent): { path: string; bytes: Buffer } | null {
  const path = join(entry.parentPath, entry.name);
  const bytes = entry.isFile() ? ifThere(() => readFileSync(path)) : null;
  return bytes === null ? null : { path, bytes };
}
