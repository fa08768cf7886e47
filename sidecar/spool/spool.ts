import type { SpoolFiles } from './spool_files.ts';
import { Segment } from './spool_segment.ts';

export interface SpoolOptions {
  /** `$SVC_HOME/sidecar/spool`. */
  readonly directory: string;
  /** At this size the spool is full for credentialed requests. */
  readonly maxSpoolBytes: number;
  readonly files: SpoolFiles;
  /** A new file is begun at this size. */
  readonly segmentBytes?: number;
}

/** The oldest events that are not settled yet. */
export interface SpoolBatch {
  readonly lines: readonly string[];
  /** The lines were written by an earlier run and may be damaged. */
  readonly recovered: boolean;
  /** Removes them from the spool. */
  settle(): void;
}

const SEGMENT_NAME = /^(\d{12})[.]jsonl$/;
const SEGMENT_BYTES = 4 * 1024 * 1024;
/** Room above the limit for the events of requests that are not refused when the spool is full. */
const RESERVE_FRACTION = 0.25;
const MAX_HELD_BYTES = 32 * 1024 * 1024;

/**
 * Events on disk, oldest first, until they are settled. An event that the disk does not take is held in memory in its place
 * in the order, so that one full disk loses nothing; while anything is held the spool is not accepting.
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

  /** Opens the spool with what an earlier run left in it. Throws what the file system throws. */
  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#segments = recoverSegments(options);
    for (const segment of this.#segments) {
      this.#bytes += segment.size;
      this.#appended += segment.lines;
    }
  }

  /** Bytes that are not settled. */
  get bytes(): number {
    return this.#bytes - this.#position + this.#heldBytes;
  }

  /** Events that are not settled. */
  get events(): number {
    return this.#appended - this.#settled;
  }

  /** Events taken so far, with those of earlier runs that were left. */
  get appended(): number {
    return this.#appended;
  }

  /** Events settled so far, in the order in which they were taken. */
  get settled(): number {
    return this.#settled;
  }

  /** Events lost because not even the reserve had room. */
  get dropped(): number {
    return this.#dropped;
  }

  get accepting(): boolean {
    return this.#held.length === 0 && this.bytes < this.#options.maxSpoolBytes;
  }

  /** Most of the reserve is used too: whoever goes on without refusing everything will lose events. */
  get exhausted(): boolean {
    const { maxSpoolBytes } = this.#options;
    return (
      this.bytes >= maxSpoolBytes * (1 + RESERVE_FRACTION / 2) ||
      this.#heldBytes >= Math.min(maxSpoolBytes, MAX_HELD_BYTES) / 2
    );
  }

  /** Takes events: lines of JSON, each with its newline. On return they are in the file system's hands, by one write. */
  append(lines: readonly string[]): void {
    if (this.#held.length === 0 && this.#write(lines.join(''), lines.length)) {
      this.#appended += lines.length;
      return;
    }
    for (const line of lines) this.#hold(line);
    this.writeHeld();
  }

  /** Tries again to write what the disk did not take. */
  writeHeld(): void {
    let written = 0;
    for (const line of this.#held) {
      if (!this.#write(line, 1)) break;
      this.#heldBytes -= Buffer.byteLength(line);
      written += 1;
    }
    this.#held.splice(0, written);
  }

  /** The oldest events, at most `maxEvents` of about `maxBytes`; null when everything is settled. */
  nextBatch(maxEvents: number, maxBytes: number): SpoolBatch | null {
    const head = this.#head();
    if (head === null) return this.#heldBatch(maxEvents);
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

  /** The first segment with something to read; null when there is none. */
  #head(): Segment | null {
    const head = this.#segments[0];
    return head !== undefined && this.#position < head.size ? head : null;
  }

  #heldBatch(maxEvents: number): SpoolBatch | null {
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

  /** Frees what was read to its end. The file being written is emptied rather than replaced. */
  #tidy(): void {
    const head = this.#segments[0];
    if (head === undefined || this.#position < head.size) return;
    this.#bytes -= head.size;
    this.#position = 0;
    const stillWritten = this.#segments.length === 1 && !head.recovered && !head.broken;
    if (stillWritten && succeeds(() => head.clear())) return;
    this.#segments.shift();
    succeeds(() => head.remove());
  }
}

/** A file that cannot be emptied or removed stays, and its events are sent again by the next run, which is harmless. */
function succeeds(action: () => void): boolean {
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
