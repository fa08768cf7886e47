import type { ExchangeResult } from '../../shared/audit/exchange_event.ts';
import { exchangeEvent } from '../../shared/audit/exchange_event.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { ProxySource } from '../../shared/model/audit_event.ts';
import { skipEmptyLine } from '../../shared/net/http/http1_head.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { readRequestHead } from '../../machine/connection/read_head.ts';
import { exchange } from '../exchange/exchange.ts';
import type { ExchangeTunnel } from '../exchange/exchange_ports.ts';
import { pauseEvent } from '../exchange/masked_replies.ts';
import type { StreamRequest } from '../exchange/incoming.ts';
import type { Outcome } from '../exchange/outcome.ts';
import type { SessionLogin, UpstreamLanes } from '../ports.ts';
import { closeAfterAnswer } from './close_after_answer.ts';
import { writeRefusal, writeText } from './write_refusal.ts';
import { IdleTimer } from './idle_timer.ts';
import { relay } from './relay.ts';
import type { TunnelPorts } from './tunnel_ports.ts';

/** A tunnel whose TLS is terminated. */
export interface ServedTunnel {
  readonly sessionId: string;
  /** The plan step of the scope that opened it. */
  readonly stepId?: string | undefined;
  readonly host: string;
  readonly sni: string | null;
  /** See {@link ExchangeTunnel.limited}. */
  readonly limited?: boolean;
  /** See {@link ExchangeTunnel.plain}. */
  readonly plain?: boolean;
  /** Whether a request belongs to another tunnel. Absent: every request is of this one. */
  readonly isAnothers?: (head: Buffer) => boolean;
  readonly login?: SessionLogin | null;
  /** See {@link ExchangeTunnel.choice}. */
  readonly choice?: AccountChoice | null;
  /** See {@link ExchangeTunnel.credentialsId}. */
  readonly credentialsId?: string;
  readonly lanes: UpstreamLanes & { close(): void };
  /** Called when a request's head was read. */
  readonly onRequest?: () => void;
  /** Counts a request beside the tunnel's first until the returned function is called; null at the session's limit. */
  readonly openRequest?: () => (() => void) | null;
}

/** What an exchange of the tunnel sees of it; `client` is the connection or the stream of its request. */
export function exchangeTunnelOf(
  tunnel: ServedTunnel,
  ports: TunnelPorts,
  client: Connection,
  sendInterim: ExchangeTunnel['sendInterim'],
): ExchangeTunnel {
  return {
    sessionId: tunnel.sessionId,
    host: tunnel.host,
    sni: tunnel.sni,
    limited: tunnel.limited === true,
    plain: tunnel.plain === true,
    login: tunnel.login ?? null,
    choice: tunnel.choice ?? null,
    credentialsId: tunnel.credentialsId ?? tunnel.sessionId,
    client,
    lanes: tunnel.lanes,
    sendInterim,
    noteMasked: (lane) => noteMasked(lane, tunnel, ports),
  };
}

/**
 * Serves the requests of one tunnel in order. Each is read, exchanged, recorded and answered here and nowhere else, so that
 * every outcome has its audit event. Ends when either side ends; resolves with true if a request that belongs to another tunnel
 * was put back instead.
 */
export async function serve(client: Connection, tunnel: ServedTunnel, ports: TunnelPorts): Promise<boolean> {
  const idle = new IdleTimer(() => client.destroy(), ports.exchange.limits.idleTunnelSeconds);
  const context = exchangeTunnelOf(tunnel, ports, client, (raw) => {
    client.write(raw);
    return client.waitForDrain();
  });
  let another = false;
  const stopWatching = client.onClosed(() => tunnel.lanes.close());
  try {
    for (let open = true; open;) {
      idle.start();
      const read = await readRequestHead(client, ports.exchange.limits.maxHeadBytes);
      idle.stop();
      if (read.kind === 'end' || read.kind === 'lost') break;
      if (read.kind === 'head' && tunnel.isAnothers?.(read.bytes) === true) {
        client.putBack(read.bytes.subarray(skipEmptyLine(read.bytes, 0)));
        another = true;
        break;
      }
      tunnel.onRequest?.();
      const outcome =
        read.kind === 'head'
          ? await decide(read.bytes, context, tunnel, ports)
          : refuseUnread(UNREADABLE[read.kind], tunnel);
      await recordOutcome(outcome, tunnel, ports);
      const unwatch = watchRevocation(outcome, ports, () => {
        client.destroy();
        tunnel.lanes.close();
      });
      try {
        open = await answer(client, outcome, tunnel, ports);
      } finally {
        unwatch?.();
      }
      // Waits until the client reads: unread answers to a client that only sends would pile up in memory.
      if (client.needsDrain) await client.waitForDrain();
      // Drop requests that were buffered before the client disconnected.
      if (client.closed) break;
    }
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  } finally {
    idle.dispose();
  }
  stopWatching();
  // What the client does from now on is nothing to an upstream connection that another tunnel may get.
  client.onFinished(null);
  tunnel.lanes.close();
  if (!another) await closeAfterAnswer(client);
  return another;
}

/** An exchange that fails through a bug may have sent its request, so it is recorded before the tunnel ends. */
export async function decide(
  request: Buffer | StreamRequest,
  context: ExchangeTunnel,
  { sessionId, stepId, host, plain }: ServedTunnel,
  ports: TunnelPorts,
): Promise<Outcome> {
  try {
    return await exchange(request, context, ports.exchange);
  } catch (error) {
    const facts = { source: sourceOf(plain), sessionId, stepId, host, method: null, path: null, binding: null };
    const event = exchangeEvent(facts, { kind: 'unanswered', reason: 'internal_error' });
    if (event !== null) ports.audit.record(event);
    throw error;
  }
}

/** The refusal of another protocol. */
export const NOT_HTTP = refusal(
  'invalid_request',
  'the first bytes are none of an HTTP request, and svc carries no other protocol here',
);

const UNREADABLE = {
  too_large: refusal('head_too_large', 'the request line and headers are larger than SVC_MAX_HEAD_BYTES allows'),
  truncated: refusal('invalid_request', 'the request head is truncated'),
  not_http: NOT_HTTP,
};

/** The outcome of a request whose head was not read. */
export function refuseUnread(why: Refusal, { host }: ServedTunnel): Outcome {
  return { kind: 'refused', facts: { host, method: null, path: null, binding: null }, refusal: why, staysOpen: false };
}

/** Resolves when the event is in the spool. No byte of the answer is sent before. */
export function recordOutcome(
  outcome: Outcome,
  { sessionId, stepId, plain }: ServedTunnel,
  ports: TunnelPorts,
): Promise<void> | undefined {
  const { host, method, path, binding, operation = null, connector = null, stray, certificate } = outcome.facts;
  const event = exchangeEvent(
    {
      source: sourceOf(plain),
      sessionId,
      stepId,
      host,
      method,
      path,
      binding,
      operation,
      connector,
      stray,
      certificate,
    },
    resultOf(outcome),
  );
  if (outcome.kind === 'refused') {
    ports.metrics.increment('svc_proxy_refusals_total', { reason: outcome.refusal.reason });
  } else if (outcome.kind === 'replied') {
    ports.metrics.increment('svc_proxy_requests_total', { mediation: outcome.mediation });
  }
  return event === null ? undefined : ports.audit.recordInTurn(event);
}

function sourceOf(plain: boolean | undefined): ProxySource | undefined {
  return plain === true ? 'transparent_plain_http' : undefined;
}

function resultOf(outcome: Outcome): ExchangeResult {
  if (outcome.kind === 'refused') return { kind: 'refused', reason: outcome.refusal.reason };
  if (outcome.kind === 'abandoned') return { kind: 'unanswered', reason: 'client_gone' };
  if (outcome.kind === 'replied_locally') return outcome.result;
  const { mediation, reply, withheldHeaders: heldBack } = outcome;
  return { kind: 'replied', mediation, status: reply.head.status, ...heldBack };
}

/**
 * A reply has no time limit: it can be an event stream or a WebSocket. A credentialed reply ends when its binding or
 * connector is changed or removed, or this sidecar is revoked.
 */
export function watchRevocation(
  outcome: Outcome,
  { exchange: { policy } }: TunnelPorts,
  close: () => void,
): (() => void) | null {
  const inForce = outcome.kind === 'replied' ? outcome.inForce : undefined;
  if (inForce === undefined) return null;
  const look = (): void => {
    if (inForce() !== null) close();
  };
  const unwatch = policy.onChanged(look);
  // The policy may have changed since the last check.
  look();
  return unwatch;
}

/** Writes the outcome to the client. True if the tunnel can serve another request. */
async function answer(
  client: Connection,
  outcome: Outcome,
  tunnel: ServedTunnel,
  ports: TunnelPorts,
): Promise<boolean> {
  if (outcome.kind === 'replied')
    return relay(client, outcome, tunnel.lanes, () => noteMasked(outcome.reply.lane, tunnel, ports));
  if (outcome.kind === 'abandoned') return false;
  if (outcome.kind === 'replied_locally') {
    const { result } = outcome;
    writeText(client, result.kind === 'answered' ? 200 : result.status, outcome, outcome.staysOpen);
    return outcome.staysOpen;
  }
  writeRefusal(client, outcome.refusal, outcome.staysOpen, outcome.facts.method !== 'HEAD');
  return outcome.staysOpen;
}

/** Counts a masked reply, and records the pause of its binding if it exceeds the limit. */
export function noteMasked(
  lane: string,
  { sessionId, host }: ServedTunnel,
  { exchange: { masked }, audit, metrics }: TunnelPorts,
): 'counted' | 'paused' {
  metrics.increment('svc_proxy_masked_replies_total');
  const counted = masked.count({ sessionId, binding: lane, host });
  if (counted === 'now_paused') audit.record(pauseEvent('paused', sessionId, host));
  return counted === 'counted' ? 'counted' : 'paused';
}
