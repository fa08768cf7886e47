import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { errorCode } from '../shared/model/error_code.ts';
import { err, ok, type Result } from '../shared/model/result.ts';

/** A regular file as it was when it was opened. */
interface RegularFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/** Why a file is not read; `code` is the system's. */
interface UnreadFile {
  readonly reason: 'absent' | 'link' | 'not_a_file' | 'too_large' | 'unreadable';
  readonly code: string;
}

/**
 * Reads a file that another program, or somebody else, may have put there. A link is not followed: it could lead to any file of
 * the user. Nothing waits for the other end of a named pipe. What is checked is what is read.
 */
export function readRegularFile(path: string, maxBytes: number): Result<RegularFile, UnreadFile> {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorCode(error);
    const isAbsent = code === 'ENOENT' || code === 'ENOTDIR';
    return err({ reason: isAbsent ? 'absent' : code === 'ELOOP' ? 'link' : 'unreadable', code });
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return err({ reason: 'not_a_file', code: '' });
    const bytes = readAtMost(file, maxBytes);
    return bytes === null ? err({ reason: 'too_large', code: '' }) : ok({ bytes, stats });
  } catch (error) {
    return err({ reason: 'unreadable', code: errorCode(error) });
  } finally {
    closeSync(file);
  }
}

/** Null if there is more. The size that the system gives is not relied on: the file may grow. */
function readAtMost(file: number, maxBytes: number): Buffer | null {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const chunk = Buffer.alloc(Math.min(65_536, maxBytes + 1 - length));
    const read = readSync(file, chunk, 0, chunk.length, null);
    if (read === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, read));
    length += read;
    if (length > maxBytes) return null;
  }
}
