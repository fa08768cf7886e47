import { toShownLine } from '../../shared/model/shown_text.ts';

const MOST_CHARACTERS = 300;
const MASK = '[masked]';
const LONGEST_WORD = 40;
/** A run of characters as tokens have them. Most words are shorter, or have no digit. */
const TOKEN = /[A-Za-z0-9_+/=~-]{16,}/g;

/**
 * The last line of what a program wrote to stderr, for the person at the machine: without what looks like a credential, and
 * without characters that change what is seen. Null if it wrote nothing.
 */
export function maskStderr(stderr: string): string | null {
  const line = stderr
    .split('\n')
    .map((text) => text.trim())
    .findLast((text) => text !== '');
  if (line === undefined) return null;
  const masked = line.replaceAll(TOKEN, (run) => (/\d/.test(run) || run.length > LONGEST_WORD ? MASK : run));
  return toShownLine(masked, MOST_CHARACTERS);
}
