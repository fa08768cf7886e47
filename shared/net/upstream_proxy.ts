import { err, ok, type Result } from '../model/result.ts';
import { Secret } from '../model/secret.ts';
import { canonicalHost } from './host.ts';
import { findHeadEnd } from './http/http1_head.ts';
import { isExempt, type NoProxy, parseNoProxy } from './no_proxy.ts';

/** The settings of an upstream proxy. */
export const UPSTREAM_PROXY = 'SVC_UPSTREAM_PROXY';
export const UPSTREAM_PROXY_PUBLIC_ONLY = 'SVC_UPSTREAM_PROXY_PUBLIC_ONLY';

/**
 * The proxy through which svc's own connections leave a company's network (decision 0069). It sees the names of hosts and
 * TLS bytes: every connection through it is verified for its host, so it can only make one fail.
 */
export interface UpstreamProxy {
  /** The proxy itself is reached over TLS. */
  readonly isSecure: boolean;
  /** In canonical form; IPv6 in brackets. */
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization` (RFC 7617). */
  readonly authorization: Secret | null;
  /** The variable that names it, for messages. */
  readonly source: string;
  readonly exempt: NoProxy;
  /** The person who runs svc states that the proxy itself connects to public addresses only. */
  readonly isPublicOnly: boolean;
}

/** A host as a proxy is asked for it. */
export interface ProxyTarget {
  /** In canonical form; IPv6 in brackets. */
  readonly host: string;
  readonly port: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The upstream proxy of an environment; null without one. `SVC_UPSTREAM_PROXY` wins over the `HTTPS_PROXY` that other programs
 * read, and `off` means none. Errors name the variable and never quote its value, which may hold a password.
 */
export function readUpstreamProxy(env: Environment): Result<UpstreamProxy | null, string> {
  const publicOnly = env[UPSTREAM_PROXY_PUBLIC_ONLY] ?? 'off';
  if (publicOnly !== 'on' && publicOnly !== 'off') return err(`${UPSTREAM_PROXY_PUBLIC_ONLY} is neither on nor off`);
  const source = namedIn(env);
  const text = source === null ? undefined : env[source];
  if (source === null || text === undefined || (source === UPSTREAM_PROXY && text === 'off')) return ok(null);
  const proxy = parseProxy(text);
  if (!proxy.ok) return err(`${source} ${proxy.error}${source === UPSTREAM_PROXY ? '' : OTHER_PROXY}`);
  const exempt = parseNoProxy(noProxyText(env));
  return ok({ ...proxy.value, source, exempt, isPublicOnly: publicOnly === 'on' });
}

/** The same settings, for a program that gets no others. None if there are none, as a session's own proxy is none. */
export function upstreamProxyVariables(env: Environment): Readonly<Record<string, string>> {
  const source = namedIn(env);
  const text = source === null ? undefined : env[source];
  if (source === null || text === undefined) return {};
  const publicOnly = env[UPSTREAM_PROXY_PUBLIC_ONLY];
  return {
    // Under its own name: npm, which installs MCP servers, reads HTTPS_PROXY.
    [source.toUpperCase()]: text,
    NO_PROXY: noProxyText(env),
    ...(publicOnly !== undefined && { [UPSTREAM_PROXY_PUBLIC_ONLY]: publicOnly }),
  };
}

/** The user's `NO_PROXY`, in the spelling that programs prefer. */
export function noProxyText(env: Environment): string {
  return env['no_proxy'] ?? env['NO_PROXY'] ?? '';
}

const OTHER_PROXY = `; for svc alone, set ${UPSTREAM_PROXY} to another proxy, or to off`;

function namedIn(env: Environment): string | null {
  const names = [UPSTREAM_PROXY, 'https_proxy', 'HTTPS_PROXY'];
  return names.find((name) => env[name] !== undefined && (name === UPSTREAM_PROXY || isForeign(env[name]))) ?? null;
}

/** False for an empty variable, and for the proxy of a session of svc: a sidecar that is started in one must not call itself. */
function isForeign(text: string | undefined): boolean {
  return text !== undefined && text !== '' && !/^http:\/\/ses_[0-7][0-9a-hjkmnp-tv-z]{25}:/.test(text);
}

function parseProxy(text: string): Result<Pick<UpstreamProxy, 'isSecure' | 'host' | 'port' | 'authorization'>, string> {
  const written = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(written) ? new URL(written) : null;
  if (url === null) return err('is not a URL: use one such as http://proxy.example.com:3128');
  const isSecure = url.protocol === 'https:';
  if (!isSecure && url.protocol !== 'http:')
    return err('is not an http:// or https:// proxy, which are the ones svc uses');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    return err('has something after the port: remove it');
  const host = canonicalHost(url.hostname);
  if (!host.ok) return err('names no valid host');
  const authorization = basicAuthorization(url);
  if (!authorization.ok) return authorization;
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  return port === 0
    ? err('has the port 0: use the one that the proxy listens on')
    : ok({ isSecure, host: host.value, port, authorization: authorization.value });
}

function basicAuthorization({ username, password }: URL): Result<Secret | null, string> {
  if (username === '' && password === '') return ok(null);
  const [user, word] = [decodePercent(username), decodePercent(password)];
  if (user === null || word === null)
    return err('has a user name or password with a "%" that encodes nothing: write %25');
  if (user.includes(':')) return err('has a user name with a colon, which basic authentication does not allow');
  const bytes = new TextEncoder().encode(`${user}:${word}`);
  if (bytes.some((byte) => byte < 0x20 || byte === 0x7f))
    return err('has a control character in its user name or password');
  return ok(new Secret(`Basic ${btoa(String.fromCharCode(...bytes))}`));
}

function decodePercent(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Whether a connection goes through the proxy. Names and addresses of this machine never do. */
export function goesThrough(proxy: UpstreamProxy, { host, port }: ProxyTarget): boolean {
  return !LOOPBACK.test(host) && !isExempt(proxy.exempt, host, port);
}

const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** The origin of the proxy, without its user name and password. */
export function proxyOrigin({ isSecure, host, port }: UpstreamProxy): string {
  return `${isSecure ? 'https' : 'http'}://${host}:${port}`;
}

/** The head with which a tunnel is asked for (RFC 9110, section 9.3.6). Nothing in it comes from an agent but the host. */
export function connectHead({ authorization }: UpstreamProxy, { host, port }: ProxyTarget): string {
  const credentials = authorization === null ? '' : `Proxy-Authorization: ${authorization.reveal()}\r\n`;
  return `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n${credentials}\r\n`;
}

/** Why there is no reply to CONNECT when its time is up. A proxy that accepts connections often waits itself, for the target. */
export function noReplyInTime(isConnected: boolean): string {
  return isConnected
    ? 'the upstream proxy did not answer in time: it may be unable to reach the host'
    : 'the upstream proxy cannot be reached (no answer in time)';
}

/** Whether a failure is one of the host that was asked for, so that the proxy itself may open others. */
export function isAboutTarget(failure: string): boolean {
  return /\((?:403|5\d\d)\)$|: it may be unable to reach the host$/.test(failure);
}

/** The largest reply to CONNECT, with all of its interim heads. */
const MAX_REPLY_BYTES = 16 * 1024;

/** The tunnel is open; `rest` was sent through it already. */
export interface OpenedTunnel {
  readonly rest: Uint8Array;
}

/** Reads the reply to CONNECT. Nothing of it is passed on but its status. */
export class ConnectReply {
  readonly #proxy: UpstreamProxy;
  #bytes: Uint8Array = new Uint8Array();
  /** Where the next head starts: a final one follows any interim ones (RFC 9110, section 15.2). */
  #at = 0;

  constructor(proxy: UpstreamProxy) {
    this.#proxy = proxy;
  }

  /** Null until the reply is complete; then the tunnel, or why there is none. */
  read(chunk: Uint8Array): Result<OpenedTunnel, string> | null {
    this.#bytes = joinBytes(this.#bytes, chunk);
    for (;;) {
      const end = findHeadEnd(this.#bytes, this.#at);
      const sent = end < 0 ? this.#bytes.length : end;
      if (sent > MAX_REPLY_BYTES) return err(`the upstream proxy sent a reply of more than ${MAX_REPLY_BYTES} bytes`);
      if (end < 0) return null;
      const head = String.fromCharCode(...this.#bytes.subarray(this.#at, end));
      const status = Number(/^HTTP\/1\.[01] ([1-9]\d\d)[ \r]/.exec(head)?.[1] ?? 0);
      if (status === 0) return err('the upstream proxy does not answer in HTTP/1.1');
      if (status >= 300) return err(refusedBy(status, head, this.#proxy));
      if (status >= 200) return ok({ rest: this.#bytes.subarray(end) });
      this.#at = end;
    }
  }
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

function refusedBy(status: number, head: string, proxy: UpstreamProxy): string {
  // tinyproxy answers a wrong password with 401.
  if (status === 407 || status === 401) return `the upstream proxy ${authenticationProblem(head, proxy)} (${status})`;
  if (status === 403) return 'the upstream proxy does not allow this connection (403)';
  // tinyproxy answers 500 for a name that it cannot resolve, others a gateway's 502 to 504.
  return `the upstream proxy ${status >= 500 ? 'could not reach it' : 'refused the connection'} (${status})`;
}

function authenticationProblem(head: string, { authorization }: UpstreamProxy): string {
  const offers = head.split('\r\n').filter((line) => /^proxy-authenticate:/i.test(line));
  if (offers.length > 0 && !offers.some((line) => /[:,\s]basic(?:[,\s]|$)/i.test(line))) {
    return 'asks for a kind of authentication that svc does not know: it knows basic authentication';
  }
  return authorization === null ? 'asks for a user name and a password' : 'does not accept the user name and password';
}
