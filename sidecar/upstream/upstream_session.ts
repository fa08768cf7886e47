import type { ClientHttp2Session, ClientHttp2Stream, ClientSessionOptions, Settings } from 'node:http2';
import { connect, constants, sensitiveHeaders } from 'node:http2';
import type { TLSSocket } from 'node:tls';

import type { FieldList } from '../../shared/net/http/http2_head.ts';
import { requestFieldList } from '../../shared/net/http/http2_head.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { CANCEL, type MarkedHeaders, NO_ERROR, StreamConnection } from '../../machine/connection/stream_connection.ts';
import { HEAD_MARGIN, openConnectionWindow, REPLY_WINDOW_BYTES } from '../../machine/connection/stream_limits.ts';

export interface SessionLimits {
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
  /** Also how long a request may wait for a stream of a session that has none left. */
  readonly connectTimeoutSeconds: number;
}

/** What an upstream said when it ended a session (RFC 9113 section 6.8). */
interface Goaway {
  readonly code: number;
  readonly lastStreamId: number;
}

const { NGHTTP2_REFUSED_STREAM: REFUSED_STREAM, NGHTTP2_STREAM_STATE_IDLE: IDLE } = constants;

/** One HTTP/2 connection to an upstream, for the requests of one lane. */
export class UpstreamSession {
  readonly mostWaitMs: number;
  readonly #session: ClientHttp2Session;
  #openStreams = 0;
  #isClean = true;
  #onArrival: (() => void) | null = null;
  #goaway: Goaway | null = null;
  #lostCode: string | null = null;
  readonly #fate: SessionFate = { endOf: (id) => this.#endOf(id), lostCode: () => this.#lostCode };
  #waiters: (() => void)[] = [];
  #takesWebSockets: boolean | null = null;
  #onWebSockets: (() => void) | null = null;

  /** The socket is connected and verified, and nothing was read from it. */
  constructor(socket: TLSSocket, host: string, { maxHeadBytes, maxHeaders, connectTimeoutSeconds }: SessionLimits) {
    this.mostWaitMs = connectTimeoutSeconds * 1000;
    const options: ClientSessionOptions & { readonly strictSingleValueFields: boolean } = {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: REPLY_WINDOW_BYTES,
        maxHeaderListSize: maxHeadBytes * HEAD_MARGIN,
      },
      maxHeaderListPairs: maxHeaders * HEAD_MARGIN,
      maxSendHeaderBlockLength: maxHeadBytes * HEAD_MARGIN,
      strictSingleValueFields: false,
    };
    // A session has no half of its connection left to use.
    socket.allowHalfOpen = false;
    this.#session = connect(`https://${host}`, options);
    openConnectionWindow(this.#session);
    // Its streams are lost with it, which is what their exchanges see.
    this.#session.on('error', (error: NodeJS.ErrnoException) => (this.#lostCode ??= error.code ?? null));
    this.#session.on('goaway', (code: number, lastStreamId: number) => {
      this.#goaway = { code, lastStreamId };
      this.#tellArrival();
      this.#wake();
    });
    for (const event of ['close', 'altsvc', 'origin', 'stream']) this.#session.on(event, () => this.#tellArrival());
    this.#session.on('remoteSettings', this.#readSettings);
    this.#session.on('close', this.#wake);
  }

  /** False once the upstream takes no new requests on it. */
  get isUsable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /** True if every request was answered whole, none is open, and the upstream has not said that it ends the session. */
  get isAtRest(): boolean {
    return this.isUsable && this.#openStreams === 0 && this.#isClean && this.#goaway === null;
  }

  /**
   * Calls back once at the session's end, and at what an upstream sends of its own accord: it closes, or names other servers.
   * Frames about what was sent, and pings, are no data of a reply. There is one listener; null removes it.
   */
  onArrival(listener: (() => void) | null): void {
    this.#onArrival = listener;
    if (!this.isUsable) this.#tellArrival();
  }

  #tellArrival(): void {
    const listener = this.#onArrival;
    this.#onArrival = null;
    listener?.();
  }

  /** False while as many streams are open as the upstream takes at once. True once it takes no more at all. */
  get hasRoom(): boolean {
    return !this.isUsable || this.#openStreams < (this.#session.remoteSettings.maxConcurrentStreams ?? 1);
  }

  /** Whether it takes WebSockets (RFC 8441 section 3); null until it has told its settings. */
  get takesWebSockets(): boolean | null {
    return this.#takesWebSockets ?? (this.isUsable ? null : false);
  }

  /** Calls back once when it is known to take WebSockets, at once if it is. There is one listener; null removes it. */
  onWebSockets(listener: (() => void) | null): void {
    if (this.#takesWebSockets === true) listener?.();
    else this.#onWebSockets = listener;
  }

  readonly #readSettings = ({ enableConnectProtocol }: Settings): void => {
    this.#takesWebSockets = enableConnectProtocol === true;
    if (this.#takesWebSockets) {
      this.#onWebSockets?.();
      this.#onWebSockets = null;
    }
    this.#wake();
  };

  /**
   * Waits until {@link hasRoom} or {@link takesWebSockets} may have changed, the client has left, or the time is over; at least for a turn, so that streams
   * that were reset in one turn count as open at once.
   */
  async waitForRoom(ms: number, client: Connection | null): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(ms, 0));
    const stopWatching = client?.onClosed(resolve);
    this.#waiters.push(resolve);
    await promise;
    await new Promise((go) => setImmediate(go));
    clearTimeout(timer);
    stopWatching?.();
    this.#waiters = this.#waiters.filter((waiter) => waiter !== resolve);
  }

  /** Sends a request's head; `isWhole` if it has no body. Null if the session has ended. */
  open(head: RequestHead, isWhole: boolean): UpstreamStream | null {
    if (!this.isUsable) return null;
    const fields = Object.assign(requestFieldList(head), {
      [sensitiveHeaders]: [...(head.neverIndexed ?? [])],
      // Any value: without it the library adds an `:authority` to a request that has none.
      host: '',
    });
    const stream = this.#session.request(fields, { endStream: isWhole, waitForTrailers: !isWhole });
    this.#openStreams += 1;
    stream.once('close', () => {
      this.#openStreams -= 1;
      this.#isClean &&= stream.rstCode === NO_ERROR && !stream.aborted;
      this.#wake();
    });
    return new UpstreamStream(stream, this.#fate);
  }

  /** How the session ended for a stream. `lost`: without a reason. */
  #endOf(id: number | undefined): SessionEnd {
    const { code, lastStreamId } = this.#goaway ?? { code: NO_ERROR, lastStreamId: Infinity };
    if (id !== undefined && id > lastStreamId) return 'before_it';
    if (code !== NO_ERROR) return 'refused';
    return this.#session.destroyed ? 'lost' : 'open';
  }

  readonly #wake = (): void => {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  };

  /** Lets its requests end, and then closes. */
  retire(): void {
    if (this.isUsable) this.#session.close();
    this.#wake();
  }

  /** Drops the connection with its requests. */
  destroy(): void {
    this.#session.destroy();
  }

  /** Calls back once when the session is gone, immediately if it already is. Returns a function to cancel. */
  onClosed(listener: () => void): () => void {
    if (this.#session.destroyed) listener();
    else this.#session.once('close', listener);
    return () => void this.#session.off('close', listener);
  }
}

/** A head from the upstream, with the names that it marked as never indexed; `isLast`: it ends the stream. */
export interface ReceivedFields {
  readonly list: FieldList;
  readonly neverIndexed: readonly string[];
  readonly isLast: boolean;
}

/**
 * How a session ended for one of its streams. `before_it`: the upstream said that it did nothing with the stream; `refused`: it
 * named an error; `lost`: it named none.
 */
type SessionEnd = 'open' | 'before_it' | 'refused' | 'lost';

/** What became of a session, for its streams. */
interface SessionFate {
  readonly endOf: (id: number | undefined) => SessionEnd;
  /** The code with which the connection was lost, if that is known. */
  readonly lostCode: () => string | null;
}

const END_STREAM = 1;
/** Interim heads that may wait for a client that does not read. */
const MOST_WAITING_HEADS = 100;

/** The upstream's side of one request. */
export class UpstreamStream extends StreamConnection<ClientHttp2Stream> {
  readonly #heads: ReceivedFields[] = [];
  #waiter: ((head: ReceivedFields | null) => void) | null = null;
  readonly #session: SessionFate;
  #isLost = false;

  constructor(stream: ClientHttp2Stream, session: SessionFate) {
    super(stream, CANCEL);
    this.#session = session;
    const receive = (headers: MarkedHeaders, flags: number, list: FieldList): void => {
      this.#deliver({ list, neverIndexed: headers[sensitiveHeaders] ?? [], isLast: (flags & END_STREAM) !== 0 });
    };
    stream.on('headers', receive);
    stream.on('response', receive);
    this.onClosed(() => {
      this.#isLost = true;
      this.#waiter?.(null);
    });
  }

  /** The next head, interim or final; null if the stream is lost before it. */
  nextHead(): Promise<ReceivedFields | null> {
    const head = this.#heads.shift();
    if (head !== undefined) return Promise.resolve(head);
    if (this.#isLost) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  /** False while the request's head is still held here. */
  get isSent(): boolean {
    return this.stream.destroyed || (this.stream.id !== undefined && this.stream.state.state !== IDLE);
  }

  /** Of a lost stream: the upstream has said that it did nothing with it (RFC 9113 section 8.7). */
  get isUntouched(): boolean {
    const end = this.#session.endOf(this.stream.id);
    // A session that ends with this code gives it to streams that the upstream may have processed, too.
    return end === 'before_it' || (end !== 'refused' && this.resetCode === REFUSED_STREAM);
  }

  /** Of a lost stream: its connection was lost, and the upstream said no reason. */
  get lostWithSession(): boolean {
    return this.#session.endOf(this.stream.id) === 'lost';
  }

  /** Of a lost stream: the code with which its connection was lost, if that is known. */
  get lostCode(): string | null {
    return this.#session.lostCode();
  }

  #deliver(head: ReceivedFields): void {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) waiter(head);
    else if (this.#heads.push(head) > MOST_WAITING_HEADS) this.destroy();
  }
}
