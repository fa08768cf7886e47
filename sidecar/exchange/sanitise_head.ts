import { isCookieOrChallenge, isWithheldHeader } from '../../shared/connect/sanitised_reply.ts';
import type { HeaderField, ReplyHead } from '../../shared/net/http/http1_head.ts';
import { formatReplyHead } from '../../shared/net/http/http1_head.ts';

/** A reply's head, and its bytes. */
interface ReceivedHead {
  readonly head: ReplyHead;
  readonly raw: Buffer;
}

/** A credentialed reply's head without the withheld headers; the same bytes if it has none. */
export function sanitiseHead({ head, raw }: ReceivedHead, keepCookies: boolean): ReceivedHead {
  if (!head.fields.some(({ name }) => isWithheldHeader(name, keepCookies))) return { head, raw };
  const kept = { ...head, fields: head.fields.filter(({ name }) => !isWithheldHeader(name, keepCookies)) };
  return { head: kept, raw: Buffer.from(formatReplyHead(kept), 'latin1') };
}

/** The same for a trailer section: lines, each with its CRLF. */
export function sanitiseTrailers(trailers: string, keepCookies: boolean): string {
  if (trailers === '') return '';
  const lines = trailers
    .split('\r\n')
    .filter((line) => !isWithheldHeader(line.split(':', 1)[0]?.trim().toLowerCase() ?? '', keepCookies));
  return lines.join('\r\n');
}

/** The reply headers that were withheld, or that passed because the binding keeps cookies: lower-case names, each once. */
export interface WithheldHeaders {
  readonly withheld: readonly string[];
  readonly kept: readonly string[];
}

const NOTHING: WithheldHeaders = { withheld: [], kept: [] };

/** What {@link sanitiseHead} does to the fields, for the audit event. The names are of a closed list; values are never included. */
export function listWithheldHeaders(fields: readonly HeaderField[], keepCookies: boolean): WithheldHeaders {
  if (!fields.some(({ name }) => isWithheldHeader(name))) return NOTHING;
  const names = [...new Set(fields.map(({ name }) => name))];
  return {
    withheld: names.filter((name) => isWithheldHeader(name, keepCookies)),
    kept: keepCookies ? names.filter(isCookieOrChallenge) : [],
  };
}
