import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, RuntimeFailure } from './container_runtime.ts';
import { findDockerEndpoint } from './docker_endpoint.ts';
import { engineRuntime } from './docker_runtime.ts';
import { type EngineName, podmanEndpoint } from './engine_address.ts';
import { engineEnvironmentOf, podmanEnvironmentOf } from './engine_cli.ts';
import { askPodman } from './podman_store.ts';
import type { Environment } from '../launch/session_environment.ts';

/** The Docker Engine that the caller's environment and settings select, checked to be on this machine and to answer. */
export async function openDocker(env: Environment): Promise<Result<ContainerRuntime, RuntimeFailure>> {
  const endpoint = await findDockerEndpoint(engineEnvironmentOf(env));
  return endpoint.ok ? ok(engineRuntime(env, endpoint.value)) : endpoint;
}

/** This user's podman, checked to be on this machine and to work. */
export async function openPodman(env: Environment): Promise<Result<ContainerRuntime, RuntimeFailure>> {
  const found = await askPodman(podmanEnvironmentOf(env));
  return found.ok ? ok(engineRuntime(env, podmanEndpoint(found.value.store))) : found;
}

/**
 * The engine to use: the one that is named, here or by SVC_SANDBOX_ENGINE; else Docker; else podman, unless the caller's environment
 * or configuration names an engine of Docker. Where neither works, the reason is Docker's, and podman's if it is installed.
 */
export async function openEngine(
  env: Environment,
  named: EngineName | null = null,
): Promise<Result<ContainerRuntime, RuntimeFailure>> {
  const wanted = named ?? env['SVC_SANDBOX_ENGINE'] ?? '';
  if (wanted === 'podman') return openPodman(env);
  const docker = await openDocker(env);
  if (docker.ok || wanted === 'docker' || namesDocker(env)) return docker;
  // A context of the person's configuration names it.
  if (docker.error.reason === 'engine_remote') return docker;
  const podman = await openPodman(env);
  if (podman.ok || podman.error.reason !== 'engine_missing')
    return podman.ok ? podman : err(both(docker.error, podman.error));
  return docker;
}

function namesDocker(env: Environment): boolean {
  return (env['DOCKER_HOST'] ?? '') !== '' || (env['DOCKER_CONTEXT'] ?? '') !== '';
}

function both(docker: RuntimeFailure, podman: RuntimeFailure): RuntimeFailure {
  return { ...docker, message: `${docker.message}; ${podman.message}`, fixes: [...docker.fixes, ...podman.fixes] };
}
