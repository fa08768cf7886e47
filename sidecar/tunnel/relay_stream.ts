import { ConnectionLost } from '../../machine/connection/connection.ts';
import { INTERNAL_ERROR } from '../../machine/connection/stream_connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import type { Reply } from '../exchange/outgoing.ts';
import type { BodyEnd } from '../exchange/stream_body.ts';
import type { ClientStream } from './client_stream.ts';
import type { OnMasked } from './relay.ts';
import { relayMasked } from './relay_scrubbed.ts';
import { BrokenReply, ReplyBody } from './reply_body.ts';

/**
 * Relays an upstream's reply on a stream of HTTP/2: exactly on passthrough, scrubbed on a credentialed path. A reply that is cut
 * off is cut off for the client too, with the upstream's code.
 */
export async function relayStream(client: ClientStream, outcome: Replied, onMasked: OnMasked): Promise<void> {
  const { reply, scrub } = outcome;
  try {
    if (scrub === null) await relayExact(client, reply);
    else await relayMasked(client, outcome, scrub, onMasked);
    const upload = await waitForUpload(reply);
    if (upload !== 'sent' || !reply.upstream.finished) reply.upstream.destroy();
  } catch (error) {
    if (!(error instanceof ConnectionLost) && !(error instanceof BrokenReply)) throw error;
    // Servers on Node end a whole reply with a reset without an error if its window is full. The client gets what they sent.
    await client.flush();
    client.destroy(error instanceof BrokenReply ? INTERNAL_ERROR : reply.upstream.resetCode);
    reply.upstream.destroy();
  }
}

async function relayExact(client: ClientStream, reply: Reply): Promise<void> {
  client.writeHead(reply.head, null, reply.framing.kind === 'none');
  const body = new ReplyBody(reply.upstream, reply.framing);
  for (;;) {
    const piece = body.take() ?? (await body.nextPiece());
    if (piece === 'done') break;
    if (!client.writeInTurn(piece.raw)) await client.waitForDrain();
  }
  client.end(body.trailers, reply.upstream.unindexedTrailers);
}

/** After an early reply the client may send the rest of its body, as long as the upstream takes it. */
function waitForUpload({ requestBody, upstream }: Reply): BodyEnd | Promise<BodyEnd> {
  if (requestBody === 'sent') return requestBody;
  const gone = new Promise<'upstream_gone'>((resolve) => upstream.onClosed(() => resolve('upstream_gone')));
  return Promise.race([requestBody, gone]);
}
