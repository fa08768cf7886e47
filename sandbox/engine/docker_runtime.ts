import { randomBytes } from 'node:crypto';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { AGENT_HARDENING } from './agent_hardening.ts';
import type { ContainerRuntime, ContainerState, ImageConfig, RuntimeFailure } from './container_runtime.ts';
import { createArguments, execArguments, listArguments, probeArguments, startArguments } from './docker_arguments.ts';
import { findDockerEndpoint } from './docker_endpoint.ts';
import { engineEnvironmentOf, dockerProgram, podmanProgram, type EngineProgram } from './engine_cli.ts';
import {
  containerStateOf,
  gatewayAddressOf,
  imageConfigOf,
  kernelReleaseOf,
  parseContainerList,
} from './docker_replies.ts';
import type { Environment } from '../launch/session_environment.ts';

const PROBE_TIMEOUT_MS = 60_000;
const doNothing = (): undefined => undefined;

/** The engine that the caller's environment and Docker settings select, checked to be on this machine and to answer. */
export async function openDockerRuntime(env: Environment): Promise<Result<ContainerRuntime, RuntimeFailure>> {
  const endpoint = await findDockerEndpoint(engineEnvironmentOf(env));
  return endpoint.ok ? ok(dockerRuntime(env, endpoint.value)) : endpoint;
}

/** An engine with a known endpoint, such as the one of a session. */
export function dockerRuntime(env: Environment, endpoint: string): ContainerRuntime {
  return runtimeOf('docker', endpoint, dockerProgram(env, endpoint));
}

/** Podman, whose command line is compatible for these uses. Launches on it run without the proxy. */
export function podmanRuntime(env: Environment): ContainerRuntime {
  return runtimeOf('podman', 'local', podmanProgram(env));
}

function runtimeOf(program: string, endpoint: string, docker: EngineProgram): ContainerRuntime {
  return {
    program,
    endpoint,
    inspectImage: (image) => inspectImage(docker, image),
    // Of an archive without a byte.
    makeEmptyImage: (name) => docker.read(['import', '-', name], { parse: doNothing }),
    create: (spec) =>
      docker.read(createArguments(spec), {
        add: spec.env,
        parse: (text) => text.trim(),
        clientSettings: spec.enginesProxies === 'kept',
      }),
    start: (id, streams) => docker.spawn(startArguments(id, streams), { stdio: 'inherit', ownSession: !streams.tty }),
    signal: (id, name) => docker.read(['kill', '--signal', name, '--', id], { parse: doNothing }),
    startDetached: (id) => docker.read(['start', '--', id], { parse: doNothing }),
    inspect: (id) => inspectContainer(docker, id),
    pidOf: async (id) => {
      const state = await inspectContainer(docker, id);
      return state.ok ? ok(state.value?.pid ?? null) : state;
    },
    runProbe: (image, script) => runProbe(docker, image, script),
    exec: (id, spec) => docker.spawn(execArguments(id, spec), { stdio: spec.stdio, add: spec.env }),
    remove: (id) => remove(docker, id),
    copyOut: (id, path, destination) =>
      docker.read(['cp', '--', `${id}:${path}`, destination], { parse: doNothing, timeoutMs: null }),
    logs: (id, { follow }) => docker.spawn(['logs', ...(follow ? ['--follow'] : []), '--', id], { stdio: 'inherit' }),
    wait: (id) => docker.read(['wait', '--', id], { parse: (text) => Number(text.trim()), timeoutMs: null }),
    listByLabel: (label, value) => docker.read(listArguments(label, value), { parse: parseContainerList }),
    kernelRelease: () => kernelRelease(docker),
    gatewayOf: (network) => gatewayOf(docker, network),
  };
}

async function inspectImage(docker: EngineProgram, image: string): Promise<Result<ImageConfig, RuntimeFailure>> {
  const args = ['image', 'inspect', '--format', '{{json .}}', '--', image];
  const found = await docker.read(args, { parse: imageConfigOf });
  return found.ok || found.error.reason !== 'engine_refused' ? found : err(imageMissing(image));
}

/** The program's error does not say if the container is gone; a list does. */
async function inspectContainer(
  docker: EngineProgram,
  id: string,
): Promise<Result<ContainerState | null, RuntimeFailure>> {
  const args = ['container', 'inspect', '--format', '{{json .}}', '--', id];
  const found = await docker.read(args, { parse: containerStateOf });
  if (found.ok || found.error.reason !== 'engine_refused') return found;
  const there = await isThere(docker, id);
  if (!there.ok) return there;
  return there.value ? found : ok(null);
}

async function remove(docker: EngineProgram, id: string): Promise<Result<void, RuntimeFailure>> {
  const removed = await docker.read(['rm', '--force', '--volumes', '--', id], { parse: doNothing });
  if (removed.ok || removed.error.reason !== 'engine_refused') return removed;
  const there = await isThere(docker, id);
  if (!there.ok) return there;
  return there.value ? removed : ok(undefined);
}

function isThere(docker: EngineProgram, id: string): Promise<Result<boolean, RuntimeFailure>> {
  const args = ['ps', '--all', '--no-trunc', '--quiet', '--filter', `id=${id}`];
  return docker.read(args, { parse: (text) => text.trim() !== '' });
}

async function runProbe(docker: EngineProgram, image: string, script: string): Promise<Result<string, RuntimeFailure>> {
  const name = `svc-probe-${randomBytes(8).toString('hex')}`;
  const args = probeArguments(name, image, script, AGENT_HARDENING);
  const run = await docker.read(args, { parse: (text) => text, timeoutMs: PROBE_TIMEOUT_MS, clientSettings: false });
  // The engine keeps a container running after its client was killed.
  if (!run.ok && run.error.reason === 'engine_timeout')
    await docker.read(['rm', '--force', name], { parse: doNothing });
  return run;
}

function kernelRelease(docker: EngineProgram): Promise<Result<string | null, RuntimeFailure>> {
  const args = ['version', '--format', '{{json .Server.KernelVersion}}'];
  return docker.read(args, { parse: kernelReleaseOf });
}

async function gatewayOf(docker: EngineProgram, network: string): Promise<Result<string | null, RuntimeFailure>> {
  const args = ['network', 'inspect', '--format', '{{json .IPAM.Config}}', '--', network];
  const found = await docker.read(args, { parse: gatewayAddressOf });
  if (found.ok || found.error.reason !== 'engine_refused') return found;
  return err({ reason: 'network_missing', message: `the engine has no network ${JSON.stringify(network)}`, fixes: [] });
}

function imageMissing(image: string): RuntimeFailure {
  return {
    reason: 'image_missing',
    message: `the engine has no image ${JSON.stringify(image)}`,
    fixes: [`Fetch it: docker pull ${image}`, 'Or build one from a base image: svc image build --base BASE --tag TAG'],
  };
}
