import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

const HEADER_BYTES = 5;
const ALERT = 21;
const APPLICATION_DATA = 23;
/** An alert in TLS 1.3: two bytes, their content type, and the tag of the cipher (RFC 8446 sections 5.2 and 6). */
const ENCRYPTED_ALERT_BYTES = 2 + 1 + 16;

/**
 * Tells whether a TLS connection ended in order. Node reports the end of the connection below in the same way as a
 * `close_notify`, which only the other side's TLS can write, so the records are looked at as they arrive. A forged one does not
 * decrypt, and is an error of the connection.
 */
export class RecordWatch {
  #head = Buffer.alloc(0);
  #left = 0;
  #last: { readonly type: number; readonly length: number } | null = null;

  see(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      const wanted = HEADER_BYTES - this.#head.length;
      this.#head = Buffer.concat([this.#head, bytes.subarray(at, at + wanted)]);
      at += wanted;
      if (this.#head.length < HEADER_BYTES) return;
      this.#last = { type: this.#head.readUInt8(0), length: this.#head.readUInt16BE(3) };
      this.#left = this.#last.length;
      this.#head = Buffer.alloc(0);
    }
  }

  /** The last record is complete, and is an alert. Any alert but `close_notify` is an error of the connection. */
  get endsWithAlert(): boolean {
    if (this.#last === null || this.#left > 0 || this.#head.length > 0) return false;
    const { type, length } = this.#last;
    return type === ALERT || (type === APPLICATION_DATA && length === ENCRYPTED_ALERT_BYTES);
  }
}

/** A connection that shows the bytes that arrive. TLS reads a socket of Node past all listeners. */
function watched(below: Socket, watch: RecordWatch): Duplex {
  const above = new Duplex({
    read: () => void below.resume(),
    write: (chunk: Buffer, _encoding, done) => void below.write(chunk, done),
    final: (done) => void below.end(done),
    destroy: (error, done) => {
      below.destroy();
      done(error);
    },
  });
  below.on('data', (chunk: Buffer) => {
    watch.see(chunk);
    if (!above.push(chunk)) below.pause();
  });
  below.on('end', () => void above.push(null));
  below.on('error', (error) => void above.destroy(error));
  return above;
}

/** Bytes that are sent in one TLS connection of their own. */
export interface TlsStream {
  /** The connection below; null: one is made as `dial` says. */
  readonly through: Socket | null;
  readonly dial: ConnectionOptions & TcpNetConnectOpts;
  readonly bytes: Uint8Array;
  readonly signal: AbortSignal;
}

/**
 * Resolves once the other side has closed after the bytes: `tls` if its `close_notify` came, `tcp` if only the connection below
 * was closed. Throws if the connection breaks off, or is still open when the signal is aborted.
 */
export function sendOverTls({ through, dial, bytes, signal }: TlsStream): Promise<'tls' | 'tcp'> {
  const watch = new RecordWatch();
  const below = through ?? connectTcp({ host: dial.host ?? '', port: dial.port, lookup: dial.lookup });
  const { host: _host, port: _port, lookup: _lookup, ...secure } = dial;
  const socket = connectTls({ ...secure, socket: watched(below, watch) });
  return new Promise<'tls' | 'tcp'>((resolve, reject) => {
    const broken = (): void => reject(Object.assign(new Error('the connection broke off'), { code: 'ECONNRESET' }));
    socket.on('error', reject);
    const ended = (): void => resolve(watch.endsWithAlert ? 'tls' : 'tcp');
    // Who closes before everything was sent has not got it.
    socket.on('end', () => (socket.writableFinished ? ended() : broken()));
    socket.on('close', broken);
    signal.addEventListener('abort', broken);
    socket.once('secureConnect', () => socket.end(bytes));
    socket.resume();
  }).finally(() => {
    socket.destroy();
    below.destroy();
  });
}
