import { STATUS_CODES } from 'node:http';
import type { ClientHttp2Session, ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { Duplex } from 'node:stream';

import {
  BodyReader,
  encodeChunk,
  encodeLastChunk,
  requestFraming,
  replyFraming,
} from '../../shared/net/http/http1_framing.ts';
import type { HeaderField, ReplyHead, RequestHead } from '../../shared/net/http/http1_head.ts';
import { findHeadEnd, parseReplyHead, parseRequestHead } from '../../shared/net/http/http1_head.ts';

/**
 * Peers that a test talks to in HTTP/1.1, and that speak HTTP/2 to the data plane, so that a test of one version is a test of
 * the other. Names are told in the usual case (`X-Request-Id`), and a body without a length in one chunk for each piece.
 */

const LIMITS = { maxHeaders: 10_000 };

/** A client: what is written to it are requests, each on its own stream; what it gives are the replies, in order. */
export class StreamClient extends Duplex {
  readonly #session: ClientHttp2Session;
  readonly #turns: ReplyText[] = [];
  readonly #message: MessageReader;
  #stream: ClientHttp2Stream | null = null;

  constructor(session: ClientHttp2Session) {
    super({ allowHalfOpen: true });
    this.#session = session;
    session.on('close', () => this.destroy());
    this.#message = new MessageReader({
      head: (text) => this.#open(text),
      data: (piece) => void this.#stream?.write(piece),
      end: () => void this.#stream?.end(),
    });
  }

  override _read(): void {
    // Everything is pushed as it arrives.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#message.push(chunk);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#session.destroy();
    done(error);
  }

  #open(text: string): BodyReader | null {
    const head = parseRequestHead(text, LIMITS);
    if (!head.ok) throw new Error(`the test's request cannot be sent over HTTP/2: ${head.error.message}`);
    const framing = requestFraming(head.value);
    if (!framing.ok) throw new Error(`the test's request cannot be sent over HTTP/2: ${framing.error.message}`);
    const { method, fields } = head.value;
    const isWhole = framing.value.kind === 'none';
    const stream = this.#session.request(Object.assign(fieldList(head.value), ADDS_NONE), { endStream: isWhole });
    const closes = fields.some(({ name, value }) => name === 'connection' && value === 'close');
    const turn = new ReplyText(stream, { method, closes }, () => this.#tell());
    this.#turns.push(turn);
    this.#stream = stream;
    return isWhole ? null : new BodyReader(framing.value);
  }

  /** Passes on the replies in the order of their requests. */
  #tell(): void {
    for (let turn = this.#turns[0]; turn !== undefined; turn = this.#turns[0]) {
      const text = turn.take();
      if (text !== '' && !this.destroyed) this.push(Buffer.from(text, 'latin1'));
      if (turn.isReset) return void this.destroy();
      if (!turn.isDone) return;
      this.#turns.shift();
      if (turn.closes && !this.destroyed) this.push(null);
    }
  }
}

/** Without this property the library adds an `:authority` to a request that has none. */
const ADDS_NONE = { host: '' };

/** Names that frame a message of HTTP/1.1, or belong to its connection. */
const ONLY_IN_1: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
]);

/** A request or a reply of HTTP/1.1 as these peers tell what they were sent. */
export function retell(text: string): string {
  const isReply = text.startsWith('HTTP/');
  let told = '';
  let isChunked = false;
  const reader = new MessageReader({
    head: (headOfText) => {
      const head = isReply ? parseReplyHead(headOfText, LIMITS) : parseRequestHead(headOfText, LIMITS);
      if (!head.ok) throw new Error(head.error.message);
      const framing = 'status' in head.value ? replyFraming(head.value, 'GET') : requestFraming(head.value);
      if (!framing.ok) throw new Error(framing.error.message);
      const list = fieldList(head.value);
      isChunked = framing.value.kind === 'chunked';
      told += isReply ? headText(list, isChunked ? [CHUNKED] : []) : requestText(list, isChunked);
      return framing.value.kind === 'none' ? null : new BodyReader(framing.value, { collectTrailers: true });
    },
    data: (piece) => (told += isChunked ? latin1(encodeChunk([piece])) : latin1([piece])),
    end: (trailers) => {
      if (isChunked)
        told += latin1([encodeLastChunk(fieldLines(trailers.flatMap(({ name, value }) => [name, value])))]);
    },
  });
  reader.push(Buffer.from(text, 'latin1'));
  return told;
}

const CHUNKED = 'Transfer-Encoding: chunked';

/** The fields that a head has in HTTP/2. */
function fieldList(head: RequestHead | ReplyHead): string[] {
  const kept = head.fields.filter(({ name }) => !ONLY_IN_1.has(name));
  if ('status' in head) return [':status', String(head.status), ...kept.flatMap(({ name, value }) => [name, value])];
  const host = kept.find(({ name }) => name === 'host');
  const pseudo = [':method', head.method, ':scheme', 'https', ':path', head.target];
  if (host !== undefined) pseudo.push(':authority', host.value);
  return [...pseudo, ...kept.flatMap((field) => (field === host ? [] : [field.name, field.value]))];
}

/** One reply as text of HTTP/1.1. */
class ReplyText {
  isDone = false;
  isReset = false;
  /** The client wants no other reply on the connection. */
  readonly closes: boolean;
  #text = '';
  #isChunked = false;

  constructor(stream: ClientHttp2Stream, { method, closes }: { method: string; closes: boolean }, onMore: () => void) {
    this.closes = closes;
    let trailers = '';
    const tell = (text: string): void => {
      this.#text += text;
      onMore();
    };
    stream.on('error', () => undefined);
    stream.on('headers', (_object, _flags, list: readonly string[]) => tell(headText(list, [])));
    stream.on('response', (_object, flags, list: readonly string[]) => {
      const hasBody = method !== 'HEAD' && (flags & 1) === 0 && !isBodiless(list);
      this.#isChunked = hasBody && !list.includes('content-length');
      const text = headText(list, this.#isChunked ? [CHUNKED] : []);
      // As from one write: a test that waits for the end of the head wants the body too.
      if (hasBody && !this.#isChunked) this.#text += text;
      else tell(text);
    });
    stream.on('trailers', (_object, _flags, list: readonly string[]) => (trailers = fieldLines(list)));
    stream.on('data', (data: Buffer) => tell(this.#isChunked ? latin1(encodeChunk([data])) : data.toString('latin1')));
    stream.on('close', () => {
      this.isReset = stream.rstCode !== 0;
      this.isDone = true;
      tell(this.#isChunked && !this.isReset ? latin1([encodeLastChunk(trailers)]) : '');
    });
  }

  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}

/** An upstream's connection: it gives one request, and what is written to it is the reply. `lose` drops the connection. */
export class StreamServer extends Duplex {
  readonly #stream: ServerHttp2Stream;
  readonly #lose: () => void;
  readonly #message: MessageReader;
  readonly #method: string;
  readonly #trailers: Record<string, string[]> = {};

  constructor(stream: ServerHttp2Stream, list: readonly string[], lose: () => void) {
    super({ allowHalfOpen: true });
    this.#stream = stream;
    this.#lose = lose;
    this.#method = list[list.indexOf(':method') + 1] ?? '';
    this.#message = new MessageReader({
      head: (text) => this.#respond(text),
      data: (piece) => void stream.write(piece),
      end: (trailers) => {
        for (const { name, value } of trailers) (this.#trailers[name] ??= []).push(value);
        stream.end();
      },
    });
    stream.on('wantTrailers', () => stream.sendTrailers(this.#trailers));
    const isChunked = !stream.endAfterHeaders && !list.includes('content-length');
    let trailers = '';
    this.push(requestText(list, isChunked));
    stream.on('trailers', (_object, _flags, received: readonly string[]) => (trailers = fieldLines(received)));
    stream.on('data', (data: Buffer) => this.push(isChunked ? latin1(encodeChunk([data])) : data, 'latin1'));
    stream.on('end', () => {
      if (isChunked && !stream.closed) this.push(latin1([encodeLastChunk(trailers)]), 'latin1');
    });
    stream.on('close', () => this.destroy());
  }

  override _read(): void {
    // Everything is pushed as it arrives.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#message.push(chunk);
    if (!this.#stream.writableNeedDrain || this.#stream.destroyed) return done();
    this.#stream.once('drain', done);
    this.#stream.once('close', done);
  }

  /** The end of a connection ends a reply without a length, and cuts off any other. */
  override _final(done: () => void): void {
    if (!this.#message.end() && !this.#stream.closed) this.#stream.close(2);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#stream.closed) this.#lose();
    done(error);
  }

  #respond(text: string): BodyReader | null {
    // A stream has one reply.
    if (this.#stream.headersSent) return null;
    const head = parseReplyHead(text, LIMITS);
    const framing = head.ok ? replyFraming(head.value, this.#method) : head;
    if (!head.ok || !framing.ok) {
      // HTTP/2 has no such reply; a reset is how a stream is broken.
      this.#stream.close(1);
      return null;
    }
    const list = fieldList(head.value);
    if (head.value.status < 200) {
      this.#stream.additionalHeaders(Object.fromEntries(pairsOf(list)));
      return null;
    }
    const isWhole = framing.value.kind === 'none' || (framing.value.kind === 'length' && framing.value.length === 0);
    const options = { endStream: isWhole, waitForTrailers: !isWhole, sendDate: false };
    this.#stream.respond(list, options);
    return isWhole ? null : new BodyReader(framing.value, { collectTrailers: true });
  }
}

interface MessageParts {
  /** Reads a head; returns the reader of its body, or null if it has none. */
  head(text: string): BodyReader | null;
  data(piece: Uint8Array): void;
  end(trailers: readonly HeaderField[]): void;
}

/** Splits written bytes into messages. */
class MessageReader {
  readonly #parts: MessageParts;
  #held = Buffer.alloc(0);
  #body: BodyReader | null = null;

  constructor(parts: MessageParts) {
    this.#parts = parts;
  }

  push(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]);
    while (this.#held.length > 0) {
      if (this.#body === null) {
        const end = findHeadEnd(this.#held, 0);
        if (end === -1) return;
        const text = this.#held.subarray(0, end).toString('latin1');
        this.#held = this.#held.subarray(end);
        this.#body = this.#parts.head(text);
        continue;
      }
      const fed = this.#body.feed(this.#held);
      if (!fed.ok) throw new Error(fed.error.message);
      for (const piece of fed.value.data) this.#parts.data(Buffer.from(piece));
      this.#held = this.#held.subarray(fed.value.used);
      if (this.#body.done) this.#finish(this.#body);
    }
  }

  /** False if a message is incomplete. */
  end(): boolean {
    if (this.#body === null) return this.#held.length === 0;
    const { ok } = this.#body.end();
    if (ok) this.#finish(this.#body);
    return ok;
  }

  #finish(body: BodyReader): void {
    this.#body = null;
    const lines = body.trailers.split('\r\n').filter((line) => line !== '');
    this.#parts.end(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return { name: line.slice(0, colon).toLowerCase(), line, value: line.slice(colon + 1).trim() };
      }),
    );
  }
}

function requestText(list: readonly string[], isChunked: boolean): string {
  const valueOf = (name: string): string | undefined =>
    list.includes(name) ? list[list.indexOf(name) + 1] : undefined;
  const authority = valueOf(':authority');
  const host = authority === undefined ? '' : `Host: ${authority}\r\n`;
  const coding = isChunked ? `${CHUNKED}\r\n` : '';
  return `${valueOf(':method')} ${valueOf(':path')} HTTP/1.1\r\n${host}${coding}${fieldLines(list)}\r\n`;
}

function pairsOf(list: readonly string[]): (readonly [string, string])[] {
  return list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? ''] as const] : []));
}

function headText(list: readonly string[], more: readonly string[]): string {
  const status = list[1] ?? '';
  const lines = more.map((line) => `${line}\r\n`).join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines}${fieldLines(list)}\r\n`;
}

function fieldLines(list: readonly string[]): string {
  let text = '';
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at] ?? '';
    if (!name.startsWith(':')) text += `${usualCase(name)}: ${list[at + 1]}\r\n`;
  }
  return text;
}

function usualCase(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}

function isBodiless(list: readonly string[]): boolean {
  return list[1] === '204' || list[1] === '304';
}

function latin1(pieces: readonly Uint8Array[]): string {
  return Buffer.concat(pieces).toString('latin1');
}
