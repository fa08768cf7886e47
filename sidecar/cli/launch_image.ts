import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime } from '../launch/container_runtime.ts';
import type { LaunchProblem } from '../launch/launch_error.ts';

export interface CheckedImage {
  readonly imageId: string;
  readonly agentUser: string;
}
export async function checkedImage(
  runtime: ContainerRuntime,
  image: string,
  _home: string,
): Promise<Result<CheckedImage, LaunchProblem>> {
  const config = await runtime.inspectImage(image);
  return config.ok ? ok({ imageId: config.value.id, agentUser: 'agent' }) : err(config.error);
}
