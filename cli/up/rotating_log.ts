import { closeSync, fchmodSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';

/** One old file is kept, so a log uses at most twice this size. */
const MAX_BYTES = 5 * 1024 * 1024;

/**
 * A log file, mode 0600, that rotates to `<path>.1` when full. If the disk is full, log lines are lost but the program
 * continues; audit events have their own spool.
 */
export class RotatingLog {
  readonly #path: string;
  readonly #maxBytes: number;
  #fd: number;
  #bytes: number;

  constructor(path: string, maxBytes = MAX_BYTES) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#fd = openLog(path);
    this.#bytes = fstatSync(this.#fd).size;
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    try {
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) this.#rotate();
      writeSync(this.#fd, bytes);
      this.#bytes += bytes.length;
    } catch {
      // Errors of the log itself cannot be logged.
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`);
    const next = openLog(this.#path);
    closeSync(this.#fd);
    this.#fd = next;
    this.#bytes = 0;
  }
}

function openLog(path: string): number {
  const fd = openSync(path, 'a', 0o600);
  fchmodSync(fd, 0o600);
  return fd;
}
