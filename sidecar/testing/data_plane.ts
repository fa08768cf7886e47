import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import type {
  ClientHttp2Session,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
  ServerSessionOptions,
  Settings,
} from 'node:http2';
import { connect as connectHttp2, performServerHandshake, type sensitiveHeaders } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';

import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { Limits } from '../../shared/model/limits.ts';
import { nameOfHost, portOfHost } from '../../shared/net/host_port.ts';
import type { ConnectionGate } from '../../shared/net/connection_gate.ts';
import { listen } from '../../machine/connection/listen.ts';
import { createSocketGate } from '../../machine/connection/socket_gate.ts';
import { createOperationRunner, type OperationRunner } from '../connector/operation_runner.ts';
import { BodyBudget } from '../exchange/body.ts';
import { MaskedReplies } from '../exchange/masked_replies.ts';
import { RequestCounts } from '../exchange/request_counts.ts';
import { MaterialCache } from '../exchange/material.ts';
import { NodeSha256 } from '../exchange/node_sha256.ts';
import type { Log } from '../../machine/ports.ts';
import type { LiveSession } from '../ports.ts';
import { createAuthority, issueLeaf } from '../tls/certificates.ts';
import type { Authority } from '../tls/certificates.ts';
import { OpenTunnels } from '../session/open_tunnels.ts';
import { createSessionCa } from '../tls/session_ca.ts';
import { createListener } from '../tunnel/listener.ts';
import { SessionRefusals } from '../tunnel/session_refusals.ts';
import { StrangerRefusals } from '../tunnel/stranger_refusals.ts';
import type { TunnelPorts } from '../tunnel/tunnel_ports.ts';
import { createDialer, type DialerOptions } from '../upstream/dialer.ts';
import { TunnelLanes } from '../upstream/lanes.ts';
import { openUpstream } from '../upstream/open_upstream.ts';
import { WarmUpstreams } from '../upstream/warm_upstreams.ts';
import { CARRIED, createPlainDialer } from '../upstream/plain_dialer.ts';
import {
  FakeApprovalSource,
  FakeAuditSink,
  FakeClock,
  FakeCredentialSource,
  FakeMetrics,
  FakePolicySource,
} from './fakes.ts';
import { retell, StreamClient, StreamServer } from './http2_peers.ts';

/** How a raw upstream handles one connection; `reset` drops it with a TCP reset. */
export type UpstreamHandler = (socket: TLSSocket, reset: () => void) => void;

/** How an upstream handles one stream; `fields` are names and values in turn. */
export type StreamHandler = (
  stream: ServerHttp2Stream,
  fields: readonly string[],
  session: ServerHttp2Session,
  headers: StreamHeaders,
) => void;

/** Headers with the names that were sent as never indexed. */
type StreamHeaders = IncomingHttpHeaders & { readonly [sensitiveHeaders]?: readonly string[] };

interface SessionOptions {
  readonly servername?: string;
  readonly offered?: readonly string[];
  readonly settings?: Settings;
}

/** The version that the peers of a test speak; the test itself is written in HTTP/1.1 (see {@link StreamClient}). */
let version: 'http/1.1' | 'h2' = 'http/1.1';

/** Chooses the version of the data planes from now on. Files that run in one process share this module: see over_http2.test.ts. */
export function speak(chosen: typeof version): void {
  version = chosen;
}

/** True after {@link speak} of HTTP/2: for tests of what HTTP/2 does not have. */
export function isHttp2(): boolean {
  return version === 'h2';
}

/** Cases of what HTTP/2 does not have: none over HTTP/2. */
export function onlyInHttp1<T>(cases: readonly T[]): readonly T[] {
  return isHttp2() ? [] : cases;
}

/** A request or reply of HTTP/1.1 as the peers of the test tell it: unchanged, or over HTTP/2 as {@link retell} does. */
export function asTold(text: string): string {
  return isHttp2() ? retell(text) : text;
}

/** The data plane on loopback with fakes behind its ports and real TLS on both sides. */
export interface DataPlane {
  readonly port: number;
  readonly token: string;
  readonly session: LiveSession;
  /** Other tokens that the session has: those of step scopes. */
  readonly scopes: Map<string, LiveSession>;
  readonly caPem: string;
  /** The root of the upstreams' own certificates. */
  readonly upstreamCaPem: string;
  readonly policy: FakePolicySource;
  readonly credentials: FakeCredentialSource;
  /** By which id each request asked for its credential. */
  readonly credentialIds: (string | null)[];
  /** The limits of sessions by their ids. */
  readonly sessionLimits: Map<string, RequestLimits>;
  /** The bytes that were counted for a binding or a session with a limit of them. */
  bytesCounted(id: string): number;
  readonly approvals: FakeApprovalSource;
  readonly audit: FakeAuditSink;
  readonly metrics: FakeMetrics;
  /** Runs operations with the same ports; an upstream has one second for its reply. */
  readonly operations: OperationRunner;
  readonly errors: string[];
  readonly gate: ConnectionGate;
  readonly refusals: SessionRefusals;
  readonly warm: WarmUpstreams;
  /** Tells the listeners of {@link LiveSession.onTunnelsClosed}. */
  endSession(): Promise<void>;
  /** Bytes of request bodies held at the moment. */
  readonly budget: BodyBudget;
  /** Tunnels of the session that count as open. */
  readonly openTunnels: () => number;
  /** A new TLS upstream, with a certificate for `certified` (the host itself by default). */
  upstream(host: string, handler: UpstreamHandler, certified?: string): Promise<void>;
  /** A new TLS upstream that accepts only clients with the certificate `accepted`. */
  certifiedUpstream(
    host: string,
    handler: UpstreamHandler,
    accepted: string,
    onConnected: (socket: TLSSocket) => void,
    more?: TlsOptions,
  ): Promise<void>;
  /** A new upstream without TLS, for requests over plain HTTP. */
  plainUpstream(host: string, handler: (socket: Socket) => void): Promise<void>;
  /** A new TLS upstream that chooses HTTP/2, and whose frames are the handler's. */
  frameUpstream(host: string, handler: (socket: TLSSocket) => void): Promise<void>;
  /** A new TLS upstream over HTTP/2, and over HTTP/1.1 too if `versions` says so. */
  streamUpstream(
    host: string,
    handler: StreamHandler,
    versions?: readonly string[],
    settings?: Settings,
  ): Promise<void>;
  /** The clock of its exchanges. */
  readonly clock: FakeClock;
  /** Dials a host at a port of this machine. */
  pin(host: string, port: number): void;
  /** Delays the handshake of connections to an existing upstream until they are released. */
  hold(host: string): Promise<HeldDials>;
  /** Opens a tunnel and its TLS. `servername` defaults to the host, the token to the session's. */
  open(host: string, servername?: string, token?: string): Promise<TLSSocket>;
  /** The client that speaks over an open TLS connection. */
  clientOn(socket: TLSSocket, host: string): TLSSocket;
  /** Opens a tunnel and its TLS with a list of protocols. `early` is sent with the last packet of the handshake. */
  openTls(host: string, offered: readonly string[], servername?: string, early?: Buffer): Promise<TLSSocket>;
  /** Opens a tunnel and an HTTP/2 session in it. */
  openSession(host: string, options?: SessionOptions): Promise<ClientHttp2Session>;
  /** Sends raw bytes to the proxy port and reads until it closes, or until `enough` returns true. */
  raw(text: string, enough?: (got: string) => boolean): Promise<string>;
  stop(): Promise<void>;
}

/** Pending connections to an upstream. */
interface HeldDials {
  /** Resolves when the first one is pending. */
  readonly reached: Promise<void>;
  letThrough(): void;
  /** Of those let through: the upstream does not read, until it reads again. */
  stopReading(): void;
  readAgain(): void;
}

/** Made once for all data planes of a process, because certificates are most of what a plane costs. */
const upstreamAuthority = once(() => createAuthority('test upstreams', Date.now()));
const upstreamLeaves = new Map<string, ReturnType<typeof issueLeaf>>();
const sharedSessionCa = once(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-data-plane-'));
  try {
    return await createSessionCa(directory, { sessionId: 'ses_test', maxLeaves: 100, now: Date.now });
  } finally {
    await rm(directory, { recursive: true });
  }
});

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}

function upstreamLeaf(authority: Authority, host: string): ReturnType<typeof issueLeaf> {
  const leaf = upstreamLeaves.get(host) ?? issueLeaf(authority, host, Date.now());
  upstreamLeaves.set(host, leaf);
  return leaf;
}

export async function startDataPlane(limits: Partial<Limits> = {}, maxOpen: number | null = null): Promise<DataPlane> {
  const upstreamCa = await upstreamAuthority();
  const pinned = new Map<string, { address: string; port: number }>();
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const all = { ...DEFAULT_LIMITS, runTimeoutSeconds: 60, ...limits };
  const ca = await sharedSessionCa();
  const token = randomBytes(16).toString('hex');
  const tunnels = new Set<object>();
  const scopes = new Map<string, LiveSession>();
  const ends = new OpenTunnels(0);
  const session: LiveSession = {
    id: 'ses_test',
    ca,
    openTunnel: () => countTunnels(tunnels, all.maxTunnelsPerSession),
    onTunnelsClosed: (close) => ends.onClosed(close),
  };
  const fakes = {
    policy: new FakePolicySource(),
    credentials: new FakeCredentialSource(),
    approvals: new FakeApprovalSource(),
    audit: new FakeAuditSink(),
    metrics: new FakeMetrics(),
  };
  const errors: string[] = [];
  const credentialIds: (string | null)[] = [];
  const sessionLimits = new Map<string, RequestLimits>();
  const counts = new RequestCounts({ clock: new FakeClock(), limitsOfSession: (id) => sessionLimits.get(id) ?? null });
  const budget = new BodyBudget(all.maxBufferedBodiesBytes);
  const refusals = new SessionRefusals(fakes.audit);
  const dialerOptions: DialerOptions = {
    roots: [upstreamCa.certificatePem],
    pinned,
    denyPrivate: false,
    timeoutSeconds: 5,
    limits: all,
  };
  const dialer = createDialer(dialerOptions);

  const clock = new FakeClock();
  const warm = new WarmUpstreams(all.keepUpstreamSeconds);
  fakes.policy.alwaysOnChanged(() => warm.dropAll());
  const plainDialer = createPlainDialer(dialerOptions);
  const tcpDialer = createPlainDialer(dialerOptions, CARRIED);
  const log: Log = {
    info: () => undefined,
    error: (message, fields) => errors.push(`${message} ${JSON.stringify(fields)}`),
  };
  const connections = createSocketGate({ limits: all, maxOpen, metrics: fakes.metrics, log, clock: new FakeClock() });
  const ports: TunnelPorts = {
    gate: connections,
    sessions: {
      authenticate: (id, given) => {
        if (id !== session.id) return null;
        return given === token ? session : (scopes.get(given) ?? null);
      },
    },
    exchange: {
      ...fakes,
      scopes: { of: (id) => (credentialIds.push(id), fakes.credentials) },
      clock,
      limits: all,
      budget,
      materials: new MaterialCache(),
      masked: new MaskedReplies(all.maxMaskedReplies, () => true),
      counts,
      hash: NodeSha256,
    },
    audit: fakes.audit,
    strangers: new StrangerRefusals(fakes.audit),
    refusals,
    metrics: fakes.metrics,
    log,
    openUpstream: (wanted) => openUpstream(dialer, warm, wanted),
    dialTcp: (host, publicOnly) => tcpDialer.dial(host, publicOnly),
    openLanes: (host, isPublicOnly) => new TunnelLanes({ dialer, host, isPublicOnly }),
    openPlainLanes: (host, isPublicOnly) => new TunnelLanes({ dialer: plainDialer, host, isPublicOnly }),
  };
  const localApi = createHttpServer((_request, response) => response.end('local api'));
  const listener = createListener(ports, localApi);
  const port = await track(listener, sockets);
  servers.push(listener);

  return {
    port,
    token,
    session,
    scopes,
    caPem: ca.caPem,
    upstreamCaPem: upstreamCa.certificatePem,
    ...fakes,
    clock,
    refusals,
    warm,
    endSession: () => ends.end(),
    credentialIds,
    sessionLimits,
    bytesCounted(id) {
      const entries: readonly [number, number][] = JSON.parse(counts.save()).bytes?.[id] ?? [];
      return entries.reduce((sum, [, bytes]) => sum + bytes, 0);
    },
    operations: createOperationRunner(ports),
    errors,
    gate: connections,
    budget,
    openTunnels: () => tunnels.size,
    async upstream(host, handler, certified = nameOfHost(host)) {
      const server = await (version === 'h2' ? translatingServer : tlsServer)(upstreamCa, certified, handler);
      servers.push(server);
      pinned.set(host, { address: '127.0.0.1', port: await track(server, sockets) });
    },
    async certifiedUpstream(host, handler, accepted, onConnected, more = {}) {
      const wanted = { requestCert: true, rejectUnauthorized: true, ca: [accepted], ...more };
      const server = await (version === 'h2' ? translatingServer : tlsServer)(upstreamCa, host, handler, wanted);
      server.on('secureConnection', onConnected);
      servers.push(server);
      pinned.set(host, { address: '127.0.0.1', port: await track(server, sockets) });
    },
    async plainUpstream(host, handler) {
      const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => undefined);
        handler(socket);
      });
      servers.push(server);
      pinned.set(`http://${host}`, { address: '127.0.0.1', port: await track(server, sockets) });
    },
    async frameUpstream(host, handler) {
      const server = await tlsServer(upstreamCa, host, handler, { ALPNProtocols: ['h2'] });
      servers.push(server);
      pinned.set(host, { address: '127.0.0.1', port: await track(server, sockets) });
    },
    async streamUpstream(host, handler, versions = ['h2'], settings = {}) {
      const server = await streamServer(upstreamCa, host, handler, versions, settings);
      servers.push(server);
      pinned.set(host, { address: '127.0.0.1', port: await track(server, sockets) });
    },
    pin: (host, listening) => void pinned.set(host, { address: '127.0.0.1', port: listening }),
    async hold(host) {
      const target = pinned.get(host);
      if (target === undefined) throw new Error(`${host} has no upstream`);
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      const through = new Set<Socket>();
      const server = createTcpServer((socket) => {
        socket.on('error', () => undefined);
        reached.resolve();
        through.add(socket);
        void connectWhen(gate.promise, socket, target, sockets);
      });
      servers.push(server);
      pinned.set(host, { address: '127.0.0.1', port: await track(server, sockets) });
      return {
        reached: reached.promise,
        letThrough: () => gate.resolve(),
        stopReading: () => {
          for (const socket of through) socket.pause();
        },
        readAgain: () => {
          for (const socket of through) socket.resume();
        },
      };
    },
    async open(host, servername = nameOfHost(host), given = token) {
      const proxy = { port, token: given, caPem: ca.caPem };
      if (version === 'http/1.1') return openTunnel(proxy, host, servername, sockets);
      const socket = await openTunnel(proxy, host, servername, sockets, ['h2']);
      return translatingClient(socket, host);
    },
    clientOn: (socket, host) => (version === 'h2' ? translatingClient(socket, host) : socket),
    openTls: (host, offered, servername = host, early) =>
      openTunnel({ port, token, caPem: ca.caPem }, host, servername, sockets, offered, early),
    async openSession(host, { servername = host, offered = ['h2'], settings = {} } = {}) {
      const socket = await openTunnel({ port, token, caPem: ca.caPem }, host, servername, sockets, offered);
      socket.allowHalfOpen = false;
      const http2 = connectHttp2(`https://${host}`, {
        createConnection: () => socket,
        settings: { enablePush: false, ...settings },
        ...LAX,
      });
      http2.on('error', () => undefined);
      return http2;
    },
    raw: (text, enough) => rawExchange(port, text, sockets, enough),
    async stop() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

async function connectWhen(
  opened: Promise<void>,
  socket: Socket,
  { address, port }: { readonly address: string; readonly port: number },
  sockets: Set<Socket>,
): Promise<void> {
  await opened;
  const onward = connectTcp({ port, host: address });
  sockets.add(onward);
  onward.on('error', () => socket.destroy());
  socket.pipe(onward).pipe(socket);
}

function countTunnels(tunnels: Set<object>, most: number): (() => void) | null {
  if (tunnels.size >= most) return null;
  const tunnel = {};
  tunnels.add(tunnel);
  return () => tunnels.delete(tunnel);
}

async function tlsServer(
  authority: Authority,
  host: string,
  handler: UpstreamHandler,
  more: TlsOptions = {},
): Promise<Server> {
  const leaf = await upstreamLeaf(authority, host);
  const raw = new Map<number | undefined, Socket>();
  const options = { key: leaf.keyPem, cert: leaf.certificatePem, allowHalfOpen: true, ...more };
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => undefined);
    const below = raw.get(socket.remotePort);
    handler(socket, () => below?.resetAndDestroy());
  });
  server.on('connection', (socket: Socket) => raw.set(socket.remotePort, socket));
  server.on('tlsClientError', () => undefined);
  return server;
}

/** Takes duplicates of any header, as the data plane does. */
const LAX: ServerSessionOptions & { readonly strictSingleValueFields: boolean } = { strictSingleValueFields: false };

/** The same upstream over HTTP/2, where its handler gets one socket for each stream, and over HTTP/1.1 for runs by name. */
function translatingServer(
  authority: Authority,
  certified: string,
  handler: UpstreamHandler,
  more: TlsOptions = {},
): Promise<Server> {
  const handleStream: StreamHandler = (stream, fields, session) => {
    const lose = (): void => session.destroy();
    handler(asSocket(new StreamServer(stream, fields, lose)), lose);
  };
  const otherwise = (socket: TLSSocket): void => handler(socket, () => socket.destroy());
  return streamServer(authority, certified, handleStream, ['h2', 'http/1.1'], {}, otherwise, more);
}

function translatingClient(socket: TLSSocket, host: string): TLSSocket {
  const options = {
    createConnection: () => socket,
    settings: { enablePush: false },
    maxSendHeaderBlockLength: 1024 * 1024,
    ...LAX,
  };
  socket.allowHalfOpen = false;
  const session = connectHttp2(`https://${host}`, options);
  session.on('error', () => undefined);
  return asSocket(new StreamClient(session));
}

/** What tests use of a socket is what every Duplex has. */
function asSocket(stream: Duplex): TLSSocket {
  stream.on('error', () => undefined);
  if (!isUsedAsSocket(stream)) throw new Error('a test has the stream before it ends');
  return stream;
}

function isUsedAsSocket(stream: Duplex): stream is TLSSocket {
  return !stream.destroyed;
}

async function streamServer(
  authority: Authority,
  host: string,
  handler: StreamHandler,
  versions: readonly string[],
  settings: Settings,
  otherwise: (socket: TLSSocket) => void = (socket) => socket.destroy(),
  more: TlsOptions = {},
): Promise<Server> {
  const leaf = await upstreamLeaf(authority, host);
  const options = { key: leaf.keyPem, cert: leaf.certificatePem, ALPNProtocols: [...versions], ...more };
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => undefined);
    if (socket.alpnProtocol !== 'h2') return otherwise(socket);
    const session = performServerHandshake(socket, { ...LAX, settings });
    session.on('error', () => undefined);
    session.on(
      'stream',
      (stream: ServerHttp2Stream, headers: StreamHeaders, _flags: number, fields: readonly string[]) => {
        stream.on('error', () => undefined);
        handler(stream, fields, session, headers);
      },
    );
  });
  server.on('tlsClientError', () => undefined);
  return server;
}

function track(server: Server, sockets: Set<Socket>): Promise<number> {
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return listen(server, 0, '127.0.0.1');
}

async function openTunnel(
  proxy: { port: number; token: string; caPem: string },
  host: string,
  servername: string,
  sockets: Set<Socket>,
  offered: readonly string[] = [],
  early?: Buffer,
): Promise<TLSSocket> {
  const basic = Buffer.from(`ses_test:${proxy.token}`).toString('base64');
  const socket = connectTcp({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.add(socket);
  const target = `${nameOfHost(host)}:${portOfHost(host)}`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`);
  const answer = await new Promise<string>((resolve) =>
    socket.once('data', (data) => resolve(data.toString('latin1'))),
  );
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`CONNECT was answered ${answer.split('\r\n')[0]}`);
  return new Promise((resolve, reject) => {
    const ALPNProtocols = offered.length === 0 ? {} : { ALPNProtocols: [...offered] };
    const tls = connectTls({
      socket,
      servername,
      ca: proxy.caPem,
      checkServerIdentity: () => undefined,
      ...ALPNProtocols,
    });
    tls.once('secureConnect', () => resolve(tls));
    tls.once('error', reject);
    if (early !== undefined) tls.write(early);
  });
}

function rawExchange(
  port: number,
  text: string,
  sockets: Set<Socket>,
  enough: (got: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ port, host: '127.0.0.1' });
    sockets.add(socket);
    let got = '';
    socket.on('data', (data) => {
      got += data.toString('latin1');
      if (enough(got)) socket.destroy();
    });
    socket.on('close', () => resolve(got));
    socket.on('error', reject);
    socket.write(text, 'latin1');
  });
}

/** Reads from a socket until `enough` accepts the text so far, or the peer ends. */
export function readUntil(socket: TLSSocket, enough: (got: string) => boolean): Promise<string> {
  return new Promise((resolve) => {
    let got = '';
    const finish = (): void => {
      socket.off('data', onData);
      socket.off('end', finish);
      socket.off('close', finish);
      resolve(got);
    };
    const onData = (data: Buffer): void => {
      got += data.toString('latin1');
      if (enough(got)) finish();
    };
    socket.on('data', onData);
    socket.once('end', finish);
    socket.once('close', finish);
  });
}

/** An upstream that reads one request head at a time and answers with what `reply` returns for it. */
export function createAnswering(reply: (request: string) => string): (socket: Socket, reset?: () => void) => void {
  return (socket) => {
    let got = '';
    socket.on('data', (data: Buffer) => {
      got += data.toString('latin1');
      const end = got.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/^content-length: *(\d+)/im.exec(got)?.[1] ?? 0);
      if (got.length < end + 4 + length) return;
      const request = got.slice(0, end + 4 + length);
      got = got.slice(end + 4 + length);
      socket.write(reply(request), 'latin1');
    });
    socket.on('end', () => socket.end());
  };
}
