import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { maskMatches } from '../../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../../shared/inject/scrub/reply_format.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import type { Reply } from '../exchange/outgoing.ts';
import { scrubHeadBytes } from '../exchange/scrub_head.ts';
import { contentDecoders } from './content_decoder.ts';

/** The bytes for one write, and whether something in them was masked. */
interface WholeReply {
  readonly bytes: Buffer;
  readonly masked: boolean;
}

/**
 * A small reply whose head and body arrived in one piece: it is sent in one write, masked if needed. Null for any other
 * reply; then nothing was taken from its connection.
 */
export function takeWholeReply(reply: Reply, scrub: ScrubPatterns | null): WholeReply | null {
  const { framing, raw, upstream, head } = reply;
  if (framing.kind !== 'length' && framing.kind !== 'none') return null;
  const bodyBytes = framing.kind === 'length' ? framing.length : 0;
  if (scrub !== null && bodyBytes > 0 && contentDecoders(head) !== null) return null;
  const body = bodyBytes === 0 ? undefined : upstream.take();
  if (body === null || (body === undefined && bodyBytes > 0)) return null;
  const whole = body === undefined ? raw : joinViews(raw, body, bodyBytes);
  if (whole !== null)
    return scrub === null || scrub.isEmpty ? { bytes: whole, masked: false } : maskReply(reply, whole, scrub);
  if (body !== undefined) upstream.putBack(body);
  return null;
}

/** Both as one view if they are adjacent in memory, as they are after one read; else null. */
function joinViews(head: Buffer, body: Buffer, bodyBytes: number): Buffer | null {
  const follows = body.buffer === head.buffer && body.byteOffset === head.byteOffset + head.length;
  if (!follows || body.length !== bodyBytes) return null;
  return Buffer.from(head.buffer, head.byteOffset, head.length + bodyBytes);
}

function maskReply({ head, raw }: Reply, whole: Buffer, scrub: ScrubPatterns): WholeReply {
  const sent = scrubHeadBytes(head, raw, scrub);
  const body = whole.subarray(raw.length);
  const { isText } = replyFormatOf(fieldValues(head.fields, 'content-type')[0] ?? '');
  const matches = scrub.find(body, isText);
  if (sent === raw && matches.length === 0) return { bytes: whole, masked: false };
  const bytes = Buffer.concat([sent, body]);
  maskMatches(bytes.subarray(sent.length), matches);
  return { bytes, masked: true };
}
