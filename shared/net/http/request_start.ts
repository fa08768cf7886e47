import { endOfClass, SP, TARGET_TEXT, TOKEN_TEXT } from './http1_characters.ts';
import { skipEmptyLine } from './http1_head.ts';

/** How many bytes of a connection are looked at: a longer request line is left to the parser of the whole head. */
export const START_BYTES = 1024;

const LINE_ENDS = ['HTTP/1.1\r\n', 'HTTP/1.0\r\n'] as const;

/**
 * Whether these first bytes of a connection can be the start of an HTTP/1.1 request (RFC 9112 section 3), so that it is worth
 * waiting for the rest of its head. False for another protocol, such as SSH or one of binary frames, as soon as a byte shows it.
 */
export function canStartRequest(bytes: Uint8Array): boolean {
  const text = String.fromCharCode(...bytes.subarray(skipEmptyLine(bytes, 0), START_BYTES));
  if (text === '' || text === '\r') return true;
  const methodEnd = endOfClass(text, 0, TOKEN_TEXT);
  if (methodEnd === text.length) return true;
  if (methodEnd === 0 || text.charCodeAt(methodEnd) !== SP) return false;
  const targetEnd = endOfClass(text, methodEnd + 1, TARGET_TEXT);
  if (targetEnd === text.length) return true;
  if (targetEnd === methodEnd + 1 || text.charCodeAt(targetEnd) !== SP) return false;
  const version = text.slice(targetEnd + 1, targetEnd + 1 + LINE_ENDS[0].length);
  return LINE_ENDS.some((end) => end.startsWith(version));
}
