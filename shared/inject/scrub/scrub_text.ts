import type { ScrubPatterns } from './patterns.ts';

/** `text` (latin1: a header line, a reason phrase, a trailer) with every match masked by as many `*`. */
export function scrubText(text: string, patterns: ScrubPatterns): string {
  const matches = patterns.findInText(text);
  if (matches.length === 0) return text;
  const characters = text.split('');
  for (let index = 0; index < matches.length; index += 2) characters.fill('*', matches[index], matches[index + 1]);
  return characters.join('');
}
