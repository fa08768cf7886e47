import { spawn, type ChildProcess } from 'node:child_process';
import { Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerNamespace } from './container_namespace.ts';
import { reachProblem, type ReachProblem } from './reach_problem.ts';

export interface NamespaceListenerOptions {
  readonly namespace: Pick<ContainerNamespace, 'network' | 'user'>;
  readonly port: number;
  /** True for a rootless engine: the user namespace gives the right to enter the network namespace. */
  readonly enterUser: boolean;
  /** The flags of this Node, which the program in the namespace needs too. */
  readonly execArgv: readonly string[];
  readonly timeoutMs?: number;
}

const PROGRAM = fileURLToPath(new URL('./listen_in_namespace.ts', import.meta.url));
const DEFAULT_TIMEOUT_MS = 10_000;
/** Where nsenter is looked for, whatever the sidecar's own PATH. */
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const NETWORK_FD = 4;
const USER_FD = 5;

const failure = z.object({ code: z.string() });

/**
 * Makes `server` listen on loopback inside a container's network namespace, where nobody but the container can reach it. A
 * program of ours enters the namespace, listens there, hands the socket over and ends; it gets no environment.
 */
export async function listenInNamespace(
  server: Server,
  options: NamespaceListenerOptions,
): Promise<Result<void, ReachProblem>> {
  const received = await socketFromNamespace(options);
  if (!received.ok) return received;
  await new Promise<void>((resolve) => server.listen(received.value, resolve));
  return ok(undefined);
}

function socketFromNamespace(options: NamespaceListenerOptions): Promise<Result<Server, ReachProblem>> {
  const { namespace, enterUser, execArgv, port } = options;
  const user = enterUser ? [`--user=/proc/self/fd/${USER_FD}`, '--preserve-credentials'] : [];
  const program = [process.execPath, ...execArgv, PROGRAM, String(port)];
  const child = spawn('nsenter', [...user, `--net=/proc/self/fd/${NETWORK_FD}`, '--', ...program], {
    env: { PATH },
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', namespace.network.fd, namespace.user.fd],
  });
  return answerOf(child, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
}

function answerOf(child: ChildProcess, timeoutMs: number): Promise<Result<Server, ReachProblem>> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-500)));
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const finish = (result: Result<Server, ReachProblem>): void => {
      clearTimeout(timer);
      resolve(result);
    };
    child.on('message', (message, handle) => {
      if (handle instanceof Server) finish(ok(handle));
      else finish(err(failed(failure.safeParse(message).data?.code ?? 'no socket came')));
    });
    child.once('error', (error) => finish(err(notStarted(error))));
    child.once('close', (code, signal) => finish(err(failed(said.trim() || `nsenter ended with ${code ?? signal}`))));
  });
}

function notStarted(error: NodeJS.ErrnoException): ReachProblem {
  const missing = error.code === 'ENOENT';
  return failed(missing ? 'nsenter is not installed; it comes with util-linux' : error.message);
}

function failed(why: string): ReachProblem {
  const message = `The proxy could not listen inside the container's network namespace: ${why}.`;
  return reachProblem('listener_failed', message);
}
