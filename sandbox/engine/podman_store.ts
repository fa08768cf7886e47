import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { programFailure } from './docker_endpoint.ts';
import { runProgram } from './engine_program.ts';

/** What podman says of itself. */
interface PodmanFacts {
  /** Where it keeps containers and images. */
  readonly store: string;
  /** The release of the kernel that they run on. */
  readonly kernel: string;
}

const report = z.object({
  host: z.object({ kernel: z.string(), serviceIsRemote: z.boolean().default(false) }),
  store: z.object({ graphRoot: z.string().startsWith('/') }),
});

const TIMEOUT_MS = 60_000;
const MAX_MESSAGE_LENGTH = 600;

/** Asks this user's podman about itself; refuses one that runs its containers on another machine. */
export async function askPodman(env: Readonly<Record<string, string>>): Promise<Result<PodmanFacts, RuntimeFailure>> {
  const asked = await runProgram('podman', ['info', '--format', 'json'], { env, timeoutMs: TIMEOUT_MS });
  if (!asked.ok) return err(programFailure('podman', asked.error));
  const { exitCode, stdout, stderr } = asked.value;
  const said = report.safeParse(parseJson(stdout)).data;
  if (exitCode !== 0 || said === undefined) return err(unusableFailure(exitCode === 0 ? stdout : stderr));
  if (said.host.serviceIsRemote) return err(remoteFailure());
  return ok({ store: said.store.graphRoot, kernel: said.host.kernel });
}

/** Checks that this user's podman works, and has its containers where it had them. */
export async function checkPodmanStore(
  env: Readonly<Record<string, string>>,
  store: string,
): Promise<Result<string, RuntimeFailure>> {
  const asked = await askPodman(env);
  if (!asked.ok) return asked;
  return asked.value.store === store ? ok(store) : err(otherStoreFailure(asked.value.store, store));
}

export function otherStoreFailure(found: string, store: string): RuntimeFailure {
  return {
    reason: 'engine_unreachable',
    message: `podman keeps its containers in ${found} here, and these are in ${store}`,
    fixes: [
      'svc and its sidecar have to be of one user, with the same HOME, XDG_DATA_HOME and CONTAINERS_STORAGE_CONF: restart svc with those.',
    ],
  };
}

function remoteFailure(): RuntimeFailure {
  return {
    reason: 'engine_remote',
    message: 'this podman runs its containers on another machine (a podman machine, or podman-remote)',
    fixes: [
      'The mounts, the CA and the proxy are on this machine, so the engine must be too: on Linux, podman itself.',
    ],
  };
}

function unusableFailure(said: string): RuntimeFailure {
  return {
    reason: 'engine_refused',
    message: `podman does not work here: ${said.trim().slice(0, MAX_MESSAGE_LENGTH)}`,
    fixes: ['Check it: `podman info`.'],
  };
}
