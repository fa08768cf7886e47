import type { ServerHttp2Stream, ServerSessionOptions } from 'node:http2';
import { constants, performServerHandshake, sensitiveHeaders } from 'node:http2';
import type { TLSSocket } from 'node:tls';

import { grpcRefusal, grpcType } from '../../shared/net/http/grpc_reply.ts';
import type { FieldList } from '../../shared/net/http/http2_head.ts';
import { fieldOf } from '../../shared/net/http/http2_head.ts';
import { refusal, REFUSALS } from '../../shared/model/refusal.ts';
import type { Limits } from '../../shared/model/limits.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import type { MarkedHeaders } from '../../machine/connection/stream_connection.ts';
import {
  HEAD_MARGIN,
  MOST_STREAMS,
  openConnectionWindow,
  UPLOAD_WINDOW_BYTES,
} from '../../machine/connection/stream_limits.ts';
import type { StreamRequest } from '../exchange/incoming.ts';
import type { Outcome } from '../exchange/outcome.ts';
import { ClientStream } from './client_stream.ts';
import { UnsentAllowance } from './discard_unsent.ts';
import { IdleTimer } from './idle_timer.ts';
import { relayStream } from './relay_stream.ts';
import type { ServedTunnel } from './serve.ts';
import { decide, exchangeTunnelOf, noteMasked, recordOutcome, refuseUnread, watchRevocation } from './serve.ts';
import type { TunnelPorts } from './tunnel_ports.ts';
import { answerBody, refusalBody, refusalFields } from './write_refusal.ts';

/**
 * Serves the requests of one tunnel over HTTP/2, each on its own stream. Each is read, exchanged, recorded and answered here,
 * with the functions of {@link serve}. Ends when either side ends and every exchange is recorded.
 */
export async function serveStreams(socket: TLSSocket, tunnel: ServedTunnel, ports: TunnelPorts): Promise<void> {
  const { limits } = ports.exchange;
  // A session has no half of its connection left to use.
  socket.allowHalfOpen = false;
  const session = performServerHandshake(socket, sessionOptions(limits));
  const closed = new Promise<void>((resolve) => session.once('close', resolve));
  const running = new Set<Promise<void>>();
  const unsent = new UnsentAllowance();
  const failures: unknown[] = [];
  let lingering: NodeJS.Timeout | undefined;
  const idle = new IdleTimer(() => {
    tunnel.lanes.close();
    session.close();
    // A client that does not read, or does not close, frees it too.
    lingering = setTimeout(() => socket.destroy(), LINGER_MS);
  }, limits.idleTunnelSeconds);
  idle.start();
  openConnectionWindow(session);
  // Only then, because a client that may not ask opens a connection of HTTP/1.1 for its WebSockets (RFC 8441 section 3).
  tunnel.lanes.onWebSockets(() => {
    if (!session.closed && !session.destroyed) session.settings({ enableConnectProtocol: true });
  });
  // Its streams are lost with it, which is what their exchanges see.
  session.on('error', () => undefined);
  session.on('stream', (stream: ServerHttp2Stream, headers: MarkedHeaders, flags: number, fields: FieldList) => {
    // Streams that were reset count until their exchange ends, so that resets are no way to more work.
    if (running.size >= MOST_STREAMS * 2) {
      stream.on('error', () => undefined);
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return session.destroy();
    }
    idle.stop();
    tunnel.onRequest?.();
    const request = { fields, neverIndexed: headers[sensitiveHeaders] ?? [], isWhole: (flags & END_STREAM) !== 0 };
    // One request is the tunnel's own, which the session counts already.
    const leave = running.size === 0 ? undefined : tunnel.openRequest?.();
    const served = serveStream(new ClientStream(stream, unsent), request, leave !== null, tunnel, ports)
      .catch((error: unknown) => {
        failures.push(error);
        session.destroy();
      })
      .finally(() => {
        leave?.();
        running.delete(served);
        if (running.size === 0) idle.start();
      });
    running.add(served);
  });
  await closed;
  idle.dispose();
  clearTimeout(lingering);
  tunnel.lanes.close();
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
}

const END_STREAM = 1;
/** How long an idle client may take to close. */
const LINGER_MS = 2000;

function sessionOptions({ maxHeadBytes, maxHeaders }: Limits): ServerSessionOptions {
  const options: ServerSessionOptions & { readonly strictSingleValueFields: boolean } = {
    settings: {
      maxConcurrentStreams: MOST_STREAMS,
      initialWindowSize: UPLOAD_WINDOW_BYTES,
      maxHeaderListSize: maxHeadBytes * HEAD_MARGIN,
    },
    maxHeaderListPairs: maxHeaders * HEAD_MARGIN,
    maxSendHeaderBlockLength: maxHeadBytes * HEAD_MARGIN,
    strictSingleValueFields: false,
  };
  return options;
}

async function serveStream(
  client: ClientStream,
  request: StreamRequest,
  isWithinLimit: boolean,
  tunnel: ServedTunnel,
  ports: TunnelPorts,
): Promise<void> {
  const context = exchangeTunnelOf(tunnel, ports, client, (_raw, head) => client.writeInterim(head));
  try {
    const outcome = isWithinLimit ? await decide(request, context, tunnel, ports) : refuseUnread(TOO_MANY, tunnel);
    await recordOutcome(outcome, tunnel, ports);
    const unwatch = watchRevocation(outcome, ports, () => {
      client.destroy();
      // At once: a client that does not read keeps its own stream from closing.
      if (outcome.kind === 'replied') outcome.reply.upstream.destroy();
    });
    try {
      if (outcome.kind === 'refused') writeRefusal(client, outcome, request);
      else await answer(client, outcome, tunnel, ports);
    } finally {
      unwatch?.();
    }
    if (outcome.kind !== 'replied') await client.discardRest();
    await client.finish();
  } catch (error) {
    client.destroy();
    if (!(error instanceof ConnectionLost)) throw error;
  }
}

const TOO_MANY = refusal('too_many_tunnels', 'this session has reached its limit of open tunnels and requests');

/** Answers with a refusal: as JSON, or to a call of gRPC as its status. */
function writeRefusal(
  client: ClientStream,
  { refusal: why, facts }: Extract<Outcome, { kind: 'refused' }>,
  { fields }: StreamRequest,
): void {
  const called = grpcType(fieldOf(fields, 'content-type'));
  if (called !== null) return client.respond(grpcRefusal(called, why), true);
  const { status } = REFUSALS[why.reason];
  const more = refusalFields(why).flatMap(([name, value]) => [name.toLowerCase(), value]);
  write(client, status, answerBody({ type: 'json', body: refusalBody(why) }), facts.method !== 'HEAD', more);
}

/** Writes any other outcome to the client. */
async function answer(
  client: ClientStream,
  outcome: Exclude<Outcome, { kind: 'refused' }>,
  tunnel: ServedTunnel,
  ports: TunnelPorts,
): Promise<void> {
  if (outcome.kind === 'replied') {
    return relayStream(client, outcome, () => noteMasked(outcome.reply.lane, tunnel, ports));
  }
  if (outcome.kind === 'abandoned') return client.destroy();
  const { result } = outcome;
  write(client, result.kind === 'answered' ? 200 : result.status, answerBody(outcome), true);
}

function write(
  client: ClientStream,
  status: number,
  { contentType, bytes }: ReturnType<typeof answerBody>,
  withBody: boolean,
  fields: readonly string[] = [],
): void {
  const type = ['content-type', contentType, 'content-length', String(bytes.length)];
  client.respond([':status', String(status), ...type, ...fields], !withBody);
  if (!withBody) return;
  client.write(bytes);
  client.end();
}
