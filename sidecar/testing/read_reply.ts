import type { Connection } from '../../machine/connection/connection.ts';
import { readHead } from '../../machine/connection/read_head.ts';
import { replyFraming } from '../../shared/net/http/http1_framing.ts';
import { parseReplyHead } from '../../shared/net/http/http1_head.ts';
import type { Reply } from '../exchange/outgoing.ts';

/** The head of the reply to a GET that arrives on the connection, as the forwarder reads it. */
export async function readReply(upstream: Connection): Promise<Reply> {
  const read = await readHead(upstream, 10_000);
  if (read.kind !== 'head') throw new Error(read.kind);
  const head = parseReplyHead(read.bytes.toString('latin1'), { maxHeaders: 10 });
  if (!head.ok) throw new Error(head.error.message);
  const framing = replyFraming(head.value, 'GET');
  if (!framing.ok) throw new Error(framing.error.message);
  return { head: head.value, raw: read.bytes, framing: framing.value, upstream, lane: '', requestBody: 'sent' };
}
