import type { SpoolFiles } from './spool_files.ts';
import { Segment } from './spool_segment.ts';

interface SpoolOptions {
  /** `$SVC_HOME/sidecar/spool`. */
  readonly directory: string;
  /** At this size the spool is full for credentialed requests. */
  readonly maxSpoolBytes: number;
  readonly files: SpoolFiles;
  /** A new file is started at this size. */
  readonly segmentBytes?: number;
}

/** The oldest unsettled events. */
export interface SpoolBatch {
  readonly lines: readonly string[];
  /** The lines were written by an earlier run and may be damaged. */
  readonly recovered: boolean;
  /** Removes them from the spool. */
  settle(): void;
}

const SEGMENT_NAME = /^(\d{12})[.]jsonl$/;
const SEGMENT_BYTES = 4 * 1024 * 1024;
/** Space above the limit for the events of requests that a full spool does not refuse. */
const RESERVE_FRACTION = 0.25;
const MAX_HELD_BYTES = 32 * 1024 * 1024;

/**
 * Events on disk, oldest first, until they are settled. An event that cannot be written is held in memory in its place in
 * the order, so that one full disk loses nothing; while any is held, the spool accepts nothing.
 */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #segments: Segment[];
  #position = 0;
  #bytes = 0;
  #held: string[] = [];
  #heldBytes = 0;
  #appended = 0;
  #settled = 0;
  #dropped = 0;

  /** Opens the spool with what an earlier run left in it. Throws the file system's errors. */
  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#segments = recoverSegments(options);
    for (const segment of this.#segments) {
      this.#bytes += segment.size;
      this.#appended += segment.lines;
    }
  }

  /** Unsettled bytes. */
  get bytes(): number {
    return this.#bytes - this.#position + this.#heldBytes;
  }

  /** Unsettled events. */
  get events(): number {
    return this.#appended - this.#settled;
  }

  /** Events accepted so far, including those left by earlier runs. */
  get appended(): number {
    return this.#appended;
  }

  /** Events settled so far, in the order of acceptance. */
  get settled(): number {
    return this.#settled;
  }

  /** Events lost because the reserve was full too. */
  get dropped(): number {
    return this.#dropped;
  }

  get accepting(): boolean {
    return this.#held.length === 0 && this.bytes < this.#options.maxSpoolBytes;
  }

  /** Most of the reserve is used too: unless every request is refused now, events will be lost. */
  get exhausted(): boolean {
    const { maxSpoolBytes } = this.#options;
    return (
      this.bytes >= maxSpoolBytes * (1 + RESERVE_FRACTION / 2) ||
      this.#heldBytes >= Math.min(maxSpoolBytes, MAX_HELD_BYTES) / 2
    );
  }

  /** Accepts events: lines of JSON, each with its newline. They are written to the file system, in one write, when this returns. */
  append(lines: readonly string[]): void {
    if (this.#held.length === 0 && this.#write(lines.join(''), lines.length)) {
      this.#appended += lines.length;
      return;
    }
    for (const line of lines) this.#hold(line);
    this.writeHeld();
  }

  /** Retries to write what the disk did not accept. */
  writeHeld(): void {
    let written = 0;
    for (const line of this.#held) {
      if (!this.#write(line, 1)) break;
      this.#heldBytes -= Buffer.byteLength(line);
      written += 1;
    }
    this.#held.splice(0, written);
  }

  /** The oldest events, at most `maxEvents` and about `maxBytes`; null if everything is settled. */
  nextBatch(maxEvents: number, maxBytes: number): SpoolBatch | null {
    const head = this.#head();
    if (head === null) return this.#readHeld(maxEvents);
    const lines = head.read(this.#position, maxBytes).slice(0, maxEvents);
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    return {
      lines,
      recovered: head.recovered,
      settle: () => {
        this.#position += bytes;
        this.#settled += lines.length;
        this.#tidy();
      },
    };
  }

  close(): void {
    for (const segment of this.#segments) segment.close();
  }

  /** The first segment with something to read; null if there is none. */
  #head(): Segment | null {
    const head = this.#segments[0];
    return head !== undefined && this.#position < head.size ? head : null;
  }

  #readHeld(maxEvents: number): SpoolBatch | null {
    if (this.#held.length === 0) return null;
    const taken = this.#held.slice(0, maxEvents);
    return {
      lines: taken.map((line) => line.slice(0, -1)),
      recovered: false,
      settle: () => {
        const stillHeld = this.#held.length > 0 && this.#held[0] === taken[0];
        if (!stillHeld) return;
        this.#held.splice(0, taken.length);
        for (const line of taken) this.#heldBytes -= Buffer.byteLength(line);
        this.#settled += taken.length;
      },
    };
  }

  #hold(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#heldBytes + bytes > Math.min(this.#options.maxSpoolBytes, MAX_HELD_BYTES)) {
      this.#dropped += 1;
      return;
    }
    this.#held.push(line);
    this.#heldBytes += bytes;
    this.#appended += 1;
  }

  #write(text: string, lines: number): boolean {
    const most = this.#options.maxSpoolBytes * (1 + RESERVE_FRACTION);
    if (this.#bytes - this.#position + text.length > most) return false;
    try {
      this.#bytes += this.#tail().append(text, lines);
      return true;
    } catch {
      return false;
    }
  }

  #tail(): Segment {
    const last = this.#segments.at(-1);
    const fits = last !== undefined && !last.broken && !last.recovered;
    if (fits && last.size < (this.#options.segmentBytes ?? SEGMENT_BYTES)) return last;
    const segment = new Segment(this.#options.files, this.#options.directory, (last?.number ?? 0) + 1);
    this.#segments.push(segment);
    return segment;
  }

  /** Frees fully read segments. The file being written is truncated rather than replaced. */
  #tidy(): void {
    const head = this.#segments[0];
    if (head === undefined || this.#position < head.size) return;
    this.#bytes -= head.size;
    this.#position = 0;
    const stillWritten = this.#segments.length === 1 && !head.recovered && !head.broken;
    if (stillWritten && trySilently(() => head.clear())) return;
    this.#segments.shift();
    trySilently(() => head.remove());
  }
}

/** A file that cannot be truncated or removed stays. The next run sends its events again, which is harmless. */
function trySilently(action: () => void): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}

function recoverSegments(options: SpoolOptions): Segment[] {
  const names = options.files.list(options.directory).filter((name) => SEGMENT_NAME.test(name));
  const segments: Segment[] = [];
  for (const name of names.toSorted()) {
    const segment = new Segment(options.files, options.directory, Number(name.slice(0, 12)));
    segment.recover();
    if (segment.size === 0) segment.remove();
    else segments.push(segment);
  }
  return segments;
}
