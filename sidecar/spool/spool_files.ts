import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';

/** The file system as the spool uses it; tests replace it with a failing one. */
export interface SpoolFiles {
  /** The names in the directory, which is created (0700) if missing. */
  list(directory: string): string[];
  /** Opens for reading and appending; creates it (0600) if missing. */
  open(path: string): number;
  close(file: number): void;
  size(file: number): number;
  /** Appends text, or as much as fits; returns the number of bytes written. */
  append(file: number, data: string | Uint8Array): number;
  truncate(file: number, size: number): void;
  read(file: number, into: Uint8Array, position: number): number;
  remove(path: string): void;
}

export const NODE_SPOOL_FILES: SpoolFiles = {
  list: (directory) => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return readdirSync(directory);
  },
  open: (path) => openSync(path, 'a+', 0o600),
  close: closeSync,
  size: (file) => fstatSync(file).size,
  append: (file, data) => (typeof data === 'string' ? writeSync(file, data) : writeSync(file, data)),
  truncate: ftruncateSync,
  read: (file, into, position) => readSync(file, into, 0, into.length, position),
  remove: unlinkSync,
};
