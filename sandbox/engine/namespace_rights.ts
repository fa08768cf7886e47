import { readFileSync, statSync } from 'node:fs';

/** How the sidecar may enter the network namespaces of an engine's containers. */
export type NamespaceRights =
  /** The sidecar has the capability. */
  | 'root'
  /** The engine runs as the same user, in the user's own user namespace. */
  | 'rootless'
  | 'none';

const CAP_SYS_ADMIN = 21n;

interface RightsFacts {
  /** The text of `/proc/self/status`. */
  readonly status: string;
  readonly uid: number | null;
  /** The uid that owns the engine's socket or store; null if there is none. */
  readonly socketOwner: number | null;
}

/** Decides by this process's capabilities, else by the engine's owner. */
export function namespaceRights({ status, uid, socketOwner }: RightsFacts): NamespaceRights {
  const effective = /^CapEff:\s*([0-9a-f]{16})$/m.exec(status)?.[1];
  if (effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_ADMIN) & 1n) === 1n) return 'root';
  return uid !== null && uid !== 0 && uid === socketOwner ? 'rootless' : 'none';
}

/** The rights of this process at an engine: a Docker Engine belongs to the owner of its socket, and podman to that of its store. */
export function namespaceRightsAt(endpoint: string): NamespaceRights {
  const socket = statSync(endpoint.replace(/^(unix:\/\/|podman:)/, ''), { throwIfNoEntry: false });
  return namespaceRights({ status: ownStatus(), uid: process.geteuid?.() ?? null, socketOwner: socket?.uid ?? null });
}

function ownStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'latin1');
  } catch {
    return '';
  }
}
