import { LINES } from '../../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import type { SecretMask } from './secret_mask.ts';
import { cutShownText, replaceHidden } from '../../shared/model/shown_text.ts';

const CAPACITY_BYTES = 64 * 1024;
const NOISE = /^(?:npm (?:error|ERR!) A complete log of this run can be found in|at |Node\.js v\d|[\^~{}[\]()]+$)/;
const MOST_LINES = 4;
const MOST_LINE_CHARACTERS = 200;

/** The last 64 KiB of a server's stderr, masked before it is stored. */
export class StderrRing {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #scrubber: StreamScrubber | null = null;

  /** Masks these values from now on; stored text stays unchanged. */
  maskWith(mask: SecretMask): void {
    this.end();
    this.#scrubber = mask.patterns.isEmpty ? null : new StreamScrubber(mask.patterns, LINES);
  }

  write(chunk: Uint8Array): void {
    const clean = this.#scrubber === null ? [chunk] : this.#scrubber.push(chunk);
    for (const part of clean) this.#keep(part);
  }

  /** The stored text without control characters. */
  text(): string {
    const text = Buffer.concat(this.#chunks).toString('utf8');
    return replaceHidden(text.replaceAll(/\r\n?/g, '\n'), { keepsLines: true, write: () => '' });
  }

  /**
   * The last meaningful lines, for a message. npm prints the path of its log after the reason, and Node its stack and version:
   * such lines are skipped if there are others.
   */
  findLastLines(): readonly string[] {
    const lines = this.text()
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    const meaningful = lines.filter((line) => !NOISE.test(line));
    const kept = meaningful.length === 0 ? lines.slice(-1) : meaningful.slice(-MOST_LINES);
    return kept.map((line) => cutShownText(line, MOST_LINE_CHARACTERS));
  }

  /** Keeps an incomplete last line. */
  end(): void {
    for (const part of this.#scrubber?.flush() ?? []) this.#keep(part);
  }

  #keep(part: Uint8Array): void {
    const kept = part.length > CAPACITY_BYTES ? part.slice(-CAPACITY_BYTES) : part;
    if (kept.length === 0) return;
    // Copied, because a slice would keep the whole read buffer in memory.
    this.#chunks.push(Uint8Array.from(kept));
    this.#bytes += kept.length;
    while (this.#bytes > CAPACITY_BYTES) this.#bytes -= this.#dropFirst(this.#bytes - CAPACITY_BYTES);
  }

  #dropFirst(excess: number): number {
    const [first] = this.#chunks;
    if (first === undefined) return excess;
    if (first.length <= excess) this.#chunks.shift();
    else this.#chunks[0] = first.slice(excess);
    return Math.min(first.length, excess);
  }
}
