import { COLON, CR, TOKEN_TEXT, endOfClass, isLineEnd, isWhitespace } from './http1_characters.ts';
import type { Problem } from '../../model/problem.ts';

export type HeadProblemReason =
  | 'incomplete_head'
  | 'invalid_request_line'
  | 'invalid_status_line'
  | 'invalid_header'
  | 'obs_fold'
  | 'bare_cr_or_lf'
  | 'too_many_headers';

// This code runs only for an illegal head: it inspects the place again to explain what is wrong.

export function incompleteHead(): Problem<HeadProblemReason> {
  return { reason: 'incomplete_head', message: 'the head does not end with an empty line (CRLF CRLF)' };
}

export function tooManyHeaders(maxHeaders: number): Problem<HeadProblemReason> {
  return { reason: 'too_many_headers', message: `the head has more than ${maxHeaders} headers; send fewer` };
}

function bareLineBreak(place: string): Problem<HeadProblemReason> {
  return { reason: 'bare_cr_or_lf', message: `${place} has a CR or LF of its own; end lines with CRLF` };
}

/** True if the first line break at or after `start` is not CRLF, or has a CR before it. */
function hasBareLineBreak(text: string, start: number): boolean {
  const lineFeed = text.indexOf('\n', start);
  return text.indexOf('\r', start) !== lineFeed - 1;
}

export function startLineError(
  text: string,
  reason: 'invalid_request_line' | 'invalid_status_line',
): Problem<HeadProblemReason> {
  const isRequest = reason === 'invalid_request_line';
  if (hasBareLineBreak(text, 0)) return bareLineBreak(isRequest ? 'the request line' : 'the status line');
  const form = isRequest ? '"METHOD target HTTP/1.1"' : '"HTTP/1.1 200 reason"';
  return { reason, message: `the first line must read ${form} with single spaces, in HTTP/1.1 or HTTP/1.0` };
}

export function fieldProblem(text: string, start: number, number: number): Problem<HeadProblemReason> {
  const place = `header line ${number}`;
  if (isWhitespace(text.charCodeAt(start))) {
    return { reason: 'obs_fold', message: `${place} starts with whitespace; send each header on one line` };
  }
  if (hasBareLineBreak(text, start)) return bareLineBreak(place);
  const problem = fieldLineProblem(text, start);
  return { reason: 'invalid_header', message: `${place} ${problem}; send "Name: value"` };
}

function fieldLineProblem(text: string, start: number): string {
  const nameEnd = endOfClass(text, start, TOKEN_TEXT);
  const code = text.charCodeAt(nameEnd);
  if (code === COLON) return nameEnd === start ? 'has no name' : 'has a control character in its value';
  if (isWhitespace(code)) return 'has whitespace in or after its name';
  return code === CR ? 'has no colon' : 'has a character in its name that is not a token character';
}

export function endProblem(text: string, at: number): Problem<HeadProblemReason> {
  if (!isLineEnd(text, at)) return bareLineBreak('a header line');
  return { reason: 'incomplete_head', message: 'there are bytes after the empty line that ends the head' };
}
