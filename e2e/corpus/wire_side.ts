import type { TLSSocket } from 'node:tls';

const PATIENCE_MS = 600_000;

/** One side of a raw TLS connection: the exact bytes it received, and whether its peer has finished. */
export class WireSide {
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #socket: TLSSocket | null = null;
  #changed: (() => void)[] = [];
  ended = false;

  constructor(socket?: TLSSocket) {
    if (socket !== undefined) this.attach(socket);
  }

  /** Attaches the connection, which for an upstream arrives after this object is made. */
  attach(socket: TLSSocket): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      this.#tell();
    });
    socket.on('error', () => socket.destroy());
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.ended = true;
        this.#tell();
      });
    }
    this.#tell();
  }

  get length(): number {
    return this.#length;
  }

  /** Everything received. */
  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get closed(): boolean {
    return this.#socket?.destroyed === true;
  }

  /** Writes the bytes in pieces, each as its own TLS record. */
  async send(bytes: Buffer, cut = Math.max(1, bytes.length)): Promise<void> {
    await this.until('the connection', () => this.#socket !== null);
    for (let at = 0; at < bytes.length; at += cut) {
      const piece = bytes.subarray(at, at + cut);
      await new Promise((resolve) => this.#socket?.write(piece, resolve));
    }
  }

  async end(): Promise<void> {
    await this.until('the connection', () => this.#socket !== null);
    this.#socket?.end();
  }

  drop(): void {
    this.#socket?.destroy();
  }

  /** Waits until the condition holds. Throws with the received bytes if that takes too long. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!isSo()) {
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`waited for ${what}; received so far: ${JSON.stringify(this.#tail())}`);
      await this.#change(left);
    }
  }

  #change(atMostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, atMostMs);
      this.#changed.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #tail(): string {
    return this.bytes.subarray(-600).toString('latin1');
  }

  #tell(): void {
    const waiting = this.#changed;
    this.#changed = [];
    for (const one of waiting) one();
  }
}
