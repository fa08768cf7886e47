import type { Endpoint } from './endpoint.ts';
import { exchange, type ExchangeEnd } from './exchange.ts';
import { BRIDGE_ERROR, errorText, INVALID_REQUEST, type Message, PARSE_ERROR, readMessage } from './message.ts';
import { messageHeaders, ownVersion } from './message_headers.ts';
import { SessionLink } from './session_link.ts';

interface BridgePorts {
  readonly endpoint: Endpoint;
  /** Writes a line to the client; resolves when the next can be written. */
  readonly write: (line: string) => Promise<void>;
  /** Receives messages for the log that have no place in the protocol. */
  readonly warn: (text: string) => void;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type Request = Extract<Message, { readonly kind: 'request' }>;

/** An open request of the client. */
interface Call {
  readonly message: Request;
  readonly aborting: AbortController;
  /** Lets later messages be sent. */
  readonly letNext: () => void;
  isAnswered: boolean;
  isCancelled: boolean;
}

/**
 * Bridges one client that speaks MCP over stdin and stdout to the sidecar's streamable HTTP, in both protocol generations: with
 * sessions, and with self-contained requests.
 */
export class Bridge {
  readonly #ports: BridgePorts;
  readonly #session: SessionLink;
  readonly #calls = new Map<string | number, Call>();
  #idle: (() => void) | null = null;
  /** Resolves when all messages so far were sent; messages are sent in order. */
  #sent: Promise<void> = Promise.resolve();

  constructor(ports: BridgePorts) {
    this.#ports = ports;
    const { endpoint, write, warn, pause } = ports;
    this.#session = new SessionLink({ endpoint, hand: write, warn, pause });
  }

  /** Handles one line from the client. */
  take(line: string): void {
    const message = readMessage(line);
    if (typeof message === 'number') void this.#ports.write(errorText(null, message, NOT_A_MESSAGE[message]));
    else if (message.kind === 'request') this.#takeRequest(message);
    else if (message.kind === 'notification' && message.method === 'notifications/cancelled') this.#cancel(message);
    else this.#tell(message);
  }

  /** Resolves when every call except subscriptions was answered. */
  async waitForAnswers(): Promise<void> {
    await this.#sent;
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  /** Cancels every call and ends the session. */
  async close(): Promise<void> {
    for (const call of this.#calls.values()) giveUp(call);
    await this.#session.close();
  }

  #takeRequest(message: Request): void {
    if (this.#calls.has(message.id)) {
      void this.#ports.write(errorText(message.id, INVALID_REQUEST, 'another request with this id is still open'));
      return;
    }
    const before = this.#sent;
    this.#sent = new Promise((letNext) => {
      const call: Call = { message, aborting: new AbortController(), letNext, isAnswered: false, isCancelled: false };
      this.#calls.set(message.id, call);
      void before
        .then(() => this.#run(call))
        .finally(() => {
          letNext();
          this.#calls.delete(message.id);
          if (this.#isIdle()) this.#idle?.();
        });
    });
  }

  async #run(call: Call): Promise<void> {
    const used = this.#session.current;
    let end = await this.#send(call);
    const isForgotten = end.kind === 'refused' && end.status === 404 && ownVersion(call.message) === null;
    if (isForgotten && used !== null && !call.isCancelled && (await this.#session.renew(used))) {
      end = await this.#send(call);
    }
    if (!call.isAnswered && !call.isCancelled) await this.#ports.write(problemText(call.message, end));
    if (end.kind === 'refused') this.#warnOf(end);
  }

  #send(call: Call): Promise<ExchangeEnd> {
    const { message, aborting, letNext } = call;
    const headers = messageHeaders(message, this.#session.current);
    // What a client sends after `initialize`, without waiting, belongs to the session that the answer names.
    const onSent = message.method === INITIALIZE ? {} : { onSent: letNext };
    const outgoing = { text: message.text, headers, signal: aborting.signal, ...onSent };
    return exchange(outgoing, { ...this.#ports, onMessage: (reply, sessionId) => this.#reply(call, reply, sessionId) });
  }

  async #reply(call: Call, reply: Message, sessionId: string | null): Promise<void> {
    if (reply.kind === 'response' && reply.id === call.message.id) {
      if (call.isAnswered || call.isCancelled) return;
      call.isAnswered = true;
      // Before the client gets its answer and uses the session.
      if (call.message.method === INITIALIZE) this.#session.begin(call.message, reply.result, sessionId);
      // The stream of the answer may stay open.
      call.letNext();
    }
    await this.#ports.write(reply.text);
  }

  /** Sends a notification, or the client's response to a request of the server. */
  #tell(message: Exclude<Message, Request>): void {
    // The server may wait for a response, such as to a ping, before it answers `initialize`.
    if (message.kind === 'response' && this.#isGreeting()) void this.#deliver(message);
    else this.#sent = this.#sent.then(() => this.#deliver(message));
  }

  #isGreeting(): boolean {
    return Array.from(this.#calls.values()).some(
      ({ message, isAnswered }) => message.method === INITIALIZE && !isAnswered,
    );
  }

  async #deliver(message: Exclude<Message, Request>): Promise<void> {
    const used = this.#session.current;
    let end = await this.#post(message);
    if (end.kind === 'refused' && end.status === 404 && used !== null && (await this.#session.renew(used))) {
      // Drop responses to requests of a session that the server has forgotten.
      if (message.kind === 'response') return;
      end = await this.#post(message);
    }
    if (end.kind === 'refused') this.#warnOf(end);
    else if (end.kind === 'failed') this.#ports.warn(`the sidecar cannot be reached: ${end.message}`);
    else if (message.kind === 'notification' && message.method === INITIALIZED) this.#session.listen();
  }

  #post(message: Exclude<Message, Request>): Promise<ExchangeEnd> {
    const headers = messageHeaders(message, this.#session.current);
    const onMessage = (reply: Message): Promise<void> => this.#ports.write(reply.text);
    return exchange({ text: message.text, headers }, { ...this.#ports, onMessage });
  }

  /** Without sessions, closing a call's stream cancels it; with a session, the server is notified. */
  #cancel(message: Extract<Message, { readonly kind: 'notification' }>): void {
    const { requestId } = message.params;
    const call =
      typeof requestId === 'string' || typeof requestId === 'number' ? this.#calls.get(requestId) : undefined;
    if (call === undefined) return;
    call.isCancelled = true;
    call.letNext();
    if (ownVersion(call.message) === null) this.#tell(message);
    // With a session, the server was notified; it sends no answer and may keep the stream open.
    void this.#sent.then(() => call.aborting.abort());
  }

  #warnOf({ status, problem }: Extract<ExchangeEnd, { readonly kind: 'refused' }>): void {
    if (problem.response === null)
      this.#ports.warn(`the sidecar refused (${status} ${problem.code}): ${problem.message}`);
  }

  /** Whether the client waits for an answer: not for a subscription or a cancelled call. */
  #isIdle(): boolean {
    return Array.from(this.#calls.values()).every(
      ({ message, isCancelled }) => isCancelled || message.method === 'subscriptions/listen',
    );
  }
}

const INITIALIZE = 'initialize';
const INITIALIZED = 'notifications/initialized';

const NOT_A_MESSAGE = {
  [PARSE_ERROR]: 'the line is not JSON',
  [INVALID_REQUEST]: 'the line is not a single JSON-RPC 2.0 message',
} as const;

function giveUp(call: Call): void {
  call.isCancelled = true;
  call.aborting.abort();
}

/** The error response for a request without another answer. */
function problemText({ id, method }: Request, end: ExchangeEnd): string {
  if (end.kind === 'failed') {
    return errorText(id, BRIDGE_ERROR, `svc: the sidecar cannot be reached (${end.message}); is svc still running?`);
  }
  if (end.kind === 'done') {
    return errorText(
      id,
      BRIDGE_ERROR,
      `svc: the connection ended before ${method} was answered; it may have been executed`,
    );
  }
  const { response, code, message } = end.problem;
  if (response !== null) return withId(response.text, id);
  return errorText(id, BRIDGE_ERROR, `svc: ${message}`, { code, status: end.status });
}

/** A refusal sent before the request was read has no id. */
function withId(text: string, id: string | number): string {
  const response: unknown = JSON.parse(text);
  return JSON.stringify(typeof response === 'object' ? { ...response, id } : response);
}
