import type { Result } from '../../../shared/model/result.ts';
import type { ContainerRuntime, RuntimeFailure } from '../../../sandbox/engine/container_runtime.ts';
import { checkImage, type ImageProblems } from '../../../sandbox/contract/image_contract.ts';
import { imageChecksIn } from '../../../sandbox/contract/image_contract_cache.ts';
import type { ImageFacts } from '../../../sandbox/contract/image_contract_facts.ts';

/** Checks the image of a launch. The result is cached in the state directory; `warn` is called if it cannot be written. */
export function checkLaunchImage(
  runtime: ContainerRuntime,
  image: string,
  home: string,
  warn: (text: string) => void = () => undefined,
): Promise<Result<ImageFacts, ImageProblems | RuntimeFailure>> {
  return checkImage(runtime, image, imageChecksIn(home, warn));
}
