import { randomText, type Alphabet, type RandomBytes } from '../bindings/sentinel.ts';

/** `{alnum:36}`: that many random characters of an alphabet. */
const PART = /\{(alnum|lower|hex|digits|base32):(\d{1,3})\}/g;

/** Why a text is not the shape of a placeholder, as a predicate; null if it is one. */
export function shapeProblem(shape: string): string | null {
  const fixed = shape.replaceAll(PART, '');
  if (/[{}]/.test(fixed))
    return 'has a part in braces other than {alnum:N}, {lower:N}, {hex:N}, {digits:N} and {base32:N}';
  return /^[!-~]*$/.test(fixed) ? null : 'has a space or a character that is not printable ASCII';
}

/** How many characters of the shape are random. */
export function randomCharacters(shape: string): number {
  return [...shape.matchAll(PART)].reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** A new placeholder: it looks like the credential, so that the agent accepts it, and it opens nothing. */
export function makePlaceholder(shape: string, randomBytes: RandomBytes): string {
  return shape.replaceAll(PART, (_part, alphabet: Alphabet, count: string) =>
    randomText(alphabet, Number(count), randomBytes),
  );
}
