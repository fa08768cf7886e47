import type { Duplex, Readable, Writable } from 'node:stream';

interface MultiplexOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** The socket for a connection that the other side opened to a port; null for a port that is not carried. Without it none is accepted. */
  readonly accept?: (port: number) => Duplex | null;
  /** The other side listens. */
  readonly onReady?: () => void;
  /** Called once, with the reason. Both streams and every connection are closed by then. */
  readonly onOver: (why: string) => void;
}

/** Carries many connections over one pair of streams (docs/decisions/0182). */
export declare class Multiplex {
  constructor(options: MultiplexOptions);
  /** Says that the ports listen. */
  sayReady(): void;
  /** Carries a connection that came to a port. */
  carry(socket: Duplex, port: number): void;
  /** Closes every connection and both streams. */
  end(why: string): void;
}

/** The program of the companion. */
export declare function runCompanion(ports: readonly string[]): void;
