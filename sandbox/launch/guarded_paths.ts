import type { Environment } from './session_environment.ts';
import { podmanStore } from '../engine/engine_address.ts';
import { unixSocketPath } from '../engine/engine_socket.ts';

/** Engine sockets, which give control of the engine, and the folders where engines store containers. */
const ENGINE_PATHS = [
  '/run/docker.sock',
  '/var/run/docker.sock',
  '/run/containerd',
  '/run/podman',
  '/run/crio',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/containers',
];
/** The same below a user's XDG_RUNTIME_DIR, for rootless engines. */
const RUNTIME_NAMES = ['docker.sock', 'docker', 'podman', 'containerd-rootless'];

/** Paths that no mount may reach, with any engine: an engine's socket amounts to root, and the state directory has keys. */
export function listGuardedPaths(
  state: readonly string[],
  env: Environment,
  endpoint: string | null,
): { readonly path: string; readonly name: string }[] {
  const socket = endpoint === null ? null : (unixSocketPath(endpoint) ?? podmanStore(endpoint));
  const runtime = env['XDG_RUNTIME_DIR'];
  const engine = [
    ...(socket === null ? [] : [socket]),
    ...ENGINE_PATHS,
    ...(runtime === undefined || runtime === '' ? [] : RUNTIME_NAMES.map((name) => `${runtime}/${name}`)),
  ];
  return [
    ...state.map((path) => ({ path, name: 'the state directory of svc' })),
    ...engine.map((path) => ({ path, name: 'a container engine' })),
  ];
}
