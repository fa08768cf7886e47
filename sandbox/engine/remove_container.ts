import { ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, RuntimeFailure } from './container_runtime.ts';

const ATTEMPTS = 20;
const BETWEEN_MS = 250;

/** Removes a container, even while another program or the engine itself is removing it: the engine then refuses until it is gone. */
export async function removeContainer(
  runtime: Pick<ContainerRuntime, 'remove'>,
  id: string,
  pause: (ms: number) => Promise<void>,
): Promise<Result<void, RuntimeFailure>> {
  let removed = await runtime.remove(id);
  for (let attempt = 1; !removed.ok && removed.error.reason === 'engine_refused' && attempt < ATTEMPTS; attempt += 1) {
    await pause(BETWEEN_MS);
    removed = await runtime.remove(id);
  }
  return removed.ok ? ok(undefined) : removed;
}
