import { Agent, type AgentOptions } from 'node:https';
import { type Duplex, PassThrough } from 'node:stream';
import type { SecureContext } from 'node:tls';
import { canonicalHost } from '../../shared/net/host.ts';
import { goesThrough, type ProxyTarget, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { dialThroughProxy } from './dial_through_proxy.ts';

/** No connection through the upstream proxy. The message may be shown. */
export class ProxyFailed extends Error {
  override readonly name = 'ProxyFailed';
}

/** Calls have time limits of their own; this one ends a connection that nobody waits for. */
const CONNECT_TIMEOUT_MS = 30_000;

type ConnectOptions = Parameters<Agent['createConnection']>[0];
type Connected = NonNullable<Parameters<Agent['createConnection']>[1]>;

/** An https agent whose connections go through the upstream proxy, but for exempt hosts. TLS is with the target. */
export class ProxyAgent extends Agent {
  readonly #proxy: UpstreamProxy;
  readonly #secureContext: SecureContext;
  readonly #timeoutMs: number;

  constructor(
    proxy: UpstreamProxy,
    options: AgentOptions & { readonly secureContext: SecureContext; readonly connectTimeoutMs?: number },
  ) {
    super(options);
    this.#proxy = proxy;
    this.#secureContext = options.secureContext;
    this.#timeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  }

  override createConnection(options: ConnectOptions, callback: Connected): Duplex | null | undefined {
    const host = canonicalHost(bracketed(options.host ?? ''));
    const target = { host: host.ok ? host.value : '', port: Number(options.port ?? 443) };
    if (!goesThrough(this.#proxy, target)) return super.createConnection(options, callback);
    void this.#dialThrough(target, options, callback);
    return undefined;
  }

  async #dialThrough(target: ProxyTarget, options: ConnectOptions, callback: Connected): Promise<void> {
    const [proxy, secureContext, timeoutMs] = [this.#proxy, this.#secureContext, this.#timeoutMs];
    const dialled = await dialThroughProxy({ proxy, target, secureContext, timeoutMs }).connected;
    // Node's types want a socket with an error too.
    if (!dialled.ok) return callback(new ProxyFailed(dialled.error), new PassThrough());
    const through: ConnectOptions & { readonly socket: Duplex } = { ...options, socket: dialled.value };
    const socket = super.createConnection(through, callback);
    return socket === null || socket === undefined ? undefined : callback(null, socket);
  }
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
