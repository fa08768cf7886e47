import { join } from 'node:path';
import { companionName } from '../../sandbox/carrier/companion_container.ts';
import { Multiplex } from '../../sandbox/carrier/multiplex.cjs';
import {
  NO_NODE,
  type StreamCompanion,
  type StreamEngine,
  startStreamCompanion,
  whyNoCompanion,
  whyNoNode,
} from '../../sandbox/carrier/stream_companion.ts';
import { HOME_LABEL, SESSION_LABEL } from '../../sandbox/engine/container_labels.ts';
import type { ContainerRuntime, ContainerStreams } from '../../sandbox/engine/container_runtime.ts';
import { NODE_IMAGE } from '../../sandbox/engine/node_image.ts';
import type { Failure } from '../../shared/model/failure.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { WantedListener } from './namespace_listener.ts';
import { type After, destroyInOrder, OwnConnections } from './own_connections.ts';
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
  /** The system's timer, except in tests. */
  readonly after?: After;
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

/** Makes a link; the error is in words. */
type OpenLink = () => Promise<Result<Link, string>>;

const READY_MS = 30_000;
const FIRST_PAUSE_MS = 100;
const INSPECTIONS = 20;
const LONGEST_PAUSE_MS = 10_000;
/** A stream that has lasted as long begins with short pauses again. */
const LASTING_MS = 60_000;

/**
 * Makes servers reachable on loopback in a container's network, in a virtual machine that shares no socket with us: a companion
 * container carries connections over its standard streams (decision 0182). A stream that is cut cuts its connections off, and until
 * another companion listens the container reaches nothing.
 */
export async function listenByStream(
  wanted: readonly WantedListener[],
  options: StreamListenerOptions,
): Promise<Result<StreamListener, Failure<ReachFailureReason>>> {
  const ports = wanted.map(({ port }) => port);
  const own = new OwnConnections(wanted, options.after);
  const open = (): Promise<Result<Link, string>> => openLink(ports, own, options);
  const listening = await listenOnSockets(wanted.map(toSocket), socketFolderOf(options.directory));
  const opened = listening.ok ? await open() : listening;
  if (opened.ok) return ok(new StreamKeeper(opened.value, open, options));
  for (const { server } of wanted) server.close();
  return err(streamFailure(opened.error));
}

/** Opens another stream whenever one is cut, as long as the container runs. */
class StreamKeeper implements StreamListener {
  readonly #open: OpenLink;
  readonly #options: StreamListenerOptions;
  #link: Link;
  #isClosed = false;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(first: Link, open: OpenLink, options: StreamListenerOptions) {
    this.#link = first;
    this.#open = open;
    this.#options = options;
    void this.#keep();
  }

  close(): void {
    this.#isClosed = true;
    this.#link.close();
  }

  async #keep(): Promise<void> {
    for (;;) {
      const why = await this.#link.over;
      if (!(await this.#isWanted())) return;
      this.#warn(`was cut (${why}), and is opened again`);
      if (performance.now() - this.#link.startedAt > LASTING_MS) this.#pauseMs = FIRST_PAUSE_MS;
      const next = await this.#openAgain();
      if (next === null) return;
      this.#link = next;
    }
  }

  /** Null once no stream is wanted any more. */
  async #openAgain(): Promise<Link | null> {
    for (;;) {
      await this.#options.pause(this.#pauseMs);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
      if (!(await this.#isWanted())) return null;
      const opened = await this.#open();
      if (this.#isClosed) return this.#discard(opened);
      if (opened.ok) return opened.value;
      this.#warn(`could not be opened again (${opened.error})`);
    }
  }

  /** The end of the session has looked for its containers before this one was there. */
  async #discard(opened: Result<Link, string>): Promise<null> {
    if (opened.ok) opened.value.close();
    const { engine, sessionId } = this.#options;
    const removed = await engine.remove(companionName(sessionId));
    if (!removed.ok) this.#warn(`has a companion that could not be removed (${removed.error.message})`);
    return null;
  }

  async #isWanted(): Promise<boolean> {
    return !this.#isClosed && (await mayRun(this.#options)) && !this.#isClosed;
  }

  #warn(what: string): void {
    this.#options.warn(`The stream of session ${this.#options.sessionId} to its container ${what}.`);
  }
}

/** False if the container is known to have ended. */
async function mayRun({ engine, containerId }: StreamListenerOptions): Promise<boolean> {
  const state = await engine.inspect(containerId);
  return !state.ok || state.value?.running === true;
}

/** On the Node of the container's image, or else on that of an image that has one. */
async function openLink(
  ports: readonly number[],
  own: OwnConnections,
  options: StreamListenerOptions,
): Promise<Result<Link, string>> {
  const { sessionId, containerId, imageId, homeLabel } = options;
  const labels = { [SESSION_LABEL]: sessionId, [HOME_LABEL]: homeLabel };
  const companion = { sessionId, labels, containerId, imageId, ports };
  const first = await tryLink(companion, own, options);
  if (first.ok) return first;
  if (!first.error.lacksNode) return err(first.error.message);
  const second = await tryLink({ ...companion, imageId: NODE_IMAGE }, own, options);
  return second.ok ? second : err(whyNoNode(second.error.message));
}

interface LinkFailure {
  readonly message: string;
  readonly lacksNode: boolean;
}

async function tryLink(
  companion: StreamCompanion,
  own: OwnConnections,
  options: StreamListenerOptions,
): Promise<Result<Link, LinkFailure>> {
  const { engine, sessionId } = options;
  const started = await startStreamCompanion(engine, companion);
  if (!started.ok) return err({ message: started.error.message, lacksNode: false });
  const linked = await linkTo(started.value, own, options);
  if (linked !== null) return ok(linked);
  const state = await inspectOnceEnded(companionName(sessionId), options);
  await engine.remove(companionName(sessionId));
  const ended = state.ok && state.value !== null && !state.value.running;
  if (!ended) return err({ message: 'it does not answer', lacksNode: false });
  const exitCode = state.value?.exitCode ?? 1;
  return err({ message: whyNoCompanion(exitCode, started.value.said()), lacksNode: exitCode === NO_NODE });
}

/** The stream ends a little before the engine says that the container has. */
async function inspectOnceEnded(
  name: string,
  { engine, pause }: StreamListenerOptions,
): ReturnType<ContainerRuntime['inspect']> {
  for (let left = INSPECTIONS; ; left -= 1) {
    const state = await engine.inspect(name);
    if (left === 1 || !state.ok || state.value?.running !== true) return state;
    await pause(FIRST_PAUSE_MS);
  }
}

/** Null if the companion does not say in time that it listens. */
async function linkTo(
  { input, output }: ContainerStreams,
  own: OwnConnections,
  { directory, readyMs = READY_MS }: StreamListenerOptions,
): Promise<Link | null> {
  const over = Promise.withResolvers<string>();
  const ready = Promise.withResolvers<boolean>();
  const folder = shortFolder(socketFolderOf(directory));
  const multiplex = new Multiplex({
    input: output,
    output: input,
    accept: (port) => own.dial(port, join(folder.path, socketName(port))),
    isWhole: (socket) => own.isWhole(socket),
    reset: destroyInOrder,
    onReady: () => ready.resolve(true),
    onOver: (why) => {
      folder.close();
      own.cutOff();
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
  const message = `The companion container that carries connections to the proxy did not start: ${why}. This engine runs its containers in a virtual machine, where there is no other way.`;
  return reachFailure('listener_failed', message);
}
