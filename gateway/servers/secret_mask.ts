import { SEARCH_KEY_WORDS } from '../../shared/inject/scrub/block_search.ts';
import { maskText, maskValue } from '../../shared/inject/scrub/mask_value.ts';
import { compileScrubPatterns, type ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';

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
    return maskText(text, this.patterns);
  }

  /** The JSON value with all strings and keys masked. A value without secrets is returned unchanged, not copied. */
  maskValue<T>(value: T): T {
    return maskValue(value, this.patterns);
  }

  toJSON(): string {
    return '[secrets]';
  }
}
