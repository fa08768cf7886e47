/** How the file with the master key is protected (decisions 0130 and 0153). */
export const KEY_PROTECTIONS = ['none', 'passphrase', 'keyring', 'kms'] as const;
export type KeyProtection = (typeof KEY_PROTECTIONS)[number];

/** What a key file that needs a passphrase begins with. */
export const PASSPHRASE_MARK = '{"protection":"passphrase"';

/** A passphrase can be tried as often as a copy of the file allows, so it is longer than a password. */
export const MIN_PASSPHRASE_CHARACTERS = 16;
export const MAX_PASSPHRASE_CHARACTERS = 1_024;

/** What is wrong with a passphrase, as the end of a sentence; null if nothing is. */
export function passphraseProblem(text: string): string | null {
  const characters = Array.from(text).length;
  if (characters < MIN_PASSPHRASE_CHARACTERS) {
    return `has ${characters} characters: use at least ${MIN_PASSPHRASE_CHARACTERS}, such as five random words`;
  }
  if (characters > MAX_PASSPHRASE_CHARACTERS) return `has more than ${MAX_PASSPHRASE_CHARACTERS} characters`;
  return /[\r\n\0]/.test(text) ? 'has a line break or a NUL character' : null;
}
