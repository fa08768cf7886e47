import { startsFrame } from '../../shared/inject/scrub/web_socket_frame.ts';
import { WebSocketScrubber } from '../../shared/inject/scrub/web_socket_scrubber.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { splice } from '../../machine/connection/splice.ts';
import { CANCEL, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR } from '../../machine/connection/stream_connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import type { Reply } from '../exchange/outgoing.ts';
import { scrubHead, scrubHeadBytes } from '../exchange/scrub_head.ts';
import type { BodyEnd } from '../exchange/stream_body.ts';
import type { UpstreamStream } from '../ports.ts';
import type { ClientStream } from './client_stream.ts';
import type { OnMasked } from './relay.ts';
import { relayMasked } from './relay_scrubbed.ts';
import { BrokenReply, ReplyBody } from './reply_body.ts';
import { withMeter } from './with_meter.ts';

/**
 * Relays an upstream's reply on a stream of HTTP/2: exactly on passthrough, scrubbed on a credentialed path. A reply that is cut
 * off is cut off for the client too, with the upstream's code.
 */
export async function relayStream(client: ClientStream, outcome: Replied, onMasked: OnMasked): Promise<void> {
  const { reply, scrub } = outcome;
  try {
    if (reply.webSocket !== undefined) return await relayWebSocket(client, reply.webSocket, outcome, onMasked);
    if (scrub === null) await relayExact(client, outcome);
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

async function relayExact(client: ClientStream, { reply, meter }: Replied): Promise<void> {
  client.writeHead(reply.head, null, reply.framing.kind === 'none');
  const body = new ReplyBody(reply.upstream, reply.framing);
  for (;;) {
    const piece = body.take() ?? (await body.nextPiece());
    if (piece === 'done') break;
    meter?.addAll(piece.data);
    if (!client.writeInTurn(piece.raw)) await client.waitForDrain();
  }
  client.end(body.trailers, reply.upstream.unindexedTrailers);
}

/** Copies bytes both ways, until both sides have ended or one is reset. A credentialed WebSocket is searched. */
async function relayWebSocket(
  client: ClientStream,
  upstream: UpstreamStream,
  { reply, scrub, meter = null }: Replied,
  onMasked: OnMasked,
): Promise<void> {
  const dropBoth = (code: number): void => {
    client.destroy(code);
    upstream.destroy(code);
  };
  const isSearched = scrub !== null && !scrub.isEmpty;
  const noteMasked = (): void => {
    if (onMasked() === 'paused') dropBoth(CANCEL);
  };
  const isMasked = isSearched && scrubHeadBytes(reply.head, reply.raw, scrub) !== reply.raw;
  client.writeHead(isMasked ? scrubHead(reply.head, scrub) : reply.head, null, false);
  if (isMasked) noteMasked();
  // A copy that waits for the upstream to read does not notice.
  client.onClosed(() => {
    if (!client.isWhole) upstream.destroy();
  });
  const search = isSearched ? new WebSocketScrubber(scrub, noteMasked) : undefined;
  const frames = search && new OnlyFrames(search, () => dropBoth(PROTOCOL_ERROR));
  const toClient = splice(upstream, client, withMeter(meter, frames));
  const upload = orLost(splice(client, upstream, withMeter(meter)), () => upstream.destroy(client.resetCode || CANCEL));
  await orLost(toClient, () => client.destroy(upstream.resetCode || CANCEL));
  // An upstream that has ended and then resets its stream takes nothing more.
  await Promise.race([upload, new Promise<void>((resolve) => upstream.onClosed(resolve))]);
  if (upstream.resetCode !== NO_ERROR) client.destroy(upstream.resetCode);
  await upstream.waitForFlush();
}

/**
 * Passes on to the search what starts as a frame (RFC 6455 section 5.2). An upstream that answers every request with a page does
 * so here too, with the same status, and the search of frames would not find the credential in it. No text starts as a frame.
 */
class OnlyFrames {
  readonly #search: WebSocketScrubber;
  readonly #onOther: () => void;
  #state: 'unread' | 'frames' | 'other' = 'unread';

  constructor(search: WebSocketScrubber, onOther: () => void) {
    this.#search = search;
    this.#onOther = onOther;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    const [first] = chunk;
    if (this.#state === 'unread' && first !== undefined) {
      this.#state = startsFrame(first) ? 'frames' : 'other';
      if (this.#state === 'other') this.#onOther();
    }
    return this.#state === 'frames' ? this.#search.push(chunk) : [];
  }

  flush(): Uint8Array[] {
    return this.#state === 'frames' ? this.#search.flush() : [];
  }
}

/** Copies one direction. If its source is lost, so is its sink. */
async function orLost(copied: Promise<void>, dropSink: () => void): Promise<void> {
  try {
    await copied;
  } catch (error) {
    dropSink();
    if (!(error instanceof ConnectionLost)) throw error;
  }
}

/** After an early reply the client may send the rest of its body, as long as the upstream takes it. */
function waitForUpload({ requestBody, upstream }: Reply): BodyEnd | Promise<BodyEnd> {
  if (requestBody === 'sent') return requestBody;
  const gone = new Promise<'upstream_gone'>((resolve) => upstream.onClosed(() => resolve('upstream_gone')));
  return Promise.race([requestBody, gone]);
}
