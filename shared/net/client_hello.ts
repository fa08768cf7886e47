/** The names of the versions of HTTP in TLS (RFC 7301). */
export const HTTP_1_1 = 'http/1.1';
export const HTTP_2 = 'h2';

/** What a TLS client asks for before either handshake (RFC 8446 section 4.1.2). */
export interface ClientHello {
  /** As sent (RFC 6066 section 3); null if there is none. */
  readonly serverName: string | null;
  /** The protocols that the client speaks, in its order (RFC 7301); empty if it does not say. */
  readonly protocols: readonly string[];
}

type ClientHelloReading =
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  | {
      readonly kind: 'incomplete';
      /** With fewer bytes in total it stays incomplete. */
      readonly needs: number;
    }
  | { readonly kind: 'unreadable' };

/** Whether a TLS connection can start with these bytes: the first record is of a handshake (RFC 8446 section 5.1). */
export function canStartTls(bytes: Uint8Array): boolean {
  return (bytes[0] ?? HANDSHAKE_RECORD) === HANDSHAKE_RECORD;
}

/** A longer hello is not read. Clients send about 2 KiB, in one record. */
const MOST_HELLO_BYTES = 32 * 1024;
const MOST_RECORDS = 64;

/**
 * Reads the ClientHello at the start of a TLS connection, which may be in several records. One with two server names is
 * unreadable, because servers could choose another than the one read here (RFC 6066 section 3 forbids it). Where TLS is
 * terminated, the TLS library reads the same bytes again, and a hello that is unreadable here is left to it.
 */
export function readClientHello(bytes: Uint8Array): ClientHelloReading {
  const message = readHandshakeMessage(bytes);
  if (!(message instanceof Uint8Array)) return message;
  try {
    return { kind: 'hello', hello: parseHello(new Cursor(message)) };
  } catch (error) {
    if (error instanceof ShortInput) return UNREADABLE;
    throw error;
  }
}

const UNREADABLE: ClientHelloReading = { kind: 'unreadable' };
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const HANDSHAKE_RECORD = 22;
const TLS_MAJOR = 3;
const MOST_RECORD_BYTES = 16 * 1024;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const ALPN = 16;

/** The body of the first handshake message, put together from its records. */
function readHandshakeMessage(bytes: Uint8Array): Uint8Array | ClientHelloReading {
  let held: Uint8Array = new Uint8Array(0);
  for (let at = 0, record = 0; record < MOST_RECORDS; record += 1) {
    const [type, major] = bytes.subarray(at, at + 2);
    if ((type ?? HANDSHAKE_RECORD) !== HANDSHAKE_RECORD || (major ?? TLS_MAJOR) !== TLS_MAJOR) return UNREADABLE;
    const start = at + RECORD_HEADER_BYTES;
    if (bytes.length < start) return { kind: 'incomplete', needs: start };
    const length = ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
    if (length === 0 || length > MOST_RECORD_BYTES) return UNREADABLE;
    held = join(held, bytes.subarray(start, start + length));
    const [messageType] = held;
    if ((messageType ?? CLIENT_HELLO) !== CLIENT_HELLO) return UNREADABLE;
    const end = messageEnd(held);
    if (end > MOST_HELLO_BYTES) return UNREADABLE;
    if (held.length >= end && held.length >= MESSAGE_HEADER_BYTES) return held.subarray(MESSAGE_HEADER_BYTES, end);
    at = start + length;
    if (bytes.length < at) return { kind: 'incomplete', needs: Math.min(at, bytes.length + missing(held, end)) };
  }
  return UNREADABLE;
}

/** Where the handshake message ends, or at least its header. */
function messageEnd(held: Uint8Array): number {
  const [, high = 0, middle = 0, low = 0] = held;
  return MESSAGE_HEADER_BYTES + (held.length < MESSAGE_HEADER_BYTES ? 0 : (high << 16) | (middle << 8) | low);
}

function missing(held: Uint8Array, end: number): number {
  return Math.max(1, end - held.length);
}

function join(held: Uint8Array, more: Uint8Array): Uint8Array {
  if (held.length === 0) return more;
  const both = new Uint8Array(held.length + more.length);
  both.set(held);
  both.set(more, held.length);
  return both;
}

/** Throws {@link ShortInput} if a length leads past the end, if bytes are left over, or if there are two server names. */
function parseHello(hello: Cursor): ClientHello {
  hello.skip(2 + 32);
  hello.vector(1);
  hello.vector(2);
  hello.vector(1);
  if (hello.isDone) return { serverName: null, protocols: [] };
  const extensions = hello.vector(2);
  if (!hello.isDone) throw new ShortInput();
  let serverName: string | null = null;
  let protocols: readonly string[] = [];
  let hasServerName = false;
  while (!extensions.isDone) {
    const type = extensions.number(2);
    const data = extensions.vector(2);
    if (type === SERVER_NAME) {
      if (hasServerName) throw new ShortInput();
      hasServerName = true;
      serverName = parseServerName(data);
    }
    if (type === ALPN) protocols = parseProtocols(data);
  }
  return { serverName, protocols };
}

function parseServerName(data: Cursor): string | null {
  const names = data.vector(2);
  if (!data.isDone) throw new ShortInput();
  let found: string | null = null;
  while (!names.isDone) {
    const type = names.number(1);
    const name = names.vector(2).text();
    if (type !== HOST_NAME) continue;
    if (found !== null) throw new ShortInput();
    found = name;
  }
  return found;
}

function parseProtocols(data: Cursor): readonly string[] {
  const names = data.vector(2);
  if (!data.isDone) throw new ShortInput();
  const protocols: string[] = [];
  while (!names.isDone) protocols.push(names.vector(1).text());
  return protocols;
}

class ShortInput extends Error {
  override readonly name = 'ShortInput';
}

/** Reads numbers and length-prefixed vectors (RFC 8446 section 3.4). */
class Cursor {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get isDone(): boolean {
    return this.#at === this.#end;
  }

  skip(count: number): void {
    if (this.#end - this.#at < count) throw new ShortInput();
    this.#at += count;
  }

  number(width: number): number {
    const start = this.#at;
    this.skip(width);
    let value = 0;
    for (let at = start; at < this.#at; at += 1) value = value * 256 + (this.#bytes[at] ?? 0);
    return value;
  }

  /** The bytes after a length of `width` bytes. */
  vector(width: number): Cursor {
    const length = this.number(width);
    const start = this.#at;
    this.skip(length);
    return new Cursor(this.#bytes, start, this.#at);
  }

  /** All bytes as latin1. */
  text(): string {
    return String.fromCharCode(...this.#bytes.subarray(this.#at, this.#end));
  }
}
