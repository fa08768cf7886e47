import { connect } from 'node:net';
import { join } from 'node:path';
import { companionName } from '../../sandbox/carrier/companion_container.ts';
import { Multiplex } from '../../sandbox/carrier/multiplex.cjs';
import { type StreamEngine, startStreamCompanion, whyNoCompanion } from '../../sandbox/carrier/stream_companion.ts';
import { HOME_LABEL, SESSION_LABEL } from '../../sandbox/engine/container_labels.ts';
import type { ContainerRuntime, ContainerStreams } from '../../sandbox/engine/container_runtime.ts';
import type { Failure } from '../../shared/model/failure.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { WantedListener } from './namespace_listener.ts';
import { reachFailure, type ReachFailureReason } from './reach_failure.ts';
import { listenOnSockets, shortFolder, socketFolderOf, socketName, toSocket } from './socket_folder.ts';

export type StreamListenerEngine = StreamEngine & Pick<ContainerRuntime, 'inspect'>;

interface StreamListenerOptions {
  readonly engine: StreamListenerEngine;
  readonly sessionId: string;
  /** The running container that is to reach the servers, and the id of its image. */
  readonly containerId: string;
  readonly imageId: string;
  /** The session's own folder, which nobody else may enter. */
  readonly directory: string;
  /** The value of the label `svc.home` of this state directory. */
  readonly homeLabel: string;
  readonly warn: (message: string) => void;
  readonly pause: (ms: number) => Promise<void>;
  readonly readyMs?: number;
}

/** The carrier of a session's connections. */
interface StreamListener {
  /** Closes the stream with every connection of it; the companion ends. */
  close(): void;
}

/** A stream whose companion listens. */
interface Link {
  /** Resolves with the reason when it is gone. */
  readonly over: Promise<string>;
  readonly startedAt: number;
  readonly close: () => void;
}

const READY_MS = 30_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A stream that has lasted as long begins with short pauses again. */
const LASTING_MS = 60_000;

/**
 * Makes servers reachable on loopback in a container's network, in a virtual machine that shares no socket with us: a companion
 * container carries connections over its standard streams (decision 0182). A stream that is cut closes its connections, and until
 * another companion listens the container reaches nothing.
 */
export async function listenByStream(
  wanted: readonly WantedListener[],
  options: StreamListenerOptions,
): Promise<Result<StreamListener, Failure<ReachFailureReason>>> {
  const ports = wanted.map(({ port }) => port);
  const listening = await listenOnSockets(wanted.map(toSocket), socketFolderOf(options.directory));
  const opened = listening.ok ? await openLink(ports, options) : listening;
  if (opened.ok) return ok(new StreamKeeper(opened.value, ports, options));
  for (const { server } of wanted) server.close();
  return err(streamFailure(opened.error));
}

/** Opens another stream whenever one is cut, as long as the container runs. */
class StreamKeeper implements StreamListener {
  readonly #ports: readonly number[];
  readonly #options: StreamListenerOptions;
  #link: Link;
  #isClosed = false;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(first: Link, ports: readonly number[], options: StreamListenerOptions) {
    this.#link = first;
    this.#ports = ports;
    this.#options = options;
    void this.#keep();
  }

  close(): void {
    this.#isClosed = true;
    this.#link.close();
  }

  async #keep(): Promise<void> {
    for (let next: Link | null = this.#link; next !== null; next = await this.#openAgain()) {
      this.#link = next;
      if (this.#isClosed) next.close();
      const why = await next.over;
      if (!(await this.#isWanted())) return;
      this.#options.warn(`The stream to a session's container was cut (${why}), and is opened again.`);
      if (performance.now() - next.startedAt > LASTING_MS) this.#pauseMs = FIRST_PAUSE_MS;
    }
  }

  /** Null once no stream is wanted any more. */
  async #openAgain(): Promise<Link | null> {
    do {
      await this.#options.pause(this.#pauseMs);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
      const opened = await openLink(this.#ports, this.#options);
      if (opened.ok) return opened.value;
    } while (await this.#isWanted());
    return null;
  }

  async #isWanted(): Promise<boolean> {
    return !this.#isClosed && (await mayRun(this.#options)) && !this.#isClosed;
  }
}

/** False if the container is known to have ended. */
async function mayRun({ engine, containerId }: StreamListenerOptions): Promise<boolean> {
  const state = await engine.inspect(containerId);
  return !state.ok || state.value?.running === true;
}

async function openLink(ports: readonly number[], options: StreamListenerOptions): Promise<Result<Link, string>> {
  const { engine, sessionId, containerId, imageId, homeLabel } = options;
  const labels = { [SESSION_LABEL]: sessionId, [HOME_LABEL]: homeLabel };
  const started = await startStreamCompanion(engine, { sessionId, labels, containerId, imageId, ports });
  if (!started.ok) return err(started.error.message);
  const linked = await linkTo(started.value, ports, options);
  if (linked !== null) return ok(linked);
  const state = await engine.inspect(companionName(sessionId));
  await engine.remove(companionName(sessionId));
  const ended = state.ok && state.value !== null && !state.value.running;
  return err(ended ? whyNoCompanion(state.value?.exitCode ?? 1, started.value.said()) : 'it does not answer');
}

/** Null if the companion does not say in time that it listens. */
async function linkTo(
  { input, output }: ContainerStreams,
  ports: readonly number[],
  { directory, readyMs = READY_MS }: StreamListenerOptions,
): Promise<Link | null> {
  const over = Promise.withResolvers<string>();
  const ready = Promise.withResolvers<boolean>();
  const folder = shortFolder(socketFolderOf(directory));
  const multiplex = new Multiplex({
    input: output,
    output: input,
    accept: (port) =>
      ports.includes(port) ? connect({ path: join(folder.path, socketName(port)), allowHalfOpen: true }) : null,
    onReady: () => ready.resolve(true),
    onOver: (why) => {
      folder.close();
      over.resolve(why);
      ready.resolve(false);
    },
  });
  const timer = setTimeout(() => multiplex.end('it took too long'), readyMs);
  const isReady = await ready.promise;
  clearTimeout(timer);
  const link = { over: over.promise, startedAt: performance.now(), close: () => multiplex.end('the session ended') };
  return isReady ? link : null;
}

function streamFailure(why: string): Failure<ReachFailureReason> {
  const message = `The companion container that carries connections to the proxy did not start: ${why}. This engine runs its containers in a virtual machine, where there is no other way. Build the image with Node: svc image build; without a container: svc run, on Linux with --sandbox.`;
  return reachFailure('listener_failed', message);
}
