import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';

const PAUSE_MS = 1_000;

interface WaitOptions {
  /** Whether nobody needs the answer any more. */
  readonly hasEnded: () => boolean;
  readonly pause: (ms: number) => Promise<void>;
}

/** Resolves when the engine says that a container has ended or is gone. An engine that does not answer is asked again. */
export async function waitForEnd(
  engine: Pick<ContainerRuntime, 'wait' | 'inspect'>,
  containerId: string,
  { hasEnded, pause }: WaitOptions,
): Promise<void> {
  while (!hasEnded()) {
    if ((await engine.wait(containerId)).ok) return;
    const state = await engine.inspect(containerId);
    if (state.ok && state.value?.running !== true) return;
    await pause(PAUSE_MS);
  }
}
