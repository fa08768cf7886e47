import net from 'node:net';
import { getSystemErrorName } from 'node:util';
import { errorCode } from '../../shared/model/error_code.ts';

/**
 * A port that the supervisor keeps bound for a program of its own. The program listens on the inherited sockets. While it
 * restarts, connections wait in the kernel's queue instead of being refused, and no other user can take the port, which
 * would hand them the tokens that agents send there.
 */
export interface HeldPort {
  readonly port: number;
  /** The bound sockets. Empty if this Node cannot bind without listening: then the program binds the port by itself. */
  readonly descriptors: readonly number[];
  close(): void;
}

/** The part of Node's TCP handle that is used here. */
interface TcpHandle {
  readonly fd: number;
  getsockname(into: { port?: number }): number;
  close(): void;
}

/** The address does not exist here, so no other program can bind it. */
const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);
const TRIES = 20;

/** Binds a port at each address (port 0: any that is free at all of them). Throws the system's error. */
export function holdPort(port: number, addresses: readonly [string, ...string[]]): HeldPort {
  const bind = findBind();
  if (bind === null) return { port, descriptors: [], close: () => undefined };
  for (let tries = 1; ; tries += 1) {
    const held: TcpHandle[] = [];
    try {
      return bindAll(bind, port, addresses, held);
    } catch (error) {
      for (const handle of held) handle.close();
      if (port !== 0 || tries === TRIES || errorCode(error) !== 'EADDRINUSE') throw error;
    }
  }
}

type Bind = (address: string, port: number) => unknown;

function bindAll(bind: Bind, port: number, addresses: readonly string[], held: TcpHandle[]): HeldPort {
  let bound = port;
  for (const address of addresses) {
    const handle = bind(address, bound);
    const name: { port?: number } = {};
    if (isTcpHandle(handle)) held.push(handle);
    // A port that is in use is reported by the first call after bind.
    const result = isTcpHandle(handle) ? handle.getsockname(name) : handle;
    if (result === 0) bound = name.port ?? bound;
    else {
      const error = bindError(result, address, bound);
      if (held.length === 0 || !NO_ADDRESS.has(errorCode(error))) throw error;
    }
  }
  return {
    port: bound,
    descriptors: held.map(({ fd }) => fd),
    close: () => {
      for (const handle of held) handle.close();
    },
  };
}

/**
 * Node's own way to bind without listening, which its cluster module uses. It is not documented, so its absence is no error.
 * A server that listens would accept connections here, in the supervisor.
 */
function findBind(): Bind | null {
  const create: unknown = Reflect.get(net, '_createServerHandle');
  if (typeof create !== 'function' || process.platform === 'win32') return null;
  return (address, port): unknown =>
    Reflect.apply(create, net, [address, port, net.isIP(address) === 6 ? 6 : 4, undefined, 0]);
}

function isTcpHandle(value: unknown): value is TcpHandle {
  return typeof value === 'object' && value !== null && 'fd' in value && 'getsockname' in value && 'close' in value;
}

function bindError(result: unknown, address: string, port: number): Error {
  const code = typeof result === 'number' ? getSystemErrorName(result) : 'UNKNOWN';
  return Object.assign(new Error(`bind ${code} ${address}:${port}`), { code });
}
