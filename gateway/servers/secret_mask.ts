import { byteTextOf, textOfBytes } from '../../shared/inject/byte_text.ts';
import { SEARCH_KEY_WORDS } from '../../shared/inject/scrub/block_search.ts';
import { compileScrubPatterns, type ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';

/**
 * Masks a server's secrets in its output, in the same spellings as in upstream replies. Values under eight bytes are not
 * masked. It never prints its values.
 */
export class SecretMask {
  readonly patterns: ScrubPatterns;

  constructor(secrets: readonly string[]) {
    this.patterns = compileScrubPatterns(secrets, crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS)));
  }

  /** The text with `*` in place of every secret. */
  maskText(text: string): string {
    if (this.patterns.isEmpty) return text;
    const bytes = byteTextOf(text);
    const masked = scrubText(bytes, this.patterns);
    return masked === bytes ? text : textOfBytes(masked);
  }

  /** The JSON value with all strings and keys masked. A value without secrets is returned unchanged, not copied. */
  maskValue<T>(value: T): T;
  maskValue(value: unknown): unknown {
    return this.patterns.isEmpty ? value : this.#maskAny(value);
  }

  #maskAny(value: unknown): unknown {
    if (typeof value === 'string') return this.maskText(value);
    if (typeof value === 'number') return this.#maskNumber(value);
    if (typeof value !== 'object' || value === null) return value;
    return Array.isArray(value) ? this.#maskList(value) : this.#maskObject(value);
  }

  /** A secret of digits is also masked as a number. */
  #maskNumber(value: number): unknown {
    const text = String(value);
    const masked = this.maskText(text);
    return masked === text ? value : masked;
  }

  #maskList(list: readonly unknown[]): readonly unknown[] {
    const masked = list.map((item) => this.#maskAny(item));
    return masked.some((item, index) => item !== list[index]) ? masked : list;
  }

  #maskObject(object: object): object {
    const entries = Object.entries(object);
    const masked = entries.map(([key, member]): [string, unknown] => [this.maskText(key), this.#maskAny(member)]);
    const changed = masked.some(
      ([key, member], index) => key !== entries[index]?.[0] || member !== entries[index]?.[1],
    );
    return changed ? Object.fromEntries(masked) : object;
  }

  toJSON(): string {
    return '[secrets]';
  }
}
