import type { ExchangeResult } from '../../shared/audit/exchange_event.ts';
import { exchangeEvent } from '../../shared/audit/exchange_event.ts';
import { CERTIFICATE_REFUSED } from '../../shared/model/audit_event.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Admission } from '../../shared/net/connection_gate.ts';
import { parseTunnelHost } from '../../shared/net/tunnel_host.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import { HTTPS_PORT, nameOfHost, portOfHost } from '../../shared/net/host_port.ts';
import { parsePlainTarget } from '../../shared/net/plain_target.ts';
import type { Connection, SocketConnection } from '../../machine/connection/connection.ts';
import { readHead } from '../../machine/connection/read_head.ts';
import type { AgreedUpstream, LiveSession } from '../ports.ts';
import { canStartTls, HTTP_2 } from '../../shared/net/client_hello.ts';
import { agreeOnVersion } from './agree_on_version.ts';
import { enterTunnel } from './enter_tunnel.ts';
import { authenticate } from './authenticate.ts';
import { carryBytes, checkCarried, dialCarried, ESTABLISHED } from './carry_bytes.ts';
import { connectHost } from './connect_target.ts';
import { closeAfterAnswer } from './close_after_answer.ts';
import { writeJson, writeRefusal } from './write_refusal.ts';
import { servePlainHttp } from './plain_tunnel.ts';
import { checkPlainHttp, checkReach, isLimited, watchReach } from './sealed_reach.ts';
import { NOT_HTTP, serve } from './serve.ts';
import { serveStreams } from './serve_streams.ts';
import { type FailedTls, type TerminatedTls, terminateTls } from './terminate_tls.ts';
import type { TunnelPorts } from './tunnel_ports.ts';

/** An error, whose status every client prints; git would read a success as a repository. */
const SELF_TEST_STATUS = 403;
const SELF_TEST_ANSWER = JSON.stringify({ error: { code: 'self_test', message: 'the proxy of svc answers' } });

/** The request that a connection begins with. */
export interface FirstRequest {
  readonly head: RequestHead;
  readonly raw: Buffer;
}

/**
 * Serves one proxy request: authenticate -> target -> sealed reach -> agree on a version -> terminate TLS -> serve. A host that is
 * not to be intercepted is carried instead, from the reach on. Resolves with true if the same connection has another one (after a
 * 407, and after plain requests for another host), with false if it has ended.
 */
export async function tunnel(
  client: SocketConnection,
  { head, raw }: FirstRequest,
  admission: Admission,
  ports: TunnelPorts,
): Promise<boolean> {
  const session = authenticate(head.fields, ports.sessions);
  if (!session.ok) return refuse(client, head, { session: null, host: null }, session.error, ports);
  const plain = head.method === 'CONNECT' ? null : parsePlainTarget(head.target, head.method);
  if (plain !== null) return tunnelPlain(client, { head, raw }, { session: session.value, plain, admission }, ports);
  const host = connectHost(head);
  if (!host.ok) return refuse(client, head, { session: session.value, host: null }, host.error, ports);
  const attempted = { session: session.value, host: host.value };
  const reach = checkReach(session.value, host.value, ports.exchange);
  if (!reach.ok) session.value.mcpServer?.noteRefused(host.value);
  if (!reach.ok) return refuse(client, head, attempted, reach.error, ports);
  const carried = checkCarried(session.value, host.value, ports.exchange);
  if (!carried.ok) return refuse(client, head, attempted, carried.error, ports);
  if (carried.value) return carry(client, head, attempted, admission, ports);
  const opened = await open(session.value, host.value, client);
  if (!opened.ok) return refuse(client, head, attempted, opened.error, ports);
  admission.markAuthenticated(session.value.id);

  try {
    await establish(client, attempted, { ...opened.value, admission }, ports);
  } finally {
    opened.value.close();
  }
  return false;
}

/** A request over plain HTTP, and those that follow it for the same host. */
async function tunnelPlain(
  client: SocketConnection,
  { head, raw }: FirstRequest,
  { session, plain, admission }: PlainRequest,
  ports: TunnelPorts,
): Promise<boolean> {
  if (!plain.ok) {
    return refuse(client, head, { session, host: null }, refusal('invalid_request', plain.error.message), ports);
  }
  const { host } = plain.value;
  const allowed = checkPlainHttp(session, plain.value);
  if (!allowed.ok) return refuse(client, head, { session, host }, allowed.error, ports);
  admission.markAuthenticated(session.id);
  client.putBack(raw);
  const served = await servePlainHttp(client, { session, host, admission }, ports);
  return served.ok ? served.value : refuse(client, head, { session, host }, served.error, ports);
}

interface PlainRequest {
  readonly session: LiveSession;
  readonly plain: NonNullable<ReturnType<typeof parsePlainTarget>>;
  readonly admission: Admission;
}

/** Carries a tunnel to a host that is not intercepted. */
async function carry(
  client: SocketConnection,
  head: RequestHead,
  attempted: { readonly session: LiveSession; readonly host: string },
  admission: Admission,
  ports: TunnelPorts,
): Promise<boolean> {
  const { session, host } = attempted;
  const connections: Connection[] = [client];
  const leave = enterTunnel(session, connections);
  if (!leave.ok) return refuse(client, head, attempted, leave.error, ports);
  try {
    const upstream = await dialCarried(client, session, host, ports);
    if (!upstream.ok) return await refuse(client, head, attempted, upstream.error, ports);
    // A copy that waits for one side to read does not notice that the other has gone.
    connections.push(upstream.value);
    admission.markAuthenticated(session.id);
    const onServed = (): void => admission.markServed();
    const result = await carryBytes(client, upstream.value, { session, host, onServed }, ports);
    if (result !== null) record(ports, attempted, result);
  } finally {
    leave.value();
  }
  return false;
}

async function establish(
  client: SocketConnection,
  { session, host }: { session: LiveSession; host: string },
  { context, admission }: OpenTunnel & { readonly admission: Admission },
  ports: TunnelPorts,
): Promise<void> {
  client.write(ESTABLISHED);
  const { connectTimeoutSeconds } = ports.exchange.limits;
  const upstream = await agreeOnVersion(client, session, host, ports);
  let isAsked = false;
  const onRequest = (): void => {
    isAsked = true;
    admission.markServed();
  };
  const first = client.take() ?? null;
  if (first !== null) client.putBack(first);
  if (first !== null && !canStartTls(first) && session.selfTest !== true) {
    // Nothing was offered, so nothing was dialled. The client is told nothing, in a protocol that is unknown.
    record(ports, { session, host }, { kind: 'refused', reason: NOT_HTTP.reason });
    await closeAfterAnswer(client);
    return upstream.lanes.close();
  }
  // A client that has ended cannot finish its handshake, and its bytes cannot be put back.
  if (client.stream.readableEnded) client.destroy();
  try {
    const terminated = await terminateTls(client.release(), context, upstream.protocol, connectTimeoutSeconds);
    const tls = typeof terminated === 'string' ? null : terminated;
    if (session.selfTest === true) await answerSelfTest(tls?.connection() ?? null, ports);
    else if (tls === null) record(ports, { session, host }, unansweredOf(terminated, session, host, ports));
    else await serveTunnel(tls, upstream, { session, host, onRequest }, ports);
    // Every contact with an upstream is recorded, also one that no request followed.
    if (tls !== null && upstream.isDialled && !isAsked) {
      record(ports, { session, host }, { kind: 'unanswered', reason: 'client_gone' });
    }
  } finally {
    upstream.lanes.close();
  }
}

/**
 * Answers the probe of `svc doctor`, to which {@link checkReach} has limited the session: that the client can read the answer
 * shows that it uses the proxy and trusts the session's CA. Nothing is sent on and nothing was refused, so there is no event.
 */
async function answerSelfTest(connection: Connection | null, { exchange: { limits } }: TunnelPorts): Promise<void> {
  if (connection === null) return;
  const timer = setTimeout(() => connection.destroy(), limits.connectTimeoutSeconds * 1000);
  try {
    const read = await readHead(connection, limits.maxHeadBytes);
    if (read.kind !== 'head') return;
    writeJson(connection, SELF_TEST_STATUS, SELF_TEST_ANSWER, false);
    await closeAfterAnswer(connection);
  } finally {
    clearTimeout(timer);
    connection.destroy();
  }
}

interface OpenTunnel {
  readonly context: Awaited<ReturnType<LiveSession['ca']['secureContextFor']>>;
  close(): void;
}

async function open(session: LiveSession, host: string, client: Connection): Promise<Result<OpenTunnel, Refusal>> {
  const leave = enterTunnel(session, [client]);
  if (!leave.ok) return leave;
  try {
    return ok({ context: await session.ca.secureContextFor(nameOfHost(host)), close: leave.value });
  } catch {
    leave.value();
    return err(refusal('session_ca_unavailable', `the session's CA cannot issue a certificate for ${host}`));
  }
}

async function serveTunnel(
  { socket, connection, sni }: TerminatedTls,
  { protocol, lanes }: AgreedUpstream,
  { session, host, onRequest }: { session: LiveSession; host: string; onRequest: () => void },
  ports: TunnelPorts,
): Promise<void> {
  const unwatch = watchReach(session, host, ports.exchange, () => {
    socket.destroy();
    lanes.close();
  });
  // Another port is reached only at the hosts that something names, in every session.
  const limited = isLimited(session) || portOfHost(host) !== HTTPS_PORT;
  const openRequest = (): (() => void) | null => session.openTunnel(() => undefined);
  const of = {
    sessionId: session.id,
    stepId: session.reach?.stepId,
    host,
    limited,
    sni,
    onRequest,
    openRequest,
    lanes,
  };
  const credentialsId = session.credentialsId ?? session.id;
  const served = { ...of, login: session.login ?? null, choice: session.choice ?? null, credentialsId };
  try {
    await (protocol === HTTP_2 ? serveStreams(socket, served, ports) : serve(connection(), served, ports));
  } finally {
    unwatch();
    socket.destroy();
  }
}

/**
 * A client that refuses the certificate may have pinned its own, and a host without a binding, a connector or a client certificate
 * could be carried unread for it. The others must be intercepted, so their event does not suggest that.
 */
function unansweredOf(
  failed: TerminatedTls | FailedTls,
  session: LiveSession,
  host: string,
  { exchange: { policy } }: TunnelPorts,
): ExchangeResult {
  const current = policy.current();
  const isFree =
    current.ok &&
    current.value.bindingsFor(host).length === 0 &&
    !current.value.connectors.hosts.has(host) &&
    current.value.certificateFor(host) === null;
  const isRefused =
    failed === 'certificate_refused' && isFree && session.reach === undefined && parseTunnelHost(host).ok;
  return { kind: 'unanswered', reason: isRefused ? CERTIFICATE_REFUSED : 'client_tls_failed' };
}

interface Attempted {
  readonly session: LiveSession | null;
  readonly host: string | null;
}

async function refuse(
  client: Connection,
  head: RequestHead,
  attempted: Attempted,
  why: Refusal,
  ports: TunnelPorts,
): Promise<boolean> {
  record(ports, attempted, { kind: 'refused', reason: why.reason }, head.method);
  const mayRetry = why.reason === 'proxy_authentication_required' && head.method === 'CONNECT';
  writeRefusal(client, why, mayRetry);
  if (!mayRetry) await closeAfterAnswer(client);
  return mayRetry;
}

/** Refuses input that is not a readable request, and so has neither a session nor a host. */
export async function refuseUnread(client: Connection, why: Refusal, ports: TunnelPorts): Promise<void> {
  record(ports, { session: null, host: null }, { kind: 'refused', reason: why.reason });
  writeRefusal(client, why, false);
  await closeAfterAnswer(client);
}

function record(ports: TunnelPorts, attempted: Attempted, result: ExchangeResult, method: string | null = null): void {
  const { session, host } = attempted;
  const facts = {
    sessionId: session?.id ?? null,
    stepId: session?.reach?.stepId,
    host,
    method,
    path: null,
    binding: null,
  };
  const event = exchangeEvent(facts, result);
  if (event !== null && session === null) ports.strangers.record(event);
  else if (event !== null && session !== null) ports.refusals.record(session.id, event);
  if (result.kind === 'refused') ports.metrics.increment('svc_proxy_refusals_total', { reason: result.reason });
}
