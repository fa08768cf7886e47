import type { ContainerRuntime, RuntimeFailure } from './container_runtime.ts';
import type { EngineName } from './engine_address.ts';

/** The calls of an engine that have no streams. */
export type EngineQueries = Pick<
  ContainerRuntime,
  'inspectImage' | 'inspect' | 'signal' | 'startDetached' | 'remove' | 'wait' | 'listByLabel' | 'host' | 'gatewayOf'
>;

export function imageMissing(name: EngineName, image: string): RuntimeFailure {
  return {
    reason: 'image_missing',
    message: `the engine has no image ${JSON.stringify(image)}`,
    fixes: [`Fetch it: ${name} pull ${image}`, 'Or build one from a base image: svc image build --base BASE --tag TAG'],
  };
}

export function networkMissing(network: string): RuntimeFailure {
  return { reason: 'network_missing', message: `the engine has no network ${JSON.stringify(network)}`, fixes: [] };
}
