import type { LookupFunction, Socket } from 'node:net';
import { isIP } from 'node:net';
import type { ConnectionOptions, PeerCertificate, SecureContext, TLSSocket } from 'node:tls';
import { checkServerIdentity, connect, createSecureContext } from 'node:tls';

import { HTTP_1_1, HTTP_2 } from '../../shared/net/client_hello.ts';
import { nameOfHost, portOfHost } from '../../shared/net/host_port.ts';
import { isMachineAddress, isRefusedAddress } from '../../shared/net/ip_literal.ts';
import { goesThrough, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { checkedLookup } from '../../machine/connection/checked_lookup.ts';
import { Connection } from '../../machine/connection/connection.ts';
import { type SessionLimits, UpstreamSession } from './upstream_session.ts';
import { type OwnAddresses, readOwnAddresses } from './own_addresses.ts';
import type { PresentedCertificate } from '../ports.ts';
import { describeCertificateAlert } from '../../shared/net/certificate_alert.ts';
import type { Dialling } from './dialling.ts';
import { dialProxied } from './proxied_dial.ts';

/** Where a host is dialled in place of its resolved address. Its certificate is still checked for the host. */
export interface PinnedAddress {
  readonly address: string;
  readonly port: number;
}

export interface DialerOptions {
  /** The PEM roots to trust; no others are. */
  readonly roots: readonly string[];
  /** By host, with its port if that is not 443; what stands for a host over plain HTTP has the key `http://HOST`. */
  readonly pinned: ReadonlyMap<string, PinnedAddress>;
  /** The proxy that connections go through, but for hosts that it is not used for (decision 0069). */
  readonly proxy?: UpstreamProxy | null;
  /** Refuses private addresses; checks the address that is actually dialled. */
  readonly denyPrivate: boolean;
  readonly timeoutSeconds: number;
  readonly limits: SessionLimits;
}

/** Opens a verified TLS connection to a host, on its port (see `hostOnPort`). */
export interface Dialer {
  /** With `publicOnly`, refuses private addresses and this machine's own. `--resolve` targets are exempt, because the setting names them. */
  dial(host: string, publicOnly?: boolean, certificate?: PresentedCertificate | null): Dialling;
  /** The same, with the protocols that a client offers: the upstream chooses. */
  dialOffering(
    protocols: readonly string[],
    host: string,
    publicOnly: boolean,
    certificate?: PresentedCertificate | null,
  ): Dialling<Connection | UpstreamSession>;
}

/** A dialler that always verifies the upstream's certificate for the dialled host (RFC 9525); over HTTP/1.1 unless offered more. */
export function createDialer(options: DialerOptions): Dialer {
  const secureContext = createSecureContext({ ca: [...options.roots], minVersion: 'TLSv1.2' });
  const tickets = new TicketCache();
  const contexts = createCertificateContexts(options.roots);
  const dial = (
    protocols: readonly string[],
    host: string,
    publicOnly: boolean,
    certificate: PresentedCertificate | null,
  ): Dialling<TLSSocket> => {
    const own = certificate === null ? null : contexts(certificate, host);
    if (own?.ok === false) return { connected: Promise.resolve(own), cancel: () => undefined };
    const isNamed = options.pinned.has(host);
    const denied = createDeniedAddresses(options.denyPrivate, publicOnly && !isNamed);
    const presented = certificate === null || own === null ? null : { certificate, context: own.value };
    return dialOnce({ host, denied, protocols, presented }, options, secureContext, tickets);
  };
  return {
    dial: (host, publicOnly = false, certificate = null) =>
      mapDialling(dial([HTTP_1_1], host, publicOnly, certificate), (socket) => ok(new Connection(socket))),
    dialOffering: (protocols, host, publicOnly, certificate = null) =>
      mapDialling(dial(protocols, host, publicOnly, certificate), (socket) =>
        chosenBy(socket, host, protocols, options.limits),
      ),
  };
}

/** The secure contexts of client certificates. Each is kept as long as its key is, because reading the roots takes a while. */
function createCertificateContexts(roots: readonly string[]) {
  const known = new WeakMap<object, SecureContext>();
  return ({ chain, key, reference }: PresentedCertificate, host: string): Result<SecureContext, Refusal> => {
    try {
      const context =
        known.get(key) ??
        createSecureContext({ ca: [...roots], minVersion: 'TLSv1.2', cert: chain, key: key.reveal() });
      known.set(key, context);
      return ok(context);
    } catch {
      const message = `the client certificate ${reference} for ${host} cannot be used: the TLS library refuses its certificate or key`;
      return err(refusal('credential_unavailable', message));
    }
  };
}

/** A connection of the version that the upstream chose. One that chooses none speaks HTTP/1.1. */
function chosenBy(
  socket: TLSSocket,
  host: string,
  protocols: readonly string[],
  limits: SessionLimits,
): Result<Connection | UpstreamSession, Refusal> {
  if (socket.alpnProtocol === HTTP_2) return ok(new UpstreamSession(socket, host, limits));
  if (protocols.includes(HTTP_1_1)) return ok(new Connection(socket));
  socket.destroy();
  return err(refusal('upstream_tls_failed', `${host} does not speak HTTP/2, which this tunnel speaks`));
}

function mapDialling<Connected>(
  { connected, cancel }: Dialling<TLSSocket>,
  use: (socket: TLSSocket) => Result<Connected, Refusal>,
): Dialling<Connected> {
  return { connected: connected.then((socket) => (socket.ok ? use(socket.value) : socket)), cancel };
}

/** The addresses that are not dialled, and the refusal for them. */
export interface DeniedAddresses {
  has(address: string): boolean;
  refusalOf(host: string): Refusal;
  /** The refusal for a name that the upstream proxy resolves, so that its address is unknown here. */
  uncheckedRefusalOf(host: string): Refusal;
}

export function createDeniedAddresses(denyPrivate: boolean, publicOnly: boolean): DeniedAddresses | null {
  if (publicOnly) {
    return { has: orOwn(isRefusedAddress), refusalOf: notAllowedRefusal, uncheckedRefusalOf: notCheckedRefusal };
  }
  if (!denyPrivate) return null;
  return { has: isRefusedAddress, refusalOf: privateAddress, uncheckedRefusalOf: privateUnchecked };
}

/**
 * The addresses that a name never leads to where no certificate is verified here: whoever answers for the name could lead to
 * this machine, or to the metadata service of its cloud.
 */
export function createMachineAddresses(): Pick<DeniedAddresses, 'has'> {
  return { has: orOwn(isMachineAddress) };
}

/** Denies this machine's own addresses too. They are read after a name was resolved, and once for all of its addresses. */
function orOwn(isDenied: (address: string) => boolean): (address: string) => boolean {
  let own: OwnAddresses | null = null;
  return (address) => isDenied(address) || (own ??= readOwnAddresses()).has(address);
}

interface Wanted {
  readonly host: string;
  readonly protocols: readonly string[];
  readonly denied: DeniedAddresses | null;
  /** The client certificate. Its handshake resumes no session, and no later one resumes it. */
  readonly presented: { readonly certificate: PresentedCertificate; readonly context: SecureContext } | null;
}

function dialOnce(
  { host, denied, protocols, presented }: Wanted,
  options: DialerOptions,
  secureContext: SecureContext,
  tickets: TicketCache,
): Dialling<TLSSocket> {
  const name = nameOfHost(host).replace(/^\[(.*)\]$/, '$1');
  const pinned = options.pinned.get(host);
  const address = pinned?.address ?? name;
  if (denied !== null && isIP(address) !== 0 && denied.has(address)) {
    return { connected: Promise.resolve(err(denied.refusalOf(host))), cancel: () => undefined };
  }
  const port = pinned?.port ?? portOfHost(host);
  const proxy = proxyFor(options, host, port, address);
  if (proxy !== null && denied !== null && isIP(address) === 0 && !proxy.isPublicOnly) {
    return { connected: Promise.resolve(err(denied.uncheckedRefusalOf(host))), cancel: () => undefined };
  }
  const dialTls = (over: Socket | null, timeoutSeconds: number): Dialling<TLSSocket> => {
    const session = presented === null ? tickets.get(host) : undefined;
    const connection: ConnectionOptions & { allowHalfOpen: true } = {
      host: address,
      port,
      servername: isIP(name) === 0 ? name : '',
      ALPNProtocols: [...protocols],
      secureContext: presented?.context ?? secureContext,
      allowHalfOpen: true,
      ...(over === null ? {} : { socket: over }),
      ...(denied === null ? {} : { lookup: lookupWithout(denied) }),
      ...(session === undefined ? {} : { session }),
      ...(pinned === undefined ? {} : { checkServerIdentity: identityOf(name) }),
    };
    const socket = connect(connection);
    socket.setNoDelay(true);
    if (presented === null) socket.on('session', (ticket: Buffer) => tickets.keep(host, ticket));
    const connected = verifyPeer(socket, timeoutSeconds).then((error) => {
      if (error === null) return ok(socket);
      if (presented === null) tickets.forget(host);
      if (denied !== null && error instanceof DeniedAddress) return err(denied.refusalOf(host));
      return err(dialRefusal(host, socket, error, presented?.certificate ?? null));
    });
    return { connected, cancel: () => void socket.destroy(new DialCancelled()) };
  };
  const { timeoutSeconds } = options;
  if (proxy === null) return dialTls(null, timeoutSeconds);
  return dialProxied(
    { proxy, host, target: { host: bracketed(address), port }, secureContext, timeoutSeconds },
    dialTls,
  );
}

/** The proxy for a connection; null if it is dialled directly: the host or the address that stands for it is exempt. */
export function proxyFor(
  { proxy = null }: Pick<DialerOptions, 'proxy'>,
  host: string,
  port: number,
  address: string,
): UpstreamProxy | null {
  if (proxy === null) return null;
  const hosts = [nameOfHost(host), bracketed(address)];
  return hosts.every((each) => goesThrough(proxy, { host: each, port })) ? proxy : null;
}

export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/**
 * Resolves with null once the handshake is done and the certificate verified, or with the error. A socket without TLS is ready
 * when it has connected.
 */
export function verifyPeer(
  socket: Socket,
  timeoutSeconds: number,
  ready: 'secureConnect' | 'connect' = 'secureConnect',
): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    // One time limit for everything, so that a slow handshake holds resources no longer than a silent upstream.
    const timer = setTimeout(() => socket.destroy(new DialTimeout()), timeoutSeconds * 1000);
    // Every connection closes at some time, and an error with its stack is not cheap: it is made only while someone waits for it.
    const onClose = (): void => settle(new DialCancelled());
    const settle = (error: NodeJS.ErrnoException | null): void => {
      clearTimeout(timer);
      socket.off('close', onClose);
      resolve(error);
    };
    // Never removed: an unhandled error event of a socket ends the process.
    socket.on('error', (error) => {
      settle(error);
      socket.destroy();
    });
    socket.once('close', onClose);
    socket.once(ready, () => settle(null));
  });
}

class DialTimeout extends Error {
  readonly code = 'ETIMEDOUT';
}

class DialCancelled extends Error {
  readonly code = 'ECANCELED';
}

export class DeniedAddress extends Error {
  readonly code = 'EDENIED';
}

/** The certificate is checked for the host's own name, for any dialled address. */
function identityOf(name: string): (dialled: string, certificate: PeerCertificate) => Error | undefined {
  return (_dialled, certificate) => checkServerIdentity(name, certificate);
}

/** Fails with {@link DeniedAddress} for a name that has a denied address. */
export function lookupWithout(denied: Pick<DeniedAddresses, 'has'>): LookupFunction {
  return checkedLookup(
    (address) => denied.has(address),
    () => new DeniedAddress(),
  );
}

function dialRefusal(
  host: string,
  socket: TLSSocket,
  error: NodeJS.ErrnoException,
  certificate: PresentedCertificate | null,
): Refusal {
  const code = error.code ?? 'unknown';
  const aboutCertificate = describeCertificateAlert(code, host, certificate);
  if (aboutCertificate !== null) return refusal('upstream_tls_failed', aboutCertificate);
  if (socket.connecting || SYSTEM_ERROR.test(code)) {
    return refusal('upstream_unreachable', `${host} could not be reached (${code})`);
  }
  return refusal(
    'upstream_tls_failed',
    `the TLS connection to ${host} failed (${code}); its certificate must be valid for that name and signed by a trusted root (--upstream-ca adds one)`,
  );
}

function privateAddress(host: string): Refusal {
  return refusal(
    'upstream_unreachable',
    `${host} resolves to a private address, which --deny-private-upstreams refuses`,
  );
}

function notAllowedRefusal(host: string): Refusal {
  return refusal(
    'egress_address_not_allowed',
    `${host} leads to a private address or to this machine, and a sealed session reaches such addresses only for named hosts; bind the host by its exact name, add it to a binding's allowed hosts, or start the session with --allow ${host}`,
  );
}

function privateUnchecked(host: string): Refusal {
  return refusal(
    'upstream_unreachable',
    `the upstream proxy resolves ${host}, so its address is unknown here, and --deny-private-upstreams refuses it; SVC_UPSTREAM_PROXY_PUBLIC_ONLY=on states that the proxy itself reaches public addresses only`,
  );
}

function notCheckedRefusal(host: string): Refusal {
  return refusal(
    'egress_address_not_allowed',
    `the upstream proxy resolves ${host}, so whether it leads to a private address is unknown here, and a sealed session reaches such hosts only if they are named; bind the host by its exact name, add it to a binding's allowed hosts, or start the session with --allow ${host}`,
  );
}

/** Errors of the network below TLS, as Node names them. */
const SYSTEM_ERROR = /^(ECONN|EHOST|ENET|ENOTFOUND|EAI_|ETIMEDOUT|EPIPE|EADDR|EACCES|EPERM|ECANCELED)/;

/** TLS session tickets by host. A resumed session skips the certificate chain, which was verified when the ticket was issued. */
class TicketCache {
  readonly #tickets = new Map<string, Buffer>();

  get(host: string): Buffer | undefined {
    return this.#tickets.get(host);
  }

  keep(host: string, ticket: Buffer): void {
    this.#tickets.delete(host);
    if (ticket.length > MAX_TICKET_BYTES) return;
    this.#tickets.set(host, ticket);
    const oldest = this.#tickets.size > MAX_TICKETS ? this.#tickets.keys().next().value : undefined;
    if (oldest !== undefined) this.#tickets.delete(oldest);
  }

  forget(host: string): void {
    this.#tickets.delete(host);
  }
}

const MAX_TICKETS = 1000;
/** A ticket includes the upstream's certificates; a larger one is not worth its memory. */
const MAX_TICKET_BYTES = 16 * 1024;
