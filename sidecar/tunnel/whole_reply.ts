import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import type { Reply } from '../exchange/forward.ts';
import { contentDecoders } from './content_decoder.ts';

/**
 * A small reply that arrived in one piece, head and body, and holds nothing to mask: it leaves as it came, in one write.
 * Null for every other, and then nothing was taken from its connection.
 */
export function wholeReply(reply: Reply, scrub: ScrubPatterns | null): Buffer | null {
  const { framing, raw, upstream, head } = reply;
  if (framing.kind !== 'length' && framing.kind !== 'none') return null;
  const bodyBytes = framing.kind === 'length' ? framing.length : 0;
  if (scrub !== null && bodyBytes > 0 && contentDecoders(head) !== null) return null;
  const body = bodyBytes === 0 ? undefined : upstream.take();
  if (body === null || (body === undefined && bodyBytes > 0)) return null;
  const whole = body === undefined ? raw : joined(raw, body, bodyBytes);
  if (whole !== null && (scrub === null || scrub.isEmpty || scrub.find(whole).matches.length === 0)) return whole;
  if (body !== undefined) upstream.unread(body);
  return null;
}

/** The two as one view when they lie beside each other, as they do when one read gave both; null otherwise. */
function joined(head: Buffer, body: Buffer, bodyBytes: number): Buffer | null {
  const follows = body.buffer === head.buffer && body.byteOffset === head.byteOffset + head.length;
  if (!follows || body.length !== bodyBytes) return null;
  return Buffer.from(head.buffer, head.byteOffset, head.length + bodyBytes);
}
