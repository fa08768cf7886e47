import type { Environment } from './session_environment.ts';
import { unixSocketPath } from '../engine/engine_socket.ts';

/** Sockets through which a container would rule its engine, and folders in which engines keep their containers. */
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

/** What no mount may reach, whichever engine is used: its socket is as good as root, and the state directory holds keys. */
export function listGuardedPaths(
  state: readonly string[],
  env: Environment,
  endpoint: string | null,
): { readonly path: string; readonly name: string }[] {
  const socket = endpoint === null ? null : unixSocketPath(endpoint);
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
