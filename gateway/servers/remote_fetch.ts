import type { lookup as systemLookup } from 'node:dns';
import { Agent as HttpAgent, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import type { FetchLike } from '@modelcontextprotocol/client';
import { isLoopbackHostname } from '../../shared/model/loopback_hostname.ts';
import { replyTo, responseOf, toRequest } from '../../machine/node_fetch.ts';
import { createTrustingContext } from '../../machine/trusted_roots.ts';
import { canonicalHost } from '../../shared/net/host.ts';
import { goesThrough, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { checkedLookup } from '../../machine/connection/checked_lookup.ts';
import { ProxyAgent } from '../../machine/connection/proxy_agent.ts';
import { isIpLiteral, isRefusedAddress } from '../../shared/net/ip_literal.ts';
import { pause } from '../../machine/pause.ts';
import { EventScanner, NO_EVENTS } from './event_scanner.ts';

export interface RemoteFetchOptions {
  /** The only origin that anything is sent to. */
  readonly origin: string;
  /** The control plane is on this machine: loopback over http and private addresses are allowed. */
  readonly isLocal: boolean;
  /** Additional PEM roots to trust. */
  readonly extraRoots: readonly string[];
  readonly proxy?: UpstreamProxy | null;
  readonly maxMessageBytes: number;
  readonly maxBytesPerSecond: number;
  /** Of a stream; more events wait. */
  readonly maxMessagesPerSecond: number;
  /** Called if a reply was ended for its size; otherwise its reader would wait forever. */
  readonly onFault: (message: string) => void;
  /** Waits; by default for that time. */
  readonly wait?: (ms: number) => Promise<void>;
  /** Resolves names; defaults to the system's resolver. */
  readonly lookup?: typeof systemLookup;
}

export interface RemoteFetch {
  readonly fetch: FetchLike;
  /** Closes kept connections. */
  close(): void;
}

/**
 * The fetch for the SDK's transports of one remote server: only to its origin, no redirects, no compression, no private
 * addresses unless local, and no message over the limit.
 */
export function createRemoteFetch(options: RemoteFetchOptions): RemoteFetch {
  const agent = agentOf(options);
  return {
    fetch: (target, init = {}) => send(options, agent, new URL(target), init),
    close: () => agent.destroy(),
  };
}

function agentOf({ origin, extraRoots, proxy = null }: RemoteFetchOptions): HttpAgent {
  const kept = { keepAlive: true, maxSockets: 256, maxFreeSockets: 4, timeout: 600_000 };
  if (new URL(origin).protocol === 'http:') return new HttpAgent(kept);
  const secure = { ...kept, secureContext: createTrustingContext(extraRoots) };
  return proxy === null ? new HttpsAgent(secure) : new ProxyAgent(proxy, secure);
}

/** Whether the upstream proxy resolves the name, so that its address is unknown here. */
function isUnchecked({ isLocal, proxy = null }: RemoteFetchOptions, url: URL): boolean {
  const host = canonicalHost(url.hostname);
  if (isLocal || proxy === null || proxy.isPublicOnly || !host.ok || isIpLiteral(host.value)) return false;
  return goesThrough(proxy, { host: host.value, port: url.port === '' ? 443 : Number(url.port) });
}

async function send(options: RemoteFetchOptions, agent: HttpAgent, url: URL, init: RequestInit): Promise<Response> {
  if (url.origin !== options.origin) throw new TypeError(`${url.origin} is not the origin of this server`);
  if (!options.isLocal && isRefusedLiteral(url.hostname)) throw new PrivateAddress();
  if (isUnchecked(options, url)) throw new UncheckedAddress();
  const { what, body } = toRequest(init, agent);
  const checked: RequestOptions = {
    ...what,
    ...(options.isLocal ? {} : { lookup: checkedLookup(isRefusedAddress, () => new PrivateAddress(), options.lookup) }),
  };
  return limitedResponse(await replyTo(url, checked, body), options);
}

function limitedResponse(reply: IncomingMessage, options: RemoteFetchOptions): Response {
  const { statusCode: status = 502 } = reply;
  const { 'content-encoding': coding = 'identity', 'content-type': type = '' } = reply.headers;
  if (coding !== 'identity') {
    reply.destroy();
    throw new TypeError('the reply is compressed although no compression was requested');
  }
  if (status < 200 || status > 599) {
    reply.destroy();
    throw new TypeError(`the reply has the status ${status}`);
  }
  reply.on('error', () => undefined);
  const isStream = type.startsWith('text/event-stream');
  return responseOf(reply, () => Readable.from(limitReply(reply, isStream, options)));
}

/** Shorter pauses are added up: a timer would make each of them longer. */
const LEAST_PAUSE_MS = 5;

/** Streams the bytes of a reply with limits for their rate, that of their messages, and the size of a message. */
async function* limitReply(
  reply: IncomingMessage,
  isStream: boolean,
  options: RemoteFetchOptions,
): AsyncGenerator<Uint8Array> {
  const { wait = pause } = options;
  let ofMessage = 0;
  let owedMs = 0;
  const events = new EventScanner();
  for await (const chunk of reply as AsyncIterable<Uint8Array>) {
    // For a stream: the bytes after the last complete event; events within one chunk are small.
    const { count, lastEnd } = isStream ? events.scan(chunk) : NO_EVENTS;
    ofMessage = lastEnd < 0 ? ofMessage + chunk.length : chunk.length - lastEnd;
    if (ofMessage > options.maxMessageBytes) {
      const message = `it sent a message of more than ${options.maxMessageBytes} bytes`;
      options.onFault(message);
      throw new TypeError(message);
    }
    yield chunk;
    const forBytes = (chunk.length * 1000) / options.maxBytesPerSecond;
    // At least one, because a server may send each event in parts.
    const forMessages = isStream ? (Math.max(1, count) * 1000) / options.maxMessagesPerSecond : 0;
    owedMs += Math.max(forBytes, forMessages);
    if (owedMs < LEAST_PAUSE_MS) continue;
    await wait(owedMs);
    owedMs = 0;
  }
}

function isRefusedLiteral(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return (isIP(host) !== 0 && isRefusedAddress(host)) || isLoopbackHostname(hostname);
}

/** The name resolves to a private address. */
class PrivateAddress extends Error {
  readonly code = 'EPRIVATE';
}

/** The upstream proxy resolves the name, and the control plane is not this machine's own. */
class UncheckedAddress extends Error {
  readonly code = 'EUNCHECKED';
  override readonly message =
    'the upstream proxy resolves its name, so its address is unknown here: SVC_UPSTREAM_PROXY_PUBLIC_ONLY=on states that the proxy reaches public addresses only';
}
