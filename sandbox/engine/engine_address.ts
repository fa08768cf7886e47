import { SANDBOX_ENGINES, type SandboxEngine } from '../../shared/model/settings.ts';

/** The engines that containers run in, by the names of their programs. */
export const ENGINES = SANDBOX_ENGINES;
export type EngineName = SandboxEngine;

const PODMAN = 'podman:';

export function podmanEndpoint(store: string): string {
  return `${PODMAN}${store}`;
}

/** The folder of podman's containers; null for an endpoint of Docker. */
export function podmanStore(endpoint: string): string | null {
  return endpoint.startsWith(PODMAN) ? endpoint.slice(PODMAN.length) : null;
}

export function engineNameOf(endpoint: string): EngineName {
  return podmanStore(endpoint) === null ? 'docker' : 'podman';
}
