import { type ExchangeEnd, exchange, type ExchangePorts, listen } from './exchange.ts';
import type { Endpoint } from './endpoint.ts';
import { fieldsOf, type Fields, type Message } from './message.ts';
import { type ClientSession, sessionHeaders } from './message_headers.ts';

interface SessionLinkPorts {
  readonly endpoint: Endpoint;
  /** Passes a message to the client. */
  readonly hand: (text: string) => Promise<void>;
  readonly warn: (text: string) => void;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type Request = Extract<Message, { readonly kind: 'request' }>;

const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const GOODBYE_MS = 1_000;
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const LISTS = ['tools', 'prompts', 'resources'] as const;

/**
 * The session of a client that uses a revision with sessions: its headers, and the stream for the server's own messages. If the
 * server has forgotten the session, it is initialised again with the client's original request, and the client is told that
 * lists may have changed.
 */
export class SessionLink {
  readonly #ports: SessionLinkPorts;
  #current: ClientSession | null = null;
  #greeting: Request | null = null;
  #capabilities: Fields = {};
  #listening: AbortController | null = null;
  #renewing: Promise<boolean> | null = null;

  constructor(ports: SessionLinkPorts) {
    this.#ports = ports;
  }

  get current(): ClientSession | null {
    return this.#current;
  }

  /** Stores the session of an initialisation's reply. */
  begin(greeting: Request, result: Fields, sessionId: string | null): void {
    const version = result['protocolVersion'];
    if (typeof version !== 'string') return;
    this.#listening?.abort();
    this.#listening = null;
    this.#greeting = greeting;
    this.#capabilities = fieldsOf(result['capabilities']);
    this.#current = { id: sessionId, version };
  }

  /** Opens the server's stream after the client reported that it is ready. */
  listen(): void {
    if (this.#current === null || this.#listening !== null) return;
    this.#listening = new AbortController();
    void this.#keepListening(this.#current, this.#listening.signal);
  }

  /** Initialises a new session if the forgotten one is still current. False if the server refused. */
  renew(lost: ClientSession): Promise<boolean> {
    if (this.#current !== lost) return Promise.resolve(true);
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** Ends the stream and deletes the session at the server. */
  async close(): Promise<void> {
    this.#listening?.abort();
    const session = this.#current;
    this.#current = null;
    if (session === null || session.id === null) return;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), GOODBYE_MS);
    const call = { method: 'DELETE', headers: sessionHeaders(session), signal: late.signal } as const;
    await this.#ports.endpoint.call(call).then(
      (reply) => reply.resume(),
      () => undefined,
    );
    clearTimeout(timer);
  }

  async #renew(): Promise<boolean> {
    const greeting = this.#greeting;
    if (greeting === null) return false;
    let isGreeted = false;
    const { endpoint, warn } = this.#ports;
    const take = (message: Message, sessionId: string | null): Promise<void> => {
      if (
        message.kind === 'response' &&
        message.id === greeting.id &&
        message.result['protocolVersion'] !== undefined
      ) {
        this.begin(greeting, message.result, sessionId);
        isGreeted = true;
      }
      return Promise.resolve();
    };
    await exchange({ text: greeting.text, headers: {} }, { endpoint, warn, onMessage: take });
    if (!isGreeted) return false;
    await exchange({ text: INITIALIZED, headers: sessionHeaders(this.#current) }, this.#exchangePorts());
    this.listen();
    for (const list of LISTS) {
      if (fieldsOf(this.#capabilities[list])['listChanged'] !== true) continue;
      await this.#ports.hand(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }));
    }
    return true;
  }

  async #keepListening(session: ClientSession, signal: AbortSignal): Promise<void> {
    let lastEventId: string | null = null;
    let failures = 0;
    while (!signal.aborted) {
      const resumed = lastEventId === null ? {} : { 'last-event-id': lastEventId };
      const headers = { ...sessionHeaders(session), ...resumed };
      const end: ExchangeEnd = await listen({ headers, signal }, this.#exchangePorts());
      if (signal.aborted) return;
      if (end.kind === 'refused' && this.#isFinal(end.status, session)) return;
      failures = end.kind === 'done' ? 0 : failures + 1;
      const asked = end.kind === 'done' ? end.stream.retryMs : null;
      if (end.kind === 'done') lastEventId = end.stream.lastEventId ?? lastEventId;
      await this.#ports.pause(Math.min(MAX_RETRY_MS, (asked ?? RETRY_MS) * 2 ** failures), signal);
    }
  }

  /** A server without such a stream answers 405; one that has forgotten the session, 404. Other failures are retried. */
  #isFinal(status: number, session: ClientSession): boolean {
    if (status >= 500) return false;
    if (status === 404) void this.renew(session);
    else if (status !== 405) this.#ports.warn(`no more change notifications: the sidecar answered ${status}`);
    return true;
  }

  #exchangePorts(): ExchangePorts {
    const { endpoint, hand, warn } = this.#ports;
    return { endpoint, warn, onMessage: (message) => hand(message.text) };
  }
}
