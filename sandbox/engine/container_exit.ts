import type { ContainerRuntime } from './container_runtime.ts';

const NOT_STARTED = 125;
const SAY_WHY_NOT = new Set([126, 127]);

/**
 * The exit code of a launch: the container's, or 125 to 127 if the engine could not start it. In that case the engine's program
 * has printed why on stderr.
 */
export async function exitCodeOf(
  runtime: Pick<ContainerRuntime, 'inspect'>,
  containerId: string,
  programsExitCode: number,
): Promise<number> {
  if (programsExitCode === 0) return 0;
  const state = await runtime.inspect(containerId);
  if (!state.ok || state.value === null || state.value.wasStarted) return programsExitCode;
  return SAY_WHY_NOT.has(state.value.exitCode) ? state.value.exitCode : NOT_STARTED;
}
