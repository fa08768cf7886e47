import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';

/** The logs in `$SVC_HOME/logs`. `up` is what `svc up --detach` reports while it runs in the background. */
export const LOG_NAMES = ['control', 'sidecar', 'up'] as const;
export type LogName = (typeof LOG_NAMES)[number];

export function logFolder(home: string): string {
  return join(home, 'logs');
}

export function logPath(home: string, name: LogName): string {
  return join(logFolder(home), `${name}.log`);
}

/** Creates the folder of the logs, mode 0700, and returns the log's path. */
export function prepareLog(home: string, name: LogName): string {
  mkdirSync(logFolder(home), { recursive: true, mode: 0o700 });
  return logPath(home, name);
}

/** One line of a log. */
export interface LogEntry {
  readonly program: LogName;
  /** ISO 8601. A line without a time of its own, such as a stack frame, has the time of the line before; `''` if there is none. */
  readonly time: string;
  /** The fields of a JSON line; null for any other line. */
  readonly fields: Readonly<Record<string, unknown>> | null;
  readonly line: string;
}

const fieldsOfLine = z.record(z.string(), z.unknown());
const NEWLINE = 0x0a;

/** Reads a log from its beginning, and then what was added to it, across its rotation to `<path>.1`. */
export class LogReader {
  readonly #program: LogName;
  readonly #path: string;
  #file: number | null = null;
  #offset = 0;
  #time = '';
  /** The beginning of a line whose end is not written yet. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(home: string, program: LogName) {
    this.#program = program;
    this.#path = logPath(home, program);
  }

  /** The whole lines since the last call. */
  readNew(): readonly LogEntry[] {
    const lines = this.#file === null ? this.#readFirst() : this.#readOn(this.#file);
    return lines.map((line) => this.#entryOf(line));
  }

  #readFirst(): readonly string[] {
    const old = readFrom(`${this.#path}.1`, 0);
    const current = readFrom(this.#path, 0);
    return [...this.#take(old), ...this.#take(current)];
  }

  #readOn(file: number): readonly string[] {
    const current = readFrom(this.#path, 0, { file, from: this.#offset });
    if (current === null || current.file === file) return this.#take(current);
    const old = readFrom(`${this.#path}.1`, this.#offset);
    const end = old?.file === file ? this.#take(old) : [];
    return [...end, ...this.#take(current)];
  }

  #take(part: FilePart | null): readonly string[] {
    if (part === null) return [];
    this.#file = part.file;
    this.#offset = part.end;
    const bytes = Buffer.concat([this.#rest, part.bytes]);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    this.#rest = bytes.subarray(end);
    return end === 0 ? [] : bytes.toString('utf8', 0, end - 1).split('\n');
  }

  #entryOf(line: string): LogEntry {
    const parsed = fieldsOfLine.safeParse(parseJson(line));
    const fields = parsed.success ? parsed.data : null;
    const time = fields?.['time'];
    if (typeof time === 'string') this.#time = time;
    return { program: this.#program, time: this.#time, fields, line };
  }
}

/** Merges entries of several logs by time; entries of one log keep their order. */
export function mergeEntries(logs: readonly (readonly LogEntry[])[]): readonly LogEntry[] {
  return logs.flat().toSorted((a, b) => (a.time === b.time ? 0 : a.time < b.time ? -1 : 1));
}

interface FilePart {
  /** The file's inode: it stays the same when the file is renamed. */
  readonly file: number;
  readonly bytes: Buffer;
  /** Where the part ends in the file. */
  readonly end: number;
}

/** Reads a file from an offset, or from `known.from` if it is still that file; null if there is no file. */
function readFrom(
  path: string,
  offset: number,
  known?: { readonly file: number; readonly from: number },
): FilePart | null {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return null;
  }
  try {
    const { ino, size } = fstatSync(fd);
    const from = known?.file === ino ? known.from : offset;
    const bytes = Buffer.alloc(Math.max(0, size - from));
    const count = readSync(fd, bytes, 0, bytes.length, from);
    return { file: ino, bytes: bytes.subarray(0, count), end: from + count };
  } finally {
    closeSync(fd);
  }
}
