import { spawn, type ChildProcess } from 'node:child_process';
import { Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerNamespace } from './container_namespace.ts';
import { reachFailure } from './reach_failure.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ReachFailureReason } from './reach_failure.ts';

interface NamespaceListenerOptions {
  readonly namespace: Pick<ContainerNamespace, 'network' | 'user'>;
  /** True for a rootless engine: its user namespace grants the right to enter the network namespace. */
  readonly enterUser: boolean;
}

const PROGRAM = fileURLToPath(new URL('listen_in_namespace.cjs', import.meta.url));
const TIMEOUT_MS = 10_000;
/** Where nsenter is looked for, independent of the sidecar's PATH. */
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const NETWORK_FD = 4;
const USER_FD = 5;

const handedOver = z.object({ port: z.int() });
const failure = z.object({ code: z.string() });

/** A server and the port it listens on. */
export interface WantedListener {
  readonly server: Server;
  readonly port: number;
}

/**
 * Makes servers listen on loopback inside a container's network namespace, where only the container can reach them: all of
 * them, or none. A helper program enters the namespace, listens there, passes the sockets over and exits; it gets no
 * environment.
 */
export async function listenInNamespace(
  wanted: readonly WantedListener[],
  options: NamespaceListenerOptions,
): Promise<Result<void, Failure<ReachFailureReason>>> {
  const ports = wanted.map(({ port }) => port);
  const sockets = await socketsFromNamespace(ports, options);
  if (!sockets.ok) return sockets;
  for (const { server, port } of wanted) {
    const socket = sockets.value.get(port);
    await new Promise<void>((resolve) => server.listen(socket, resolve));
  }
  return ok(undefined);
}

type Sockets = ReadonlyMap<number, Server>;

function socketsFromNamespace(
  ports: readonly number[],
  options: NamespaceListenerOptions,
): Promise<Result<Sockets, Failure<ReachFailureReason>>> {
  const { namespace, enterUser } = options;
  const user = enterUser ? [`--user=/proc/self/fd/${USER_FD}`, '--preserve-credentials'] : [];
  const program = [process.execPath, PROGRAM, ...ports.map(String)];
  const child = spawn('nsenter', [...user, `--net=/proc/self/fd/${NETWORK_FD}`, '--', ...program], {
    env: { PATH },
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', namespace.network.fd, namespace.user.fd],
  });
  return socketsOf(child, ports);
}

/** If not every socket arrives, closes those that did. */
function socketsOf(
  child: ChildProcess,
  ports: readonly number[],
): Promise<Result<Sockets, Failure<ReachFailureReason>>> {
  const sockets = new Map<number, Server>();
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-500)));
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    const fail = (problem: string): void => {
      clearTimeout(timer);
      for (const socket of sockets.values()) socket.close();
      resolve(err(listenFailure(problem)));
    };
    child.on('message', (message, handle) => {
      const port = handedOver.safeParse(message).data?.port;
      if (port !== undefined && handle instanceof Server) sockets.set(port, handle);
      else said = failure.safeParse(message).data?.code ?? 'no socket arrived';
      if (!ports.every((wanted) => sockets.has(wanted))) return;
      clearTimeout(timer);
      child.off('close', ended).off('error', notStarted);
      child.on('error', () => undefined);
      resolve(ok(sockets));
    });
    const ended = (code: number | null, signal: string | null): void =>
      fail(said.trim() || `it ended with ${code ?? signal}`);
    const notStarted = (error: Error): void => fail(startProblem(error));
    child.once('error', notStarted);
    child.once('close', ended);
  });
}

function startProblem(error: NodeJS.ErrnoException): string {
  return error.code === 'ENOENT' ? 'nsenter is not installed; it comes with util-linux' : error.message;
}

function listenFailure(why: string): Failure<ReachFailureReason> {
  const message = `The proxy could not listen inside the container's network namespace: ${why}.`;
  return reachFailure('listener_failed', message);
}
