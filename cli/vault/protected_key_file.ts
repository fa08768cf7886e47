import { closeSync, openSync, readSync } from 'node:fs';

/** No protected key is larger. */
const MAX_BYTES = 64 * 1024;

/**
 * The text of a key file that is protected, in which nothing is secret; null if there is none. Of a file that is not protected, only
 * the first character is read: it is the key itself.
 */
export function readProtectedKeyFile(path: string): string | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    // The control plane says what is wrong with it.
    return null;
  }
  try {
    const first = Buffer.alloc(1);
    if (readSync(file, first, 0, 1, 0) !== 1 || first.toString() !== '{') return null;
    const text = Buffer.alloc(MAX_BYTES);
    return text.toString('utf8', 0, readSync(file, text, 0, MAX_BYTES, 0));
  } finally {
    closeSync(file);
  }
}
