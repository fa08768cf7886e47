import type { Endpoint } from './endpoint.ts';
import { exchange, type ExchangeEnd } from './exchange.ts';
import { BRIDGE_ERROR, errorText, INVALID_REQUEST, type Message, PARSE_ERROR, readMessage } from './message.ts';
import { messageHeaders, ownVersion } from './message_headers.ts';
import { SessionLink } from './session_link.ts';

export interface BridgePorts {
  readonly endpoint: Endpoint;
  /** Writes a line to the client; resolves when there is room for the next one. */
  readonly write: (line: string) => Promise<void>;
  /** Told of what the client cannot be. */
  readonly warn: (text: string) => void;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type Request = Extract<Message, { readonly kind: 'request' }>;

/** A request of the client that has not been answered. */
interface Call {
  readonly message: Request;
  readonly aborting: AbortController;
  isAnswered: boolean;
  isCancelled: boolean;
}

/**
 * Carries the messages of one client that speaks MCP over its standard streams to the daemon's streamable HTTP and back,
 * in both generations of the protocol: with sessions, and with everything in each request.
 */
export class Bridge {
  readonly #ports: BridgePorts;
  readonly #session: SessionLink;
  readonly #calls = new Map<string | number, Call>();
  #idle: (() => void) | null = null;
  /** Resolves when everything that came so far is on its way: each message is sent after the ones before it. */
  #sent: Promise<void> = Promise.resolve();

  constructor(ports: BridgePorts) {
    this.#ports = ports;
    const { endpoint, write, warn, pause } = ports;
    this.#session = new SessionLink({ endpoint, hand: write, warn, pause });
  }

  /** Takes one line of the client. */
  take(line: string): void {
    const message = readMessage(line);
    if (typeof message === 'number') void this.#ports.write(errorText(null, message, NOT_A_MESSAGE[message]));
    else if (message.kind === 'request') this.#takeRequest(message);
    else if (message.kind === 'notification' && message.method === 'notifications/cancelled') this.#cancel(message);
    else this.#tell(message);
  }

  /** Resolves when every call that ends by itself has been answered. */
  async waitForAnswers(): Promise<void> {
    await this.#sent;
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  /** Gives every call up, and ends the session. */
  async close(): Promise<void> {
    for (const call of this.#calls.values()) giveUp(call);
    await this.#session.close();
  }

  #takeRequest(message: Request): void {
    if (this.#calls.has(message.id)) {
      void this.#ports.write(errorText(message.id, INVALID_REQUEST, 'another request with this id is being answered'));
      return;
    }
    const call: Call = { message, aborting: new AbortController(), isAnswered: false, isCancelled: false };
    this.#calls.set(message.id, call);
    const before = this.#sent;
    this.#sent = new Promise((resolve) => {
      void before
        .then(() => this.#run(call, resolve))
        .finally(() => {
          resolve();
          this.#calls.delete(message.id);
          if (this.#isIdle()) this.#idle?.();
        });
    });
  }

  async #run(call: Call, onSent: () => void): Promise<void> {
    const used = this.#session.current;
    let end = await this.#send(call, onSent);
    const isForgotten = end.kind === 'refused' && end.status === 404 && ownVersion(call.message) === null;
    if (isForgotten && used !== null && !call.isCancelled && (await this.#session.renew(used))) {
      end = await this.#send(call, onSent);
    }
    if (!call.isAnswered && !call.isCancelled) await this.#ports.write(problemText(call.message, end));
    if (end.kind === 'refused') this.#warnOf(end);
  }

  #send(call: Call, onSent: () => void): Promise<ExchangeEnd> {
    const { message, aborting } = call;
    const headers = messageHeaders(message, this.#session.current);
    const outgoing = { text: message.text, headers, signal: aborting.signal, onSent };
    return exchange(outgoing, { ...this.#ports, onMessage: (reply, sessionId) => this.#reply(call, reply, sessionId) });
  }

  async #reply(call: Call, reply: Message, sessionId: string | null): Promise<void> {
    if (reply.kind === 'response' && reply.id === call.message.id) {
      if (call.isAnswered || call.isCancelled) return;
      call.isAnswered = true;
      // Before the client has its answer, and goes on with the session.
      if (call.message.method === 'initialize') this.#session.begin(call.message, reply.result, sessionId);
    }
    await this.#ports.write(reply.text);
  }

  /** A notification, or the client's response to a request of the server. */
  #tell(message: Exclude<Message, Request>): void {
    this.#sent = this.#sent.then(() => this.#told(message));
  }

  async #told(message: Exclude<Message, Request>): Promise<void> {
    const used = this.#session.current;
    let end = await this.#post(message);
    if (end.kind === 'refused' && end.status === 404 && used !== null && (await this.#session.renew(used))) {
      // What a forgotten session asked is nobody's question any more.
      if (message.kind === 'response') return;
      end = await this.#post(message);
    }
    if (end.kind === 'refused') this.#warnOf(end);
    else if (end.kind === 'failed') this.#ports.warn(`the daemon cannot be reached: ${end.message}`);
    else if (message.kind === 'notification' && message.method === INITIALIZED) this.#session.listen();
  }

  #post(message: Exclude<Message, Request>): Promise<ExchangeEnd> {
    const headers = messageHeaders(message, this.#session.current);
    const onMessage = (reply: Message): Promise<void> => this.#ports.write(reply.text);
    return exchange({ text: message.text, headers }, { ...this.#ports, onMessage });
  }

  /** Without sessions, a call is cancelled by closing its stream; with one, by telling the server. */
  #cancel(message: Extract<Message, { readonly kind: 'notification' }>): void {
    const { requestId } = message.params;
    const call =
      typeof requestId === 'string' || typeof requestId === 'number' ? this.#calls.get(requestId) : undefined;
    if (call === undefined) return;
    call.isCancelled = true;
    if (ownVersion(call.message) === null) this.#tell(message);
    // With a session the server has been told by then; it owes no answer, and may keep the stream open for good.
    void this.#sent.then(() => call.aborting.abort());
  }

  #warnOf({ status, problem }: Extract<ExchangeEnd, { readonly kind: 'refused' }>): void {
    if (problem.response === null)
      this.#ports.warn(`the daemon refused (${status} ${problem.code}): ${problem.message}`);
  }

  /** A subscription goes on until the client ends it, and nobody waits for what was cancelled. */
  #isIdle(): boolean {
    return Array.from(this.#calls.values()).every(
      ({ message, isCancelled }) => isCancelled || message.method === 'subscriptions/listen',
    );
  }
}

const INITIALIZED = 'notifications/initialized';

const NOT_A_MESSAGE = {
  [PARSE_ERROR]: 'the line is not JSON',
  [INVALID_REQUEST]: 'the line is no single JSON-RPC 2.0 message',
} as const;

function giveUp(call: Call): void {
  call.isCancelled = true;
  call.aborting.abort();
}

/** The error that a request is answered with when nobody else has answered it. */
function problemText({ id, method }: Request, end: ExchangeEnd): string {
  if (end.kind === 'failed') {
    return errorText(id, BRIDGE_ERROR, `svc: the daemon cannot be reached (${end.message}); is svc still running?`);
  }
  if (end.kind === 'done') {
    return errorText(
      id,
      BRIDGE_ERROR,
      `svc: the connection ended before ${method} was answered; it may have been done`,
    );
  }
  const { response, code, message } = end.problem;
  if (response !== null) return withId(response.text, id);
  return errorText(id, BRIDGE_ERROR, `svc: ${message}`, { code, status: end.status });
}

/** A refusal that was sent before the request was read names no id. */
function withId(text: string, id: string | number): string {
  const response: unknown = JSON.parse(text);
  return JSON.stringify(typeof response === 'object' ? { ...response, id } : response);
}
