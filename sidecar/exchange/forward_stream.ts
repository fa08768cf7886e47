import { constants } from 'node:http2';

import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http1_framing.ts';
import type { ReplyHead, RequestHead } from '../../shared/net/http1_head.ts';
import { formatReplyHead } from '../../shared/net/http1_head.ts';
import { parseReplyFields } from '../../shared/net/http2_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { UpstreamStream, UpstreamStreams } from '../ports.ts';
import type { AttemptFailure, ForwardContext, Outgoing, OutgoingBody, Reply } from './outgoing.ts';
import { failClosedEarly, invalidReply, MOST_INTERIM_REPLIES } from './outgoing.ts';
import type { BodyEnd } from './stream_body.ts';
import { streamBody } from './stream_body.ts';

/** Sends a request on a stream of an HTTP/2 session and reads the head of its reply. A client that is gone ends the stream. */
export async function attemptStream(
  outgoing: Outgoing,
  session: UpstreamStreams,
  context: ForwardContext,
): Promise<Result<Reply, AttemptFailure>> {
  const { body, lane } = outgoing;
  const hasNone = body.kind === 'bytes' ? body.chunks.length === 0 : body.framing.kind === 'none';
  const upstream = open(session, outgoing.head, hasNone);
  if (upstream === null) {
    const ended = failClosedEarly('it takes no more requests on this connection');
    return err({ ...ended.error, isUntouched: true });
  }
  const requestBody = hasNone ? 'sent' : sendBody(context.client, upstream, body);
  endWithClient(context.client, upstream, requestBody);
  const reply = await readReply(upstream, outgoing, context);
  if (reply.ok) return ok({ ...reply.value, upstream, lane, requestBody });
  upstream.destroy();
  const end = await Promise.race([Promise.resolve(requestBody), Promise.resolve(null)]);
  return typeof end === 'object' && end !== null ? err({ stale: false, refusal: end }) : reply;
}

/** A client that leaves before it has everything ends its request upstream. */
function endWithClient(client: Connection | null, upstream: UpstreamStream, sent: BodyEnd | Promise<BodyEnd>): void {
  let isSent = sent === 'sent';
  if (sent instanceof Promise) void sent.then((end) => (isSent = end === 'sent'));
  client?.onClosed(() => {
    if (!isSent || !upstream.finished) upstream.destroy();
  });
}

function open(session: UpstreamStreams, head: RequestHead, isWhole: boolean): UpstreamStream | null {
  try {
    return session.open(head, isWhole);
  } catch (error) {
    if (error instanceof Error && 'code' in error && ENDED.has(String(error.code))) return null;
    throw error;
  }
}

/** The session has ended since it was taken. */
const ENDED: ReadonlySet<string> = new Set(['ERR_HTTP2_INVALID_SESSION', 'ERR_HTTP2_GOAWAY_SESSION']);

function sendBody(client: Connection | null, upstream: UpstreamStream, body: OutgoingBody): BodyEnd | Promise<BodyEnd> {
  if (body.kind === 'bytes') {
    for (const chunk of body.chunks) upstream.write(chunk);
    upstream.end();
    return 'sent';
  }
  if (client === null) throw new Error('a body is streamed from a client');
  return streamToEnd(client, upstream, body);
}

async function streamToEnd(
  client: Connection,
  upstream: UpstreamStream,
  { framing, transform }: Extract<OutgoingBody, { kind: 'stream' }>,
): Promise<BodyEnd> {
  const end = await streamBody(client, upstream, framing, transform);
  if (end === 'sent') upstream.end(client.trailers);
  return end;
}

type ReadReply = Pick<Reply, 'head' | 'raw' | 'framing'>;

async function readReply(
  upstream: UpstreamStream,
  { head: { method }, credential, body }: Outgoing,
  context: ForwardContext,
): Promise<Result<ReadReply, AttemptFailure>> {
  for (let interim = 0; interim <= MOST_INTERIM_REPLIES; interim += 1) {
    const received = await upstream.nextHead();
    if (received === null) {
      const lost = failClosedEarly(`it reset the stream (${upstream.resetCode})`);
      const isUntouched =
        upstream.resetCode === REFUSED_STREAM && (body.kind === 'bytes' || body.framing.kind === 'none');
      return interim === 0 ? err({ ...lost.error, isUntouched }) : err({ ...lost.error, stale: false });
    }
    const head = parseReplyFields(received.list, context);
    if (!head.ok) return invalidReply(head.error.message);
    // Only the search for a credential reads the head as text.
    const raw = credential === null ? NO_BYTES : Buffer.from(formatReplyHead(head.value), 'latin1');
    if (head.value.status >= 200)
      return ok({ head: head.value, raw, framing: framingOf(head.value, method, received) });
    if (head.value.status === 101 || received.isLast) return invalidReply('it ends with an interim head');
    await context.onInterim?.(raw, head.value);
  }
  return invalidReply(`more than ${MOST_INTERIM_REPLIES} interim replies`);
}

const { NGHTTP2_REFUSED_STREAM: REFUSED_STREAM } = constants;
const NO_BYTES = Buffer.alloc(0);

/** A body ends with its stream. What an upstream sends where there can be no body belongs to no reply. */
function framingOf({ status }: ReplyHead, method: string, { isLast }: { readonly isLast: boolean }): BodyFraming {
  return isLast || method === 'HEAD' || status === 204 || status === 304 ? { kind: 'none' } : { kind: 'until-close' };
}
