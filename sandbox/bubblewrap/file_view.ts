import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { listPrivate, type NeededPaths, type SharedFolder } from './private_files.ts';

/** What planning has to know of the file system. */
export interface FileView {
  /** What is at a path, a link not followed; null: nothing. */
  kindOf(path: string): 'file' | 'folder' | 'link' | 'other' | null;
  /** The path without links; null if it leads nowhere. */
  realPath(path: string): string | null;
  /** Where a link says that it leads. */
  linkTarget(path: string): string;
  /** The names in a folder; none if it cannot be read. */
  namesIn(folder: string): readonly string[];
  /** The names of the folders in a folder, links left out. */
  foldersIn(folder: string): readonly string[];
  /** The text of a small file, a link not followed; null: there is none. */
  textOf(path: string): string | null;
  /** What this user may read in a folder and others may not (private_files.ts). */
  privateIn(folder: SharedFolder, needed: NeededPaths): readonly string[];
}

/** Far more than a file has that names a folder. */
const LONGEST_TEXT = 65_536;

export const MACHINE_FILES: FileView = {
  kindOf: (path) => {
    const stats = tryTo(() => lstatSync(path, { throwIfNoEntry: false })) ?? null;
    if (stats === null) return null;
    if (stats.isSymbolicLink()) return 'link';
    if (stats.isDirectory()) return 'folder';
    return stats.isFile() ? 'file' : 'other';
  },
  realPath: (path) => tryTo(() => realpathSync(path)),
  linkTarget: (path) => readlinkSync(path),
  namesIn: (folder) => tryTo(() => readdirSync(folder)) ?? [],
  foldersIn: (folder) =>
    (tryTo(() => readdirSync(folder, { withFileTypes: true })) ?? [])
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name),
  textOf: (path) =>
    tryTo(() => {
      const stats = lstatSync(path);
      return stats.isFile() && stats.size <= LONGEST_TEXT ? readFileSync(path, 'utf8') : null;
    }),
  privateIn: listPrivate,
};

function tryTo<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}
