import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls, type ConnectionOptions } from 'node:tls';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { normaliseHost } from '../../shared/net/host.ts';
import { isRefusedAddress } from '../../shared/net/ip_literal.ts';
import { HTTPS_PORT } from '../../shared/net/host_port.ts';
import { goesThrough, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import {
  CALL_LIMITS,
  carryHeaders,
  decodeBody,
  invalidReply,
  type Outbound,
  type OutboundReply,
  type OutboundRequest,
  type OutboundStream,
  ReplyBody,
  type StreamEnd,
  streamProblem,
  targetProblem,
  unreachableHost,
  type OutboundFailureReason,
} from '../kernel/outbound.ts';
import type { Failure } from '../../shared/model/failure.ts';
import { dialProxy, ProxyFailed } from './proxy_dial.ts';
import { sendOverTls } from './tls_stream.ts';

/** Another dial address for a host; its certificate is still checked for the host name. */
export interface PinnedAddress {
  readonly address: string;
  /** For calls to the protocol's own port alone, 443 with HTTPS. Null: for every port, which stays as it is. */
  readonly port: number | null;
}

/** Resolves a name to all its addresses, like `lookup` of Node. */
type ResolveName = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface NodeOutboundOptions {
  /** Local mode: private addresses, http on loopback and pinned hosts are allowed. */
  readonly isLocal: boolean;
  /** By canonical host; only in local mode. */
  readonly pinned: ReadonlyMap<string, PinnedAddress>;
  /** The proxy that calls go through, but for exempt hosts. It resolves their names. */
  readonly proxy?: UpstreamProxy | null;
  /** Hosts that a hosted control plane may call at a private address, because its operator named them. */
  readonly privateHosts?: readonly string[];
  /** Called before each call over TLS. */
  readonly prepareTrust?: () => void;
  /** PEM roots that replace the default ones. */
  readonly roots?: readonly string[];
  readonly timeoutMs?: number;
  /** Replaces the system's resolver. */
  readonly resolve?: ResolveName;
}

type Called = Result<OutboundReply, Failure<OutboundFailureReason>>;

/** Outgoing calls on Node and Deno: verified TLS, a new connection for each, and no private addresses if hosted. */
export function nodeOutbound(options: NodeOutboundOptions): Outbound {
  return {
    async call(request) {
      const url = new URL(request.url);
      const isLocal = options.isLocal && request.isStrangers !== true;
      // The operator names hosts for the users, and not for publishers in a registry.
      const named = request.isStrangers === true ? [] : (options.privateHosts ?? []);
      const privateHosts = privateHostAt(named, targetOf(url));
      const problem = targetProblem(url, isLocal, request);
      return problem === null ? send({ ...options, isLocal, privateHosts }, url, request) : err(problem);
    },
    stream: (request) => sendStream(options, request),
  };
}

type Streamed = Result<StreamEnd, Failure<OutboundFailureReason>>;

/** TLS of syslog (RFC 5425). */
const SYSLOG_PORT = 6514;

/**
 * The host, if it may be at a private address at this port. Any tenant may name the port, and could otherwise try all ports of an
 * internal machine: one that is not that of the protocol has to be named with the host.
 */
function privateHostAt(named: readonly string[], target: Target): readonly string[] {
  return named.includes(nameOf(target)) || named.includes(`${target.host}:${target.port}`) ? [target.host] : [];
}

/** What is called: a host at a port, and the port that the protocol has if none is named. */
interface Target extends Pick<OutboundStream, 'host' | 'port'> {
  readonly protocolPort: number;
}

function targetOf({ hostname, port }: URL): Target {
  return { host: hostname, port: port === '' ? HTTPS_PORT : Number(port), protocolPort: HTTPS_PORT };
}

/** As `SVC_PRIVATE_HOSTS` names it. */
function nameOf({ host, port, protocolPort }: Target): string {
  return port === protocolPort ? host : `${host}:${port}`;
}

async function sendStream(given: NodeOutboundOptions, request: OutboundStream): Promise<Streamed> {
  const { host, port, bytes, timeoutMs } = request;
  const target = { host, port, protocolPort: SYSLOG_PORT };
  const options = { ...given, privateHosts: privateHostAt(given.privateHosts ?? [], target) };
  const problem = streamProblem(request, options.isLocal);
  if (problem !== null) return err(problem);
  const deadline = abortIn(options.timeoutMs ?? timeoutMs);
  try {
    options.prepareTrust?.();
    const through = await dialAround(options, target, deadline);
    return ok(await sendOverTls({ through, dial: dialOptions(options, target), bytes, signal: deadline }));
  } catch (error) {
    if (!isErrno(error)) throw error;
    return err(toFailure(host, error, deadline));
  }
}

/** Node takes no fractions of a millisecond, and throws. */
function abortIn(milliseconds: number): AbortSignal {
  return AbortSignal.timeout(Math.max(0, Math.floor(milliseconds)));
}

async function send(options: NodeOutboundOptions, url: URL, request: OutboundRequest): Promise<Called> {
  const { maxReplyBytes, timeoutMs } = request.limits ?? CALL_LIMITS;
  const deadline = abortIn(options.timeoutMs ?? timeoutMs);
  const host = url.hostname;
  let outgoing: ClientRequest | null = null;
  try {
    const isTls = url.protocol === 'https:';
    if (isTls) options.prepareTrust?.();
    const through = isTls ? await dialAround(options, targetOf(url), deadline) : null;
    outgoing = open(options, url, request, { signal: deadline, through });
    const reply = await responseOf(outgoing, request.body);
    return await read(host, reply, { deadline, maxReplyBytes });
  } catch (error) {
    if (!isErrno(error)) throw error;
    return err(toFailure(host, error, deadline));
  } finally {
    outgoing?.destroy();
  }
}

/** The socket through the upstream proxy; null if the call goes directly. Refuses a name that only the proxy resolves. */
async function dialAround(options: NodeOutboundOptions, target: Target, signal: AbortSignal): Promise<Socket | null> {
  const { proxy = null, roots } = options;
  if (proxy === null) return null;
  const pin = pinOf(options, target);
  const host = pin === null ? target.host : pin.address.includes(':') ? `[${pin.address}]` : pin.address;
  const port = pin?.port ?? target.port;
  if (![target.host, host].every((each) => goesThrough(proxy, { host: each, port }))) return null;
  if (checksAddress(options, target.host) && !proxy.isPublicOnly) throw new UncheckedAddress(target);
  return dialProxy(proxy, { host, port }, { signal, roots });
}

/** Where the target is instead; null if it is where its name leads. */
function pinOf({ isLocal, pinned }: NodeOutboundOptions, { host, port, protocolPort }: Target): PinnedAddress | null {
  const pin = isLocal ? pinned.get(host) : undefined;
  return pin === undefined || (pin.port !== null && port !== protocolPort) ? null : pin;
}

/** Whether the host may not lead to a private address. */
function checksAddress({ isLocal, privateHosts = [] }: NodeOutboundOptions, host: string): boolean {
  return !isLocal && !privateHosts.includes(host);
}

function responseOf(outgoing: ClientRequest, body: Uint8Array | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Never removed: an error event without a listener would end the process.
    outgoing.on('error', reject);
    outgoing.on('response', resolve);
    outgoing.on('upgrade', (_reply, socket) => {
      socket.destroy();
      reject(new SwitchedProtocol());
    });
    // Has an effect only if the call ended in none of the ways above, because a promise settles once.
    outgoing.on('close', () => reject(Object.assign(new Error('no reply'), { code: 'ECONNRESET' })));
    outgoing.end(body ?? undefined);
  });
}

function open(
  options: NodeOutboundOptions,
  url: URL,
  request: OutboundRequest,
  { signal, through }: { readonly signal: AbortSignal; readonly through: Socket | null },
): ClientRequest {
  const length = request.body === null ? {} : { 'content-length': String(request.body.length) };
  const headers = { host: url.host, 'accept-encoding': 'identity', ...request.headers, ...length };
  const what = { method: request.method, path: url.pathname + url.search, headers, signal };
  if (url.protocol === 'http:') {
    return httpRequest({ ...what, agent: false, host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port });
  }
  const dial = dialOptions(options, targetOf(url));
  if (through === null) return httpsRequest({ ...what, ...dial, agent: false });
  return httpsRequest({ ...what, createConnection: () => connectTls({ ...dial, socket: through }) });
}

type DialOptions = ConnectionOptions & {
  readonly host: string;
  readonly port: number;
  readonly lookup?: LookupFunction;
};

function dialOptions(options: NodeOutboundOptions, target: Target): DialOptions {
  const { roots, resolve } = options;
  const { host, port } = target;
  const pin = pinOf(options, target);
  return {
    host: pin?.address ?? host,
    port: pin?.port ?? port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    minVersion: 'TLSv1.2',
    checkServerIdentity: (_dialled, certificate) => checkServerIdentity(host, certificate),
    ...(checksAddress(options, host) ? { lookup: publicLookup(resolve ?? systemLookup, target) } : {}),
    ...(roots === undefined ? {} : { ca: [...roots] }),
  };
}

/** The upstream answered 101 (RFC 9110 section 15.2.2), which was not requested. */
class SwitchedProtocol extends Error {}

class PrivateAddress extends Error {
  readonly code = 'EPRIVATE';

  constructor(target: Target) {
    super(`it resolves to a private address, which the operator can allow by ${privateSetting(target)}`);
  }
}

class UncheckedAddress extends Error {
  constructor(target: Target) {
    super(
      `the upstream proxy resolves its name, so whether it is private is unknown here; the operator can set SVC_UPSTREAM_PROXY_PUBLIC_ONLY or ${privateSetting(target)}`,
    );
  }
}

/** The setting that lets the target be private. A port is named if a bare name would not cover it. */
function privateSetting(target: Target): string {
  const isBare = target.port === target.protocolPort;
  return `SVC_PRIVATE_HOSTS${isBare ? '' : `, as ${nameOf(target)}`}`;
}

/** Resolves once per call and refuses a name with any private address. The checked addresses are the dialled ones. */
function publicLookup(resolve: ResolveName, target: Target): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      if (addresses.some(({ address }) => isRefusedAddress(address))) {
        return callback(new PrivateAddress(target), []);
      }
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

async function read(
  host: string,
  reply: IncomingMessage,
  { deadline, maxReplyBytes }: { readonly deadline: AbortSignal; readonly maxReplyBytes: number },
): Promise<Called> {
  const body = new ReplyBody(host, maxReplyBytes);
  try {
    for await (const chunk of reply) {
      const problem = chunk instanceof Uint8Array ? body.add(chunk) : null;
      if (problem !== null) return err(problem);
    }
  } catch (error) {
    if (!isErrno(error)) throw error;
    return err(
      deadline.aborted ? timeoutFailure(host) : invalidReply(host, `ended early (${error.code ?? 'unknown'})`),
    );
  }
  if (!reply.complete) return err(invalidReply(host, 'ended early'));
  const coding = reply.headers['content-encoding'] ?? '';
  const decoded = await decodeBody(host, coding, body.bytes(), maxReplyBytes);
  if (!decoded.ok) return decoded;
  const { 'content-type': contentType = '' } = reply.headers;
  return ok({
    status: reply.statusCode ?? 0,
    contentType,
    ...carryHeaders((name) => reply.headers[name]),
    body: decoded.value,
  });
}

/** TLS error codes of Node and OpenSSL. */
const TLS_ERROR = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/;

function toFailure(host: string, error: NodeJS.ErrnoException, deadline: AbortSignal): Failure<OutboundFailureReason> {
  const code = error.code ?? 'unknown';
  if (deadline.aborted) return timeoutFailure(host);
  if (error instanceof PrivateAddress) return unreachableHost(host, error.message);
  if (error instanceof ProxyFailed) return unreachableHost(host, error.message);
  if (error instanceof UncheckedAddress) return unreachableHost(host, error.message);
  if (error instanceof SwitchedProtocol) return invalidReply(host, 'switches to another protocol');
  if (code.startsWith('HPE_')) return invalidReply(host, `is not valid HTTP (${code})`);
  if (!TLS_ERROR.test(code)) return unreachableHost(host, code);
  const message = `the TLS connection to ${host} failed (${code}); its certificate must be valid for that name and signed by a trusted root`;
  return { reason: 'upstream_tls_failed', message };
}

function timeoutFailure(host: string): Failure<OutboundFailureReason> {
  return unreachableHost(host, 'no complete answer in time');
}

function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error;
}

/** `HOST:ADDRESS[:PORT]`, with IPv6 addresses in brackets. Without a port it is for every port of the host. Null if invalid. */
export function parsePin(text: string): readonly [string, PinnedAddress] | null {
  const parts = /^([^:[\]]+):(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text);
  const host = normaliseHost(parts?.[1] ?? '');
  const address = parts?.[2] ?? parts?.[3] ?? '';
  const port = parts?.[4] === undefined ? null : Number(parts[4]);
  if (!host.ok || isIP(address) === 0 || (port !== null && (port === 0 || port > 65_535))) return null;
  return [host.value, { address, port }];
}
