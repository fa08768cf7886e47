import { connectionTokens } from '../../shared/net/http1_head.ts';
import type { Connection } from '../connection/connection.ts';
import { ConnectionLost } from '../connection/connection.ts';
import { splice } from '../connection/splice.ts';
import type { Reply } from '../exchange/forward.ts';
import { followClient } from '../exchange/forward.ts';
import type { Replied } from '../exchange/outcome.ts';
import type { UpstreamLanes } from '../ports.ts';
import { BrokenReply, ReplyBody } from './reply_body.ts';
import { relayScrubbed } from './relay_scrubbed.ts';
import { WebSocketScrubber } from '../../shared/inject/scrub/web_socket_scrubber.ts';

/**
 * Relays an upstream's reply to the client: exactly on passthrough, scrubbed of the credential where one was added.
 * True when both connections are ready for another exchange. A reply that breaks off breaks off for the client too.
 */
export async function relay(client: Connection, outcome: Replied, lanes: UpstreamLanes): Promise<boolean> {
  const { reply } = outcome;
  const stopWatching = followClient(client, reply.upstream);
  try {
    if (reply.head.status === 101) return await relayUpgrade(client, outcome);
    if (outcome.scrub === null || outcome.scrub.isEmpty) await relayExact(client, reply);
    else await relayScrubbed(client, outcome, outcome.scrub);
  } catch (error) {
    if (!(error instanceof ConnectionLost) && !(error instanceof BrokenReply)) throw error;
    client.destroy();
    reply.upstream.destroy();
    return false;
  } finally {
    stopWatching();
  }
  return finish(outcome, lanes);
}

/** After a whole reply: waits for the rest of the request's body, and keeps what may be kept. */
async function finish({ reply, staysOpen }: Replied, lanes: UpstreamLanes): Promise<boolean> {
  const upstreamStays = isPersistent(reply);
  if (!upstreamStays) reply.upstream.destroy();
  const bodyEnd = upstreamStays ? await reply.requestBody : 'upstream_gone';
  if (upstreamStays && bodyEnd === 'sent') lanes.give(reply.lane, reply.upstream);
  else reply.upstream.destroy();
  return staysOpen && upstreamStays && bodyEnd === 'sent';
}

/** Whether the connection outlives this reply (RFC 9112 section 9.3). */
function isPersistent({ head, framing }: Reply): boolean {
  if (framing.kind === 'until-close') return false;
  const tokens = connectionTokens(head.fields);
  return head.version === '1.1' ? !tokens.has('close') : tokens.has('keep-alive');
}

async function relayExact(client: Connection, reply: Reply): Promise<void> {
  client.cork();
  client.write(reply.raw);
  const body = new ReplyBody(reply.upstream, reply.framing);
  try {
    for (let ready = body.take(); ready !== 'done'; ready = body.take()) {
      const piece = ready ?? (await body.afterUncorking(client));
      if (piece === 'done') break;
      if (!client.write(piece.raw)) {
        client.uncork();
        await client.drained();
        client.cork();
      }
    }
  } finally {
    client.uncork();
  }
}

/** A switched protocol: bytes both ways until either side ends. A credentialed WebSocket's messages are scrubbed. */
async function relayUpgrade(client: Connection, { reply, scrub }: Replied): Promise<false> {
  client.write(reply.raw);
  const scrubber = scrub === null || scrub.isEmpty ? undefined : new WebSocketScrubber(scrub);
  const both = await Promise.allSettled([splice(client, reply.upstream), splice(reply.upstream, client, scrubber)]);
  client.destroy();
  reply.upstream.destroy();
  for (const one of both) {
    if (one.status === 'rejected' && !(one.reason instanceof ConnectionLost)) throw one.reason;
  }
  return false;
}
