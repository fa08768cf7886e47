import type { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';

interface MultiplexOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** The socket for a connection that the other side opened to a port; null for a port that is not carried. Without it none is accepted. */
  readonly accept?: (port: number) => Duplex | null;
  /** Whether a socket that has ended has sent everything. By default it has. Otherwise the connection was lost, and the other side is told. */
  readonly isWhole?: (socket: Duplex) => boolean;
  /** Closes a socket so that its other end sees that something is missing. By default it is destroyed. */
  readonly reset?: (socket: Duplex) => void;
  /** The other side listens. */
  readonly onReady?: () => void;
  /** Called once, with the reason. Both streams and every connection are closed by then. */
  readonly onOver: (why: string) => void;
  /** Does a task again and again, until the returned function is called. By default with the system's timer. */
  readonly every?: (ms: number, task: () => void) => () => void;
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

/** A connection to a Unix socket that may be carried. */
export declare function dial(path: string): Socket;

/** The program of the companion. */
export declare function runCompanion(ports: readonly string[]): void;
