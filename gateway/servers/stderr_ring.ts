import { LINES } from '../../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import type { SecretMask } from './secret_mask.ts';
import { replaceHidden } from '../../shared/model/shown_text.ts';

const CAPACITY_BYTES = 64 * 1024;
const LOG_PLACE = /^npm (?:error|ERR!) A complete log of this run can be found in/;

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

  /** The last meaningful line, for a message. npm prints the path of its log after the reason, so that line is skipped. */
  findLastLine(): string | null {
    const lines = this.text()
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    const line = lines.findLast((each) => !LOG_PLACE.test(each)) ?? lines.at(-1);
    return line?.slice(0, 300) ?? null;
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
