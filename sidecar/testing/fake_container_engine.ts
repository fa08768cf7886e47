import { connect } from 'node:net';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { Multiplex } from '../../sandbox/carrier/multiplex.cjs';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type {
  ContainerSpec,
  ContainerState,
  ContainerStreams,
  ListedContainer,
  RuntimeFailure,
} from '../../sandbox/engine/container_runtime.ts';
import type { EngineHost } from '../../sandbox/engine/engine_host.ts';
import type { ContainerEngine } from '../session/session_containers.ts';

/** An engine with given containers. While `down` it answers nothing. */
export class FakeContainerEngine implements ContainerEngine {
  down = false;
  /** How often it refuses to remove a container, as it does while it is removing it already. */
  refusals = 0;
  gateway: string | null = '127.0.0.1';
  /** The kernel that its containers run on. */
  kernel: string | null = null;
  system: string | null = null;
  containers: ListedContainer[] = [];
  readonly pids = new Map<string, number>();
  readonly removed: string[] = [];
  /** The containers that were created, and the images that were made. */
  readonly created: ContainerSpec[] = [];
  readonly images = new Set<string>();
  /** Companions that cannot reach the sidecar. */
  isCutOff = false;
  /** The other ends of streams, in the order of their starts; and what a companion prints. */
  readonly companions: Multiplex[] = [];
  said = '';
  exitCode = 0;
  /** Companions that never say that they are ready. */
  isSilent = false;
  /** How often it still says that a companion runs whose stream has ended. */
  lateEnds = 0;
  /** Images that are there by their id. */
  anyImage = false;
  /** The image on which no companion runs. */
  imageWithoutNode: string | null = null;
  readonly #waiting = new Map<string, () => void>();

  add(id: string, session: string | null, home: string | null): void {
    this.containers.push({ id, name: id, running: true, session, home });
  }

  pidOf(id: string): Promise<Result<number | null, RuntimeFailure>> {
    return this.#answer(() => this.pids.get(id) ?? null);
  }

  remove(id: string): Promise<Result<void, RuntimeFailure>> {
    if (this.refusals > 0) {
      this.refusals -= 1;
      return Promise.resolve(err({ reason: 'engine_refused', message: 'in progress', fixes: [] }));
    }
    return this.#answer(() => {
      this.removed.push(id);
      this.containers = this.containers.filter((one) => one.id !== id);
    });
  }

  makeEmptyImage(name: string): Promise<Result<void, RuntimeFailure>> {
    return this.#answer(() => void this.images.add(name));
  }

  create(spec: ContainerSpec): Promise<Result<string, RuntimeFailure>> {
    const { name, labels, image } = spec;
    const id = name ?? '';
    if ((!this.anyImage && !this.images.has(image)) || this.containers.some((one) => one.id === id)) {
      return Promise.resolve(err({ reason: 'engine_refused', message: 'no such image, or a conflict', fixes: [] }));
    }
    return this.#answer(() => {
      this.created.push(spec);
      this.containers.push({
        id,
        name: id,
        running: false,
        session: labels['svc.session'] ?? null,
        home: labels['svc.home'] ?? null,
      });
      return id;
    });
  }

  /** A companion says that it is ready, as the real one does. */
  startDetached(id: string): Promise<Result<void, RuntimeFailure>> {
    const sockets = this.created.at(-1)?.mounts.find(({ target }) => target === '/run/svc/sockets')?.source;
    if (sockets !== undefined && !this.isCutOff) connect(join(sockets, 'ready.sock')).on('error', () => undefined);
    return this.#answer(() => {
      this.containers = this.containers.map((one) => (one.id === id ? { ...one, running: true } : one));
    });
  }

  inspect(id: string): Promise<Result<ContainerState | null, RuntimeFailure>> {
    const found = this.containers.find((one) => one.id === id);
    const rest = { labels: {}, pid: null, wasStarted: true, exitCode: this.exitCode, error: '' };
    const isLate = found?.running === false && this.lateEnds > 0;
    if (isLate) this.lateEnds -= 1;
    return this.#answer(() => (found === undefined ? null : { ...found, ...rest, running: found.running || isLate }));
  }

  listByLabel(label: string, value: string): Promise<Result<readonly ListedContainer[], RuntimeFailure>> {
    const key = label === 'svc.session' ? 'session' : 'home';
    return this.#answer(() => this.containers.filter((one) => one[key] === value));
  }

  host(): Promise<Result<EngineHost, RuntimeFailure>> {
    return this.#answer(() => ({ kernelRelease: this.kernel, operatingSystem: this.system }));
  }

  /** Resolves when {@link end} is called. */
  wait(id: string): Promise<Result<number, RuntimeFailure>> {
    return new Promise((resolve) => this.#waiting.set(id, () => resolve(ok(0))));
  }

  /** Ends a container. */
  end(id: string): void {
    this.containers = this.containers.map((one) => (one.id === id ? { ...one, running: false } : one));
    this.#waiting.get(id)?.();
  }

  /** A companion at the other end of two pipes, which says that it is ready as the real one does. */
  startWithStreams(id: string): Promise<Result<ContainerStreams, RuntimeFailure>> {
    this.containers = this.containers.map((one) => (one.id === id ? { ...one, running: true } : one));
    const [ours, theirs] = duplexPair();
    const lacksNode = this.created.findLast(({ name }) => name === id)?.image === this.imageWithoutNode;
    if (lacksNode) this.exitCode = 127;
    if (this.isCutOff || lacksNode) {
      this.containers = this.containers.map((one) => (one.id === id ? { ...one, running: false } : one));
      theirs.end();
    } else {
      const companion = new Multiplex({ input: theirs, output: theirs, onOver: () => undefined });
      if (!this.isSilent) companion.sayReady();
      this.companions.push(companion);
    }
    return this.#answer(() => ({ input: ours, output: ours, said: () => this.said }));
  }

  gatewayOf(): Promise<Result<string | null, RuntimeFailure>> {
    return this.#answer(() => this.gateway);
  }

  #answer<T>(answer: () => T): Promise<Result<T, RuntimeFailure>> {
    if (!this.down) return Promise.resolve(ok(answer()));
    return Promise.resolve(err({ reason: 'engine_unreachable', message: 'the engine is down', fixes: [] }));
  }
}
