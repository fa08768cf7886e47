import { createHash } from 'node:crypto';

/** SHA-256 of a text in UTF-8, in lower-case hexadecimal. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
