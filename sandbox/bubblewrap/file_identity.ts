import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs';

/** Linux's flag to open a file for its identity only. Node has no name for it. */
const O_PATH = 0o10000000;

/**
 * Which file or folder is at a path, as a text; null if nothing is, or if a link is on the way. `sandbox_init.cjs` has the same
 * function. It is one look: what was opened says where it is, however often somebody swaps the path for a link.
 */
export function identifyFile(path: string): string | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch {
    return null;
  }
  try {
    const { dev, ino, mode } = fstatSync(descriptor, { bigint: true });
    const isLink = (mode & BigInt(constants.S_IFMT)) === BigInt(constants.S_IFLNK);
    return isLink || readlinkSync(`/proc/self/fd/${descriptor}`) !== path ? null : `${dev}:${ino}`;
  } finally {
    closeSync(descriptor);
  }
}
