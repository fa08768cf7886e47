import { chmodSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** The time of every file in an archive, in seconds: the first of January 2026. */
export const SOURCE_DATE = 1_767_225_600;

/** Gives everything in a folder the same modes and times, whoever builds it, whenever. Links stay as they are. */
export function settleFiles(folder: string): void {
  for (const path of [folder, ...listAll(folder)]) {
    const stats = statSync(path);
    chmodSync(path, stats.isDirectory() || (stats.mode & 0o100) !== 0 ? 0o755 : 0o644);
    utimesSync(path, SOURCE_DATE, SOURCE_DATE);
  }
}

/** The files and folders in a folder; no links. */
export function listAll(folder: string): readonly string[] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found.filter((each) => !each.isSymbolicLink()).map((each) => join(each.parentPath, each.name));
}
