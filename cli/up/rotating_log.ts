import { closeSync, fchmodSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';

/** One file is kept beside the current one, so a log takes at most twice this. */
const MAX_BYTES = 5 * 1024 * 1024;

/**
 * A log file, mode 0600, that moves to `<path>.1` when it is full. A disk that is full loses log lines, never the program:
 * the audit events have a spool of their own.
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
      // Nowhere to say it: the log is where it would be said.
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
