import type { ClientHttp2Session, ClientHttp2Stream, ClientSessionOptions } from 'node:http2';
import { connect, sensitiveHeaders } from 'node:http2';
import type { TLSSocket } from 'node:tls';

import type { FieldList } from '../../shared/net/http2_head.ts';
import { requestFieldList } from '../../shared/net/http2_head.ts';
import type { RequestHead } from '../../shared/net/http1_head.ts';
import { CANCEL, StreamConnection } from '../../machine/connection/stream_connection.ts';
import { CONNECTION_WINDOW_BYTES, HEAD_MARGIN, REPLY_WINDOW_BYTES } from '../../machine/connection/stream_limits.ts';

export interface SessionLimits {
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
}

/** One HTTP/2 connection to an upstream, for the requests of one lane. */
export class UpstreamSession {
  readonly #session: ClientHttp2Session;

  /** The socket is connected and verified, and nothing was read from it. */
  constructor(socket: TLSSocket, host: string, { maxHeadBytes, maxHeaders }: SessionLimits) {
    const options: ClientSessionOptions & { readonly strictSingleValueFields: boolean } = {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: REPLY_WINDOW_BYTES,
        maxHeaderListSize: maxHeadBytes * HEAD_MARGIN,
      },
      maxHeaderListPairs: maxHeaders * HEAD_MARGIN,
      strictSingleValueFields: false,
    };
    // A session has no half of its connection left to use.
    socket.allowHalfOpen = false;
    this.#session = connect(`https://${host}`, options);
    this.#session.once('connect', () => this.#session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    // Its streams are lost with it, which is what their exchanges see.
    this.#session.on('error', () => undefined);
  }

  /** False once the upstream takes no new requests on it. */
  get isUsable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /** Sends a request's head; `isWhole` if it has no body. Throws if the session has just ended. */
  open(head: RequestHead, isWhole: boolean): UpstreamStream {
    const fields = Object.assign(requestFieldList(head), { [sensitiveHeaders]: [...(head.neverIndexed ?? [])] });
    return new UpstreamStream(this.#session.request(fields, { endStream: isWhole, waitForTrailers: !isWhole }));
  }

  /** Lets its requests end, and then closes. */
  retire(): void {
    if (this.isUsable) this.#session.close();
  }

  /** Drops the connection with its requests. */
  close(): void {
    this.#session.destroy();
  }

  onClosed(listener: () => void): void {
    if (this.#session.destroyed) listener();
    else this.#session.once('close', listener);
  }
}

/** A head from the upstream; `isLast`: it ends the stream. */
export interface ReceivedFields {
  readonly list: FieldList;
  readonly isLast: boolean;
}

const END_STREAM = 1;
/** Interim heads that may wait for a client that does not read. */
const MOST_WAITING_HEADS = 100;

/** The upstream's side of one request. */
export class UpstreamStream extends StreamConnection<ClientHttp2Stream> {
  readonly #heads: ReceivedFields[] = [];
  #waiter: ((head: ReceivedFields | null) => void) | null = null;
  #isLost = false;

  constructor(stream: ClientHttp2Stream) {
    super(stream, CANCEL);
    const receive = (_object: unknown, flags: number, list: FieldList): void => {
      this.#deliver({ list, isLast: (flags & END_STREAM) !== 0 });
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

  #deliver(head: ReceivedFields): void {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) waiter(head);
    else if (this.#heads.push(head) > MOST_WAITING_HEADS) this.destroy();
  }
}
