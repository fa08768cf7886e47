import { HOME_LABEL, SESSION_LABEL } from '../../sandbox/engine/container_labels.ts';
import type { CompanionEngine } from '../../sandbox/carrier/companion_container.ts';
import type { StreamEngine } from '../../sandbox/carrier/stream_companion.ts';
import type { ContainerRuntime, ListedContainer } from '../../sandbox/engine/container_runtime.ts';
import { removeContainer } from '../../sandbox/engine/remove_container.ts';
import type { EngineAddress } from './sandbox.ts';

/** The operations of a container engine that the sidecar needs. */
export type ContainerEngine = Pick<
  ContainerRuntime,
  'pidOf' | 'remove' | 'listByLabel' | 'gatewayOf' | 'host' | 'wait'
> &
  CompanionEngine &
  StreamEngine;

interface SessionContainersOptions {
  readonly engineAt: (address: EngineAddress) => ContainerEngine;
  /** The value of the label `svc.home` of this state directory. */
  readonly homeLabel: string;
  readonly warn: (message: string) => void;
  readonly pause: (ms: number) => Promise<void>;
}

/** Removes the containers of ended sessions. A container is touched only if its labels say that it is ours. */
export class SessionContainers {
  readonly #options: SessionContainersOptions;

  constructor(options: SessionContainersOptions) {
    this.#options = options;
  }

  /** Removes a session's container at its engine. False if that failed. */
  removeOf(sessionId: string, runtime: EngineAddress): Promise<boolean> {
    return this.#remove(runtime, [SESSION_LABEL, sessionId], (found) => found.session === sessionId);
  }

  /** Removes one container of a session whose others stay. */
  async removeOne(container: string, runtime: EngineAddress): Promise<void> {
    const removed = await removeContainer(this.#options.engineAt(runtime), container, this.#options.pause);
    if (!removed.ok) this.#warnFailed('removed', removed.error.message);
  }

  /** Removes this state directory's containers at an engine, except those of live sessions. */
  removeOrphans(runtime: EngineAddress, isLive: (sessionId: string) => boolean): Promise<boolean> {
    const { homeLabel } = this.#options;
    return this.#remove(runtime, [HOME_LABEL, homeLabel], ({ session }) => session === null || !isLive(session));
  }

  async #remove(
    runtime: EngineAddress,
    [label, value]: readonly [string, string],
    isOver: (found: ListedContainer) => boolean,
  ): Promise<boolean> {
    const engine = this.#options.engineAt(runtime);
    const listed = await engine.listByLabel(label, value);
    if (!listed.ok) return this.#warnFailed('looked for', listed.error.message);
    const ours = listed.value.filter((found) => found.home === this.#options.homeLabel && isOver(found));
    // One that has just ended may be on its way: the engine removes it by itself, or its launcher does.
    const removed = await Promise.all(ours.map(({ id }) => removeContainer(engine, id, this.#options.pause)));
    return removed.every((one) => one.ok || this.#warnFailed('removed', one.error.message));
  }

  #warnFailed(what: string, why: string): false {
    this.#options.warn(`A session's container could not be ${what}: ${why}`);
    return false;
  }
}
