import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isExecutable } from '../../machine/is_executable.ts';
import { isAtOrBelow } from '../launch/mount_table.ts';

/** Where the system's own programs are, which a service's PATH may lack. */
const OF_SYSTEM = ['/usr/bin', '/usr/local/bin', '/bin', '/run/current-system/sw/bin'];

export interface ProgramFacts {
  /** The variable PATH. */
  readonly path: string;
  /** What a command in a sandbox may write. */
  readonly workingDirectory: string;
  readonly isProgram: (path: string) => boolean;
  /** The path without links. */
  readonly realPath: (path: string) => string;
}

export function programFacts(path: string): ProgramFacts {
  return { path, workingDirectory: process.cwd(), isProgram: isExecutable, realPath: (file) => realpathSync(file) };
}

/**
 * A program that makes a sandbox, and so runs outside of it: the system's, or the first on PATH. It is never one of the working
 * directory or of a package: a folder of the project may be on PATH (`node_modules/.bin`), and what ran in a sandbox before could have
 * written there.
 */
export function findProgram(
  name: string,
  { path, workingDirectory, isProgram, realPath }: ProgramFacts,
): string | null {
  const ofSystem = OF_SYSTEM.map((folder) => join(folder, name)).find(isProgram);
  if (ofSystem !== undefined) return ofSystem;
  const project = realPath(workingDirectory);
  const folders = path.split(delimiter).filter((folder) => folder.startsWith('/'));
  const files = folders.map((folder) => join(folder, name)).filter(isProgram);
  const isPlanted = (place: string) => isAtOrBelow(place, project) || place.includes('/node_modules/');
  return files.find((file) => !isPlanted(realPath(file)) && !isPlanted(file)) ?? null;
}
