import { join } from 'node:path';
import type { SpoolFiles } from './spool_files.ts';

const NEWLINE = 10;
const SCAN_BYTES = 256 * 1024;

/** One JSONL file of the spool. It contains whole lines only, unless its writer died in the middle of one. */
export class Segment {
  readonly path: string;
  readonly number: number;
  /** Bytes of whole lines. */
  size = 0;
  lines = 0;
  /** Written by an earlier run, so its lines are unverified. */
  recovered = false;
  /** Ends in a partial line that could not be removed: nothing may be appended any more. */
  broken = false;
  readonly #files: SpoolFiles;
  /** Null once closed, because the number may then belong to another file. */
  #file: number | null;

  constructor(files: SpoolFiles, directory: string, number: number) {
    this.path = join(directory, `${String(number).padStart(12, '0')}.jsonl`);
    this.number = number;
    this.#files = files;
    this.#file = files.open(this.path);
  }

  /**
   * Counts the lines left by an earlier run. A last line without its newline gets one if it is a whole event, and is cut off
   * if not: its writer had not confirmed it.
   */
  recover(): void {
    this.recovered = true;
    const tail = this.#countLines();
    if (tail.length === 0) return;
    if (!isWholeEvent(tail)) {
      this.#files.truncate(this.#open, this.size);
      return;
    }
    this.#files.append(this.#open, '\n');
    this.size += tail.length + 1;
    this.lines += 1;
  }

  /** Appends whole lines (each with its newline). On a file system error it throws, and the file is unchanged. */
  append(text: string, lines: number): number {
    let written = 0;
    try {
      written = this.#files.append(this.#open, text);
      const length = Buffer.byteLength(text);
      if (written < length) written += this.#appendRest(Buffer.from(text), written);
    } catch (error) {
      this.#restoreSize();
      throw error;
    }
    this.size += written;
    this.lines += lines;
    return written;
  }

  /** Whole lines from an offset, together about `bytes` long; more if the first alone is longer. */
  read(position: number, bytes: number): string[] {
    let buffer = Buffer.allocUnsafe(Math.min(bytes, this.size - position));
    for (;;) {
      const length = this.#files.read(this.#open, buffer, position);
      const end = buffer.subarray(0, length).lastIndexOf(NEWLINE);
      if (end >= 0) return buffer.toString('utf8', 0, end).split('\n');
      if (position + buffer.length >= this.size) return [];
      buffer = Buffer.allocUnsafe(Math.min(buffer.length * 2, this.size - position));
    }
  }

  /** Truncates the file. */
  clear(): void {
    this.#files.truncate(this.#open, 0);
    this.size = 0;
    this.lines = 0;
  }

  /** Closes it; a second call does nothing. */
  close(): void {
    if (this.#file !== null) this.#files.close(this.#file);
    this.#file = null;
  }

  remove(): void {
    this.close();
    this.#files.remove(this.path);
  }

  get #open(): number {
    if (this.#file === null) throw new Error('the spool is closed');
    return this.#file;
  }

  #appendRest(bytes: Buffer, from: number): number {
    let written = from;
    while (written < bytes.length) {
      const more = this.#files.append(this.#open, bytes.subarray(written));
      if (more === 0) throw Object.assign(new Error('the file accepts no more bytes'), { code: 'ENOSPC' });
      written += more;
    }
    return written - from;
  }

  #restoreSize(): void {
    try {
      if (this.#files.size(this.#open) !== this.size) this.#files.truncate(this.#open, this.size);
    } catch {
      this.broken = true;
    }
  }

  #countLines(): Buffer {
    const buffer = Buffer.allocUnsafe(SCAN_BYTES);
    let tail = Buffer.alloc(0);
    for (let position = 0; ;) {
      const length = this.#files.read(this.#open, buffer, position);
      if (length === 0) return tail;
      position += length;
      const chunk = buffer.subarray(0, length);
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) this.lines += 1;
      const end = chunk.lastIndexOf(NEWLINE);
      if (end >= 0) this.size = position - length + end + 1;
      tail = end >= 0 ? Buffer.from(chunk.subarray(end + 1)) : Buffer.concat([tail, chunk]);
    }
  }
}

function isWholeEvent(bytes: Buffer): boolean {
  try {
    const event: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof event === 'object' && event !== null && 'id' in event && 'data' in event;
  } catch {
    return false;
  }
}
