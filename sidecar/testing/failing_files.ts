import type { SpoolFiles } from '../spool/spool_files.ts';

/** A file system in memory that can be full, fail, or lose what a dying process had not finished. */
export class FailingFiles implements SpoolFiles {
  /** By path. */
  readonly contents = new Map<string, Buffer>();
  /** Bytes that still fit; null for no limit. */
  room: number | null = null;
  /** The `code` that every write, truncation and read fails with. */
  failing: string | null = null;
  readonly #open: string[] = [];

  list(directory: string): string[] {
    const prefix = `${directory}/`;
    return [...this.contents.keys()].filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
  }

  open(path: string): number {
    this.#check();
    if (!this.contents.has(path)) this.contents.set(path, Buffer.alloc(0));
    return this.#open.push(path) - 1;
  }

  close(_file: number): void {}

  size(file: number): number {
    return this.#content(file).length;
  }

  append(file: number, data: string | Uint8Array): number {
    this.#check();
    const bytes = Buffer.from(data);
    const fits = this.room === null ? bytes.length : Math.min(bytes.length, this.room);
    if (fits === 0 && bytes.length > 0) throw failure('ENOSPC');
    if (this.room !== null) this.room -= fits;
    this.#set(file, Buffer.concat([this.#content(file), bytes.subarray(0, fits)]));
    return fits;
  }

  truncate(file: number, size: number): void {
    this.#check();
    const content = this.#content(file);
    if (this.room !== null) this.room += content.length - size;
    this.#set(file, content.subarray(0, size));
  }

  read(file: number, into: Uint8Array, position: number): number {
    this.#check();
    return this.#content(file).copy(into, 0, position);
  }

  remove(path: string): void {
    if (this.room !== null) this.room += this.contents.get(path)?.length ?? 0;
    this.contents.delete(path);
  }

  #content(file: number): Buffer {
    return this.contents.get(this.#open[file] ?? '') ?? Buffer.alloc(0);
  }

  #set(file: number, content: Buffer): void {
    this.contents.set(this.#open[file] ?? '', content);
  }

  #check(): void {
    if (this.failing !== null) throw failure(this.failing);
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code} for the test`), { code });
}
