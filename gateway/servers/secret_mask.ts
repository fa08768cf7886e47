import { byteTextOf, textOfBytes } from '../../shared/inject/byte_text.ts';
import { SEARCH_KEY_WORDS } from '../../shared/inject/scrub/block_search.ts';
import { compileScrubPatterns, type ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';

/**
 * Masks the values that a server was given in whatever it says, in the spellings that replies of upstreams are searched
 * for. Values under eight bytes are not searched for. It prints nothing of what it holds.
 */
export class SecretMask {
  readonly patterns: ScrubPatterns;

  constructor(secrets: readonly string[]) {
    this.patterns = compileScrubPatterns(secrets, crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS)));
  }

  /** The text with `*` in place of every secret. */
  text(text: string): string {
    if (this.patterns.isEmpty) return text;
    const bytes = byteTextOf(text);
    const masked = scrubText(bytes, this.patterns);
    return masked === bytes ? text : textOfBytes(masked);
  }

  /** The JSON value with every text in it masked, keys too. What holds no secret is given back as it is, not copied. */
  value<T>(value: T): T;
  value(value: unknown): unknown {
    return this.patterns.isEmpty ? value : this.#masked(value);
  }

  #masked(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') return this.#number(value);
    if (typeof value !== 'object' || value === null) return value;
    return Array.isArray(value) ? this.#list(value) : this.#object(value);
  }

  /** A secret of digits alone is one as a number too. */
  #number(value: number): unknown {
    const text = String(value);
    const masked = this.text(text);
    return masked === text ? value : masked;
  }

  #list(list: readonly unknown[]): readonly unknown[] {
    const masked = list.map((item) => this.#masked(item));
    return masked.some((item, index) => item !== list[index]) ? masked : list;
  }

  #object(object: object): object {
    const entries = Object.entries(object);
    const masked = entries.map(([key, member]): [string, unknown] => [this.text(key), this.#masked(member)]);
    const changed = masked.some(
      ([key, member], index) => key !== entries[index]?.[0] || member !== entries[index]?.[1],
    );
    return changed ? Object.fromEntries(masked) : object;
  }

  toJSON(): string {
    return '[secrets]';
  }
}

/** Masks nothing: of a server that was given no secret. */
export const NO_MASK = new SecretMask([]);
