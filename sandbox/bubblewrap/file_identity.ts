import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs';

/** Linux's flag to open a file for its identity only. Node has no name for it. */
const O_PATH = 0o10000000;

/**
 * Which file or folder is at a path, as a text; null if nothing is, or if a link is on the way. `sandbox_init.cjs` has the same
 * function. It is one look: what was opened says where it is, however often somebody swaps the path for a link.
 */
export function identifyFile(path: string): string | null {
  const descriptor = openItself(path);
  if (descriptor === null) return null;
  try {
    return identityOf(descriptor, path);
  } finally {
    closeSync(descriptor);
  }
}

/** A path with the file or folder that was at it. */
export interface HeldFile {
  readonly path: string;
  /** Whether it still is what is at the path. */
  isThere(): boolean;
  release(): void;
}

/** Keeps what is at a path open: the number of a file that is gone is soon another one's, and both would look the same. */
export function holdFile(path: string): HeldFile {
  const descriptor = openItself(path);
  const identity = descriptor === null ? null : identityOf(descriptor, path);
  return {
    path,
    isThere: () => identifyFile(path) === identity,
    release: () => {
      if (descriptor !== null) closeSync(descriptor);
    },
  };
}

function openItself(path: string): number | null {
  try {
    return openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch {
    return null;
  }
}

function identityOf(descriptor: number, path: string): string | null {
  const { dev, ino, mode } = fstatSync(descriptor, { bigint: true });
  const isLink = (mode & BigInt(constants.S_IFMT)) === BigInt(constants.S_IFLNK);
  return isLink || readlinkSync(`/proc/self/fd/${descriptor}`) !== path ? null : `${dev}:${ino}`;
}
