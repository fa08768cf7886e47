import { byteTextOf, textOfBytes } from '../byte_text.ts';
import type { ScrubPatterns } from './patterns.ts';
import { scrubText } from './scrub_text.ts';

/** The text with `*` in place of every secret. */
export function maskText(text: string, patterns: ScrubPatterns): string {
  if (patterns.isEmpty) return text;
  const bytes = byteTextOf(text);
  const masked = scrubText(bytes, patterns);
  return masked === bytes ? text : textOfBytes(masked);
}

/** The JSON value with all strings and keys masked. A value without secrets is returned unchanged, not copied. */
export function maskValue<T>(value: T, patterns: ScrubPatterns): T;
export function maskValue(value: unknown, patterns: ScrubPatterns): unknown {
  return patterns.isEmpty ? value : maskAny(value, patterns);
}

function maskAny(value: unknown, patterns: ScrubPatterns): unknown {
  if (typeof value === 'string') return maskText(value, patterns);
  if (typeof value === 'number') return maskNumber(value, patterns);
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? maskList(value, patterns) : maskObject(value, patterns);
}

/** A secret of digits is also masked as a number. */
function maskNumber(value: number, patterns: ScrubPatterns): unknown {
  const text = String(value);
  const masked = maskText(text, patterns);
  return masked === text ? value : masked;
}

function maskList(list: readonly unknown[], patterns: ScrubPatterns): readonly unknown[] {
  const masked = list.map((item) => maskAny(item, patterns));
  return masked.some((item, index) => item !== list[index]) ? masked : list;
}

function maskObject(object: object, patterns: ScrubPatterns): object {
  const entries = Object.entries(object);
  const masked = entries.map(([key, member]): [string, unknown] => [
    maskText(key, patterns),
    maskAny(member, patterns),
  ]);
  const changed = masked.some(([key, member], index) => key !== entries[index]?.[0] || member !== entries[index]?.[1]);
  return changed ? Object.fromEntries(masked) : object;
}
