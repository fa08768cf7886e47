import { type ExchangeResult, tunnelledEvent } from '../../shared/audit/exchange_event.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { allowsHost } from '../../shared/resolve/admitted_host.ts';
import type { Connection, SocketConnection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { splice } from '../../machine/connection/splice.ts';
import type { LiveSession } from '../ports.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import { peekClientHello } from './agree_on_version.ts';
import { IdleTimer } from './idle_timer.ts';
import { checkReach, isLimited, isPublicOnly } from './sealed_reach.ts';
import type { TunnelPorts } from './tunnel_ports.ts';
import { closeAfterAnswer } from './close_after_answer.ts';

/** The reply to an accepted CONNECT. */
export const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';
/** A fatal alert `unrecognized_name` (RFC 8446 section 6): the client then reports that the name was refused. */
const UNRECOGNIZED_NAME = Uint8Array.of(21, 3, 3, 0, 2, 2, 112);

type ReachPorts = Pick<ExchangePorts, 'policy' | 'credentials'>;

/**
 * Whether a tunnel to the host is carried without being intercepted (decision 0074). A step, whose every request is recorded,
 * and a sealed session that does not name the host are refused instead: what is carried there could not be limited. Without a
 * usable policy nothing is carried.
 */
export function checkCarried(session: LiveSession, host: string, { policy }: ReachPorts): Result<boolean, Refusal> {
  const current = policy.current();
  if (!current.ok || !current.value.isTunnelled(host) || isNeverCarried(session, host)) return ok(false);
  if (session.reach !== undefined) {
    const message = `${host} is on the list of hosts that are not intercepted (svc tunnel list), and a plan's step reaches none of these; remove it from the list, or from the plan`;
    return err(refusal('step_scope_host_denied', message));
  }
  if (!isLimited(session) && session.sealed !== true) return ok(true);
  const { allowed = null, named } = session;
  if (named?.has(host) === true || (allowed !== null && allowsHost(allowed, host))) return ok(true);
  const message = `${host} is on the list of hosts that are not intercepted (svc tunnel list), and a sealed session reaches these only if it names them; start it with --allow ${host}`;
  return err(refusal('egress_host_not_allowed', message));
}

/** A self-test is answered here, and so is a login: its tokens and its account are read from its provider's replies. */
function isNeverCarried({ selfTest = false, login = null }: LiveSession, host: string): boolean {
  return selfTest || login?.host === host || login?.account?.host === host;
}

/** Connects to the host, before the client is told that its tunnel is open. Stops if the client leaves. */
export async function dialCarried(
  client: Connection,
  session: LiveSession,
  host: string,
  ports: TunnelPorts,
): Promise<Result<Connection, Refusal>> {
  if (ports.exchange.audit.exhausted) return err(auditUnavailable());
  const dialling = ports.dialTcp(host, isPublicOnly(session, host, ports.exchange));
  const stopWatching = client.onClosed(dialling.cancel);
  const connected = await dialling.connected;
  stopWatching();
  return connected;
}

/**
 * Carries bytes between a client and the host that it asked for, as long as the policy says so. The client's handshake must
 * name that host: a server of many hosts answers for the name in the handshake. Nothing goes up before that is checked and
 * the tunnel is recorded. Returns what else is to be recorded: of a client that does not keep to it, or leaves before.
 */
export async function carryBytes(
  client: SocketConnection,
  upstream: Connection,
  { session, host, onServed }: { session: LiveSession; host: string; onServed: () => void },
  ports: TunnelPorts,
): Promise<ExchangeResult | null> {
  const { limits } = ports.exchange;
  const dropBoth = (): void => {
    client.destroy();
    upstream.destroy();
  };
  const stopWatching = watchCarried(session, host, ports.exchange, dropBoth);
  const idle = new IdleTimer(dropBoth, limits.idleTunnelSeconds);
  const bytes = { sent: 0, received: 0 };
  let isRecorded = false;
  try {
    client.write(ESTABLISHED);
    const refused = await checkHello(client, host, limits.connectTimeoutSeconds);
    if (refused !== null) return refused;
    // A client may say its hello long after it was let in, and an event that does not fit would be lost.
    if (ports.exchange.audit.exhausted) return { kind: 'refused', reason: auditUnavailable().reason };
    onServed();
    isRecorded = true;
    await ports.audit.recordInTurn(tunnelledEvent(session.id, host, null));
    const count = (way: keyof typeof bytes) => ({
      push: (chunk: Uint8Array) => {
        bytes[way] += chunk.length;
        idle.start();
        return [chunk];
      },
      flush: () => [],
    });
    idle.start();
    await Promise.all([splice(client, upstream, count('sent')), splice(upstream, client, count('received'))]);
    await Promise.all([client.waitForFlush(), upstream.waitForFlush()]);
    return null;
  } catch (error) {
    // One side is lost, so the other has nobody to talk to.
    if (!(error instanceof ConnectionLost)) throw error;
    return null;
  } finally {
    idle.dispose();
    stopWatching();
    dropBoth();
    if (isRecorded) ports.audit.record(tunnelledEvent(session.id, host, bytes));
  }
}

function auditUnavailable(): Refusal {
  return refusal('audit_unavailable', 'the audit log is full, so nothing is carried');
}

/** Calls `close` when the tunnel may no longer be carried: a binding or a connector has the host, or it left a list. */
function watchCarried(session: LiveSession, host: string, ports: ReachPorts, close: () => void): () => void {
  const look = (): void => {
    const carried = checkCarried(session, host, ports);
    if (!carried.ok || !carried.value || !checkReach(session, host, ports).ok) close();
  };
  const stop = ports.policy.onChanged(look);
  look();
  return stop;
}

/** The name in the client's handshake must be the host. After the reply to its CONNECT, a client can be told so only in TLS. */
async function checkHello(
  client: SocketConnection,
  host: string,
  timeoutSeconds: number,
): Promise<ExchangeResult | null> {
  const hello = await peekClientHello(client, timeoutSeconds);
  if (client.closed || client.stream.destroyed) return { kind: 'unanswered', reason: 'client_tls_failed' };
  if (hello?.serverName?.toLowerCase() === host) return null;
  if (hello !== null) client.write(UNRECOGNIZED_NAME);
  await closeAfterAnswer(client);
  return { kind: 'refused', reason: hello === null ? 'invalid_request' : 'authority_mismatch' };
}
