import { connectionTokens } from '../../shared/net/http/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { splice } from '../../machine/connection/splice.ts';
import type { Reply } from '../exchange/outgoing.ts';
import type { Replied } from '../exchange/outcome.ts';
import type { ByteMeter } from '../exchange/request_counts.ts';
import { scrubHeadBytes } from '../exchange/scrub_head.ts';
import type { UpstreamLanes } from '../ports.ts';
import { BrokenReply, ReplyBody } from './reply_body.ts';
import { relayScrubbed } from './relay_scrubbed.ts';
import { takeWholeReply } from './whole_reply.ts';
import { withMeter } from './with_meter.ts';
import { WebSocketScrubber } from '../../shared/inject/scrub/web_socket_scrubber.ts';

/** Called for each reply or WebSocket message in which something was masked. */
export type OnMasked = () => 'counted' | 'paused';

/**
 * Relays an upstream's reply to the client: exactly on passthrough, scrubbed on a credentialed path. Waits for the rest of
 * the request's body, and returns true if both connections are ready for another exchange. A truncated reply is truncated
 * for the client too.
 */
export async function relay(
  client: Connection,
  outcome: Replied,
  lanes: UpstreamLanes,
  onMasked: OnMasked,
): Promise<boolean> {
  const { reply, scrub, meter = null } = outcome;
  try {
    if (reply.head.status === 101) return await relayUpgrade(client, outcome, onMasked);
    const whole = takeWholeReply(reply, scrub);
    let framed = true;
    if (whole !== null) {
      if (reply.framing.kind === 'length') meter?.add(reply.framing.length);
      client.write(whole.bytes);
      if (whole.masked) onMasked();
    } else if (scrub === null || (scrub.isEmpty && reply.framing.kind !== 'chunked'))
      await relayExact(client, reply, meter);
    else framed = await relayScrubbed(client, outcome, scrub, onMasked);
    const reusable = isPersistent(reply) && (reply.requestBody === 'sent' || (await reply.requestBody) === 'sent');
    if (reusable) lanes.give(reply.lane, reply.upstream);
    else reply.upstream.destroy();
    return reusable && outcome.staysOpen && framed;
  } catch (error) {
    if (!(error instanceof ConnectionLost) && !(error instanceof BrokenReply)) throw error;
    client.sendGathered();
    client.destroy();
    reply.upstream.destroy();
    return false;
  } finally {
    client.onFinished(null);
  }
}

/** Whether the connection outlives this reply (RFC 9112 section 9.3). */
function isPersistent({ head, framing }: Reply): boolean {
  if (framing.kind === 'until-close') return false;
  const tokens = connectionTokens(head.fields);
  return head.version === '1.1' ? !tokens.has('close') : tokens.has('keep-alive');
}

async function relayExact(client: Connection, reply: Reply, meter: ByteMeter | null): Promise<void> {
  client.writeInTurn(reply.raw);
  const body = new ReplyBody(reply.upstream, reply.framing);
  for (;;) {
    const piece = body.take() ?? (await body.nextPiece());
    if (piece === 'done') return;
    meter?.addAll(piece.data);
    if (!client.writeInTurn(piece.raw)) await client.waitForDrain();
  }
}

/** Copies bytes both ways after a protocol switch, until both sides have ended or one is lost. A credentialed WebSocket is scrubbed. */
async function relayUpgrade(
  client: Connection,
  { reply, scrub, meter = null }: Replied,
  onMasked: OnMasked,
): Promise<false> {
  const { upstream } = reply;
  const bodyEnd = await reply.requestBody;
  client.onFinished(null);
  const dropBoth = (): void => {
    client.destroy();
    upstream.destroy();
  };
  if (bodyEnd === 'sent') {
    const scrubbed = scrub !== null && !scrub.isEmpty;
    const noteMasked = (): void => {
      if (onMasked() === 'paused') dropBoth();
    };
    const head = scrubbed ? scrubHeadBytes(reply.head, reply.raw, scrub) : reply.raw;
    client.write(head);
    if (head !== reply.raw) noteMasked();
    const search = scrubbed ? new WebSocketScrubber(scrub, noteMasked) : undefined;
    const toClient = splice(upstream, client, withMeter(meter, search));
    await Promise.all([orLost(splice(client, upstream, withMeter(meter)), dropBoth), orLost(toClient, dropBoth)]);
    await Promise.all([client.waitForFlush(), upstream.waitForFlush()]);
  }
  dropBoth();
  return false;
}

/** Copies one direction. If its connection is lost, the other direction ends too. */
async function orLost(copied: Promise<void>, dropBoth: () => void): Promise<void> {
  try {
    await copied;
  } catch (error) {
    dropBoth();
    if (!(error instanceof ConnectionLost)) throw error;
  }
}
