import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { dial } from '../../sandbox/carrier/multiplex.cjs';
import type { WantedListener } from './namespace_listener.ts';

/** Runs a task later, unless the returned function is called before. */
export type After = (ms: number, task: () => void) => () => void;

/** How long the rest of an answer may take to be passed on once the server has closed the connection. */
export const LINGER_MS = 60_000;

/**
 * Connections that we make to our own servers' Unix sockets. Such a socket does not tell a reset from an end, nor that its other
 * end is closed for good, so both ends are known here: a server accepts connections in the order in which they are made, and nobody
 * else may enter the sockets' folder.
 */
export class OwnConnections {
  readonly #after: After;
  /** By port, those that are not accepted yet, in order. */
  readonly #waiting = new Map<number, Set<Socket>>();
  readonly #acceptedOf = new Map<Duplex, Socket>();
  readonly #accepted = new Set<Socket>();

  constructor(wanted: readonly WantedListener[], after: After = afterMs) {
    this.#after = after;
    for (const { server, port } of wanted) {
      const waiting = new Set<Socket>();
      this.#waiting.set(port, waiting);
      server.on('connection', (accepted) => this.#noteAccepted(accepted, waiting));
    }
  }

  /** Null for a port without a server. */
  dial(port: number, path: string): Socket | null {
    const waiting = this.#waiting.get(port);
    if (waiting === undefined) return null;
    const dialled = dial(path);
    waiting.add(dialled);
    // One that fails is never accepted, and one that ends first was dropped by the system.
    for (const name of ['error', 'end']) dialled.on(name, () => waiting.delete(dialled));
    return dialled;
  }

  /** Whether the server has ended a connection, rather than destroyed it. */
  isWhole(dialled: Duplex): boolean {
    const accepted = this.#acceptedOf.get(dialled);
    return accepted !== undefined && (accepted.writableFinished || (accepted.writableEnded && !accepted.destroyed));
  }

  /** Destroys what the servers have accepted. They see no end: one that a Unix socket brings is a clean one. */
  cutOff(): void {
    for (const socket of this.#accepted) socket.destroy();
  }

  #noteAccepted(accepted: Socket, waiting: Set<Socket>): void {
    this.#accepted.add(accepted);
    accepted.once('close', () => this.#accepted.delete(accepted));
    const [dialled] = waiting;
    if (dialled === undefined) return;
    waiting.delete(dialled);
    if (dialled.destroyed) return;
    this.#acceptedOf.set(dialled, accepted);
    dialled.once('close', () => this.#acceptedOf.delete(dialled));
    accepted.once('close', () => this.#closeAfter(dialled));
  }

  /** Nobody reads what comes from it any more. What is left to be read is passed on, but not for ever. */
  #closeAfter(dialled: Socket): void {
    const close = (): void => void dialled.destroy();
    if (dialled.readableEnded) return close();
    dialled.once('end', close);
    dialled.once('close', this.#after(LINGER_MS, close));
  }
}

/** A socket whose connection is still being made is destroyed once that is known to succeed or fail, so that the order is kept. */
export function destroyInOrder(socket: Duplex): void {
  if ('connecting' in socket && socket.connecting === true) socket.once('connect', () => socket.destroy());
  else socket.destroy();
}

function afterMs(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms).unref();
  return () => clearTimeout(timer);
}
