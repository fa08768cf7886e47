import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, ContainerState, RuntimeFailure } from './container_runtime.ts';
import { podmanListArguments } from './docker_arguments.ts';
import { containerStateOf, imageConfigOf, parseContainers } from './docker_replies.ts';
import { podmanEnvironmentOf, podmanProgram, type EngineProgram } from './engine_cli.ts';
import type { EngineHost } from './engine_host.ts';
import { imageMissing, networkMissing, type EngineQueries } from './engine_queries.ts';
import { askPodman, otherStoreFailure } from './podman_store.ts';
import type { Environment } from '../launch/session_environment.ts';

const doNothing = (): undefined => undefined;

/** What the program `podman`, which has no API while it does not run, answers without a stream. */
export function podmanQueries(env: Environment, store: string): EngineQueries {
  const podman = podmanProgram(env, store);
  return {
    inspectImage: (image) => inspectImage(podman, image),
    inspect: (id) => inspectContainer(podman, id),
    signal: (id, signal) => podman.read(['kill', '--signal', signal, '--', id], { parse: doNothing }),
    startDetached: (id) => podman.read(['start', '--', id], { parse: doNothing }),
    remove: (id) => remove(podman, id),
    wait: (id) => podman.read(['wait', '--', id], { parse: (text) => Number(text.trim()), timeoutMs: null }),
    listByLabel: (label, value) =>
      podman.read(podmanListArguments(label, value), { parse: (text) => parseContainers(JSON.parse(text)) }),
    host: () => hostOf(env, store),
    // Its containers are entered, as their engine is the sidecar's own user's (namespace_rights.ts): no gateway is asked for.
    gatewayOf: (network) => Promise.resolve(err(networkMissing(network))),
  };
}

async function inspectImage(podman: EngineProgram, image: string): ReturnType<ContainerRuntime['inspectImage']> {
  const args = ['image', 'inspect', '--format', '{{json .}}', '--', image];
  const found = await podman.read(args, { parse: (text) => imageConfigOf(theOne(text)) });
  return found.ok || found.error.reason !== 'engine_refused' ? found : err(imageMissing('podman', image));
}

/** The program's error does not say if the container is gone; a list does. */
async function inspectContainer(
  podman: EngineProgram,
  id: string,
): Promise<Result<ContainerState | null, RuntimeFailure>> {
  const args = ['container', 'inspect', '--format', '{{json .}}', '--', id];
  const found = await podman.read(args, { parse: (text) => containerStateOf(theOne(text)) });
  if (found.ok || found.error.reason !== 'engine_refused') return found;
  const there = await isThere(podman, id);
  if (!there.ok) return there;
  return there.value ? found : ok(null);
}

async function remove(podman: EngineProgram, id: string): Promise<Result<void, RuntimeFailure>> {
  const removed = await podman.read(['rm', '--force', '--volumes', '--', id], { parse: doNothing });
  if (removed.ok || removed.error.reason !== 'engine_refused') return removed;
  const there = await isThere(podman, id);
  if (!there.ok) return there;
  return there.value ? removed : ok(undefined);
}

function isThere(podman: EngineProgram, id: string): Promise<Result<boolean, RuntimeFailure>> {
  const args = ['ps', '--all', '--no-trunc', '--quiet', '--filter', `id=${id}`];
  return podman.read(args, { parse: (text) => text.trim() !== '' });
}

/** podman is asked about itself: a sidecar with other settings than its caller's would not find the containers. */
async function hostOf(env: Environment, store: string): Promise<Result<EngineHost, RuntimeFailure>> {
  const asked = await askPodman(podmanEnvironmentOf(env));
  if (!asked.ok) return asked;
  const host = { kernelRelease: asked.value.kernel, operatingSystem: null };
  return asked.value.store === store ? ok(host) : err(otherStoreFailure(asked.value.store, store));
}

/** podman replies with a list of one. */
function theOne(json: string): unknown {
  const reply: unknown = JSON.parse(json);
  return Array.isArray(reply) && reply.length === 1 ? reply[0] : reply;
}
