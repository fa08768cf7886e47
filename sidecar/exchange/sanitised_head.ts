import { isWithheldHeader } from '../../shared/connect/sanitised_reply.ts';
import type { ReplyHead } from '../../shared/net/http1_head.ts';
import { formatReplyHead } from '../../shared/net/http1_head.ts';

/** A reply's head, and the bytes it is sent as. */
interface ReceivedHead {
  readonly head: ReplyHead;
  readonly raw: Buffer;
}

/** A connector's reply without the headers that it withholds (design section 5); the same bytes when it has none of them. */
export function sanitised({ head, raw }: ReceivedHead): ReceivedHead {
  if (!head.fields.some(({ name }) => isWithheldHeader(name))) return { head, raw };
  const kept = { ...head, fields: head.fields.filter(({ name }) => !isWithheldHeader(name)) };
  return { head: kept, raw: Buffer.from(formatReplyHead(kept), 'latin1') };
}

/** The same of a trailer section: lines, each with its CRLF. */
export function sanitisedTrailers(trailers: string): string {
  if (trailers === '') return '';
  const lines = trailers
    .split('\r\n')
    .filter((line) => !isWithheldHeader(line.split(':', 1)[0]?.trim().toLowerCase() ?? ''));
  return lines.join('\r\n');
}
