import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ListedContainer, RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import type { ContainerEngine } from '../session/session_containers.ts';

/** An engine with given containers. While `down` it answers nothing. */
export class FakeContainerEngine implements ContainerEngine {
  down = false;
  /** How often it refuses to remove a container, as it does while it is removing it already. */
  refusals = 0;
  gateway: string | null = '127.0.0.1';
  /** The kernel that its containers run on. */
  kernel: string | null = null;
  containers: ListedContainer[] = [];
  readonly pids = new Map<string, number>();
  readonly removed: string[] = [];

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

  listByLabel(label: string, value: string): Promise<Result<readonly ListedContainer[], RuntimeFailure>> {
    const key = label === 'svc.session' ? 'session' : 'home';
    return this.#answer(() => this.containers.filter((one) => one[key] === value));
  }

  kernelRelease(): Promise<Result<string | null, RuntimeFailure>> {
    return this.#answer(() => this.kernel);
  }

  gatewayOf(): Promise<Result<string | null, RuntimeFailure>> {
    return this.#answer(() => this.gateway);
  }

  #answer<T>(answer: () => T): Promise<Result<T, RuntimeFailure>> {
    if (!this.down) return Promise.resolve(ok(answer()));
    return Promise.resolve(err({ reason: 'engine_unreachable', message: 'the engine is down', fixes: [] }));
  }
}
