import { latin1Bytes, latin1Text } from '../byte_text.ts';
import type { ScrubPatterns } from './patterns.ts';
import { maskMatches } from './patterns.ts';

/** `text` (latin1: a header line, a reason phrase, a trailer) with every match masked by as many `*`. */
export function scrubText(text: string, patterns: ScrubPatterns): string {
  if (patterns.isEmpty) return text;
  const bytes = latin1Bytes(text);
  const matches = patterns.find(bytes);
  if (matches.length === 0) return text;
  maskMatches(bytes, matches);
  return latin1Text(bytes);
}
