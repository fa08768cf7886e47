import { createServer, type Server } from 'node:net';
import { HOME_LABEL, SESSION_LABEL } from '../../sandbox/engine/container_labels.ts';
import { type CompanionEngine, companionName, startCompanion } from '../../sandbox/carrier/companion_container.ts';
import { listNodeFiles } from '../../sandbox/carrier/node_files.ts';
import type { Failure } from '../../shared/model/failure.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { WantedListener } from './namespace_listener.ts';
import { reachFailure, type ReachFailureReason } from './reach_failure.ts';
import { listenOnSockets, socketFolderOf, toSocket } from './socket_folder.ts';

interface CompanionListenerOptions {
  readonly engine: CompanionEngine;
  readonly sessionId: string;
  /** The running container that is to reach the servers. */
  readonly containerId: string;
  /** The session's own folder, which nobody else may enter. */
  readonly directory: string;
  /** The value of the label `svc.home` of this state directory. */
  readonly homeLabel: string;
  /** This process's user and group, `uid:gid`. */
  readonly user: string;
  readonly readyMs?: number;
}

/** The companion connects to it once it listens. */
const READY_SOCKET = 'ready.sock';
const READY_MS = 30_000;

/**
 * Makes servers reachable on loopback in a container's network without entering it: each listens on a Unix socket, and a
 * companion container that shares that network carries connections there (decision 0127). All of them, or none.
 */
export async function listenByCompanion(
  wanted: readonly WantedListener[],
  options: CompanionListenerOptions,
): Promise<Result<void, Failure<ReachFailureReason>>> {
  // The companion alone has it mounted.
  const folder = socketFolderOf(options.directory);
  const ready = createServer();
  const listening = await listenOnSockets([...wanted.map(toSocket), { server: ready, name: READY_SOCKET }], folder);
  const started = listening.ok ? await startAndWait(wanted, folder, ready, options) : listening;
  ready.close();
  if (started.ok) return started;
  for (const { server } of wanted) server.close();
  return err(companionFailure(started.error));
}

async function startAndWait(
  wanted: readonly WantedListener[],
  folder: string,
  ready: Server,
  options: CompanionListenerOptions,
): Promise<Result<void, string>> {
  const { engine, sessionId, containerId, homeLabel, user, readyMs = READY_MS } = options;
  const arrival = waitForConnection(ready, readyMs);
  const labels = { [SESSION_LABEL]: sessionId, [HOME_LABEL]: homeLabel };
  const ports = wanted.map(({ port }) => port);
  const companion = { sessionId, labels, containerId, socketFolder: folder, ports, user };
  const started = await startCompanion(engine, companion, listNodeFiles());
  if (!started.ok) return err(started.error.message);
  if (!started.value.isNew || (await arrival)) return ok(undefined);
  const state = await engine.inspect(companionName(sessionId));
  await engine.remove(companionName(sessionId));
  const ended = state.ok && state.value !== null && !state.value.running;
  return err(ended ? `it ended with ${state.value?.exitCode}` : 'it cannot reach the sidecar');
}

function waitForConnection(server: Server, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    server.once('connection', (socket) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(true);
    });
    server.once('close', () => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}

function companionFailure(why: string): Failure<ReachFailureReason> {
  const message = `The companion container that carries connections to the proxy did not start: ${why}. Without it, sealed egress needs the sidecar as root or a rootless engine; on Linux, svc run --sandbox needs neither.`;
  return reachFailure('listener_failed', message);
}
