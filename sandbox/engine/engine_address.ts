import { SANDBOX_ENGINES, type SandboxEngine } from '../../shared/model/settings.ts';

/** The engines that containers run in, by the names of their programs. */
export const ENGINES = SANDBOX_ENGINES;
export type EngineName = SandboxEngine;

/**
 * An engine of this machine: the socket of a Docker Engine (`unix:///...`), or podman, which is no service, by the folder where it
 * keeps its containers (`podman:/...`): each user has one, and root another.
 */
export const ENGINE_ENDPOINT = /^(?:unix:\/\/|podman:)\/[^\0]+$/;

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
