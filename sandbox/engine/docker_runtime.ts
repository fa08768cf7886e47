import { randomBytes } from 'node:crypto';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { AGENT_HARDENING } from './agent_hardening.ts';
import type { ContainerRuntime, ContainerState, ImageConfig, RuntimeFailure } from './container_runtime.ts';
import {
  createArguments,
  execArguments,
  inheritedVariables,
  listArguments,
  probeArguments,
  startArguments,
} from './docker_arguments.ts';
import { type EngineName, engineNameOf, podmanStore } from './engine_address.ts';
import { engineProgramAt, podmanEnvironmentOf, type EngineProgram } from './engine_cli.ts';
import {
  containerStateOf,
  gatewayAddressOf,
  imageConfigOf,
  kernelReleaseOf,
  parseContainerList,
  parsePodmanContainers,
} from './docker_replies.ts';
import { askPodman, otherStoreFailure } from './podman_store.ts';
import type { Environment } from '../launch/session_environment.ts';

const PROBE_TIMEOUT_MS = 60_000;
const doNothing = (): undefined => undefined;

/** An engine with a known endpoint, such as the one of a session: Docker, or podman, whose command line is compatible. */
export function engineRuntime(env: Environment, endpoint: string): ContainerRuntime {
  const name = engineNameOf(endpoint);
  return {
    ...runtimeOf(name, engineProgramAt(env, endpoint)),
    endpoint,
    kernelRelease: () => kernelRelease(env, endpoint),
  };
}

function runtimeOf(name: EngineName, engine: EngineProgram): Omit<ContainerRuntime, 'endpoint' | 'kernelRelease'> {
  return {
    program: name,
    inspectImage: (image) => inspectImage(name, engine, image),
    // Of an archive without a byte.
    makeEmptyImage: (image) => engine.read(['import', '-', image], { parse: doNothing }),
    create: (spec) =>
      engine.read(createArguments(spec, name), {
        add: inheritedVariables(spec.env, name),
        parse: (text) => text.trim(),
        clientSettings: spec.enginesProxies === 'kept',
      }),
    start: (id, streams) => engine.spawn(startArguments(id, streams), { stdio: 'inherit', ownSession: !streams.tty }),
    signal: (id, signal) => engine.read(['kill', '--signal', signal, '--', id], { parse: doNothing }),
    startDetached: (id) => engine.read(['start', '--', id], { parse: doNothing }),
    inspect: (id) => inspectContainer(engine, id),
    pidOf: async (id) => {
      const state = await inspectContainer(engine, id);
      return state.ok ? ok(state.value?.pid ?? null) : state;
    },
    runProbe: (image, script) => runProbe(engine, image, script),
    exec: (id, spec) =>
      engine.spawn(execArguments(id, spec, name), { stdio: spec.stdio, add: inheritedVariables(spec.env, name) }),
    remove: (id) => remove(engine, id),
    logs: (id, { follow }) => engine.spawn(['logs', ...(follow ? ['--follow'] : []), '--', id], { stdio: 'inherit' }),
    wait: (id) => engine.read(['wait', '--', id], { parse: (text) => Number(text.trim()), timeoutMs: null }),
    listByLabel: (label, value) =>
      engine.read(listArguments(label, value, name), {
        parse: name === 'podman' ? parsePodmanContainers : parseContainerList,
      }),
    gatewayOf: (network) => gatewayOf(engine, network),
  };
}

async function inspectImage(
  name: EngineName,
  docker: EngineProgram,
  image: string,
): Promise<Result<ImageConfig, RuntimeFailure>> {
  const args = ['image', 'inspect', '--format', '{{json .}}', '--', image];
  const found = await docker.read(args, { parse: imageConfigOf });
  return found.ok || found.error.reason !== 'engine_refused' ? found : err(imageMissing(name, image));
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

/** podman is asked about itself: a sidecar with other settings than its caller's would not find the containers. */
async function kernelRelease(env: Environment, endpoint: string): Promise<Result<string | null, RuntimeFailure>> {
  const store = podmanStore(endpoint);
  if (store === null) {
    const args = ['version', '--format', '{{json .Server.KernelVersion}}'];
    return engineProgramAt(env, endpoint).read(args, { parse: kernelReleaseOf });
  }
  const asked = await askPodman(podmanEnvironmentOf(env));
  if (!asked.ok) return asked;
  return asked.value.store === store ? ok(asked.value.kernel) : err(otherStoreFailure(asked.value.store, store));
}

async function gatewayOf(docker: EngineProgram, network: string): Promise<Result<string | null, RuntimeFailure>> {
  const args = ['network', 'inspect', '--format', '{{json .IPAM.Config}}', '--', network];
  const found = await docker.read(args, { parse: gatewayAddressOf });
  if (found.ok || found.error.reason !== 'engine_refused') return found;
  return err({ reason: 'network_missing', message: `the engine has no network ${JSON.stringify(network)}`, fixes: [] });
}

function imageMissing(name: EngineName, image: string): RuntimeFailure {
  return {
    reason: 'image_missing',
    message: `the engine has no image ${JSON.stringify(image)}`,
    fixes: [`Fetch it: ${name} pull ${image}`, 'Or build one from a base image: svc image build --base BASE --tag TAG'],
  };
}
