import { fileURLToPath } from 'node:url';
import type { Result } from '../../shared/model/result.ts';
import { AGENT_HARDENING } from '../engine/agent_hardening.ts';
import type { BindMount, ContainerRuntime, ContainerSpec, RuntimeFailure } from '../engine/container_runtime.ts';
import type { NodeFiles } from './node_files.ts';

/** The operations of an engine that a companion needs. */
export type CompanionEngine = Pick<
  ContainerRuntime,
  'create' | 'startDetached' | 'inspect' | 'remove' | 'makeEmptyImage'
>;

/** A container that shares the network of a session's container and carries connections to the sidecar (decision 0127). */
interface Companion {
  readonly sessionId: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The running container whose network it shares. */
  readonly containerId: string;
  /** The folder of the sockets, one for each port: `<port>.sock`. Only the companion sees it. */
  readonly socketFolder: string;
  readonly ports: readonly number[];
  /** The owner of the sockets, who alone may connect: `uid:gid`. */
  readonly user: string;
}

/** Nothing is in it: a companion consists of mounted files, and runs no program of the agent's image. */
const EMPTY_IMAGE = 'svc-companion:empty';
const OWN_FOLDER = '/run/svc';
const NODE = `${OWN_FOLDER}/node`;
const SOCKET_FOLDER = `${OWN_FOLDER}/sockets`;
const PROGRAM = `${OWN_FOLDER}/companion.cjs`;
const PROGRAM_FILES = ['companion.cjs', 'carry.cjs'];
/** Its code and the buffers of as many connections as it accepts. */
const CONFINEMENT = { memory: 256, cpus: 1, tmpfs: [] } as const;
const HARDENING = { ...AGENT_HARDENING, init: false, capabilities: [], pidsLimit: 64 };

export function companionName(sessionId: string): string {
  return `svc-companion-${sessionId.replace(/^ses_/, '')}`;
}

/** Starts a session's companion, unless it runs: one that the sidecar started before a restart serves on. */
export async function startCompanion(
  engine: CompanionEngine,
  companion: Companion,
  node: NodeFiles,
): Promise<Result<{ readonly isNew: boolean }, RuntimeFailure>> {
  const spec = companionSpec(companion, node);
  let created = await engine.create(spec);
  if (!created.ok && created.error.reason === 'engine_refused') {
    const known = await engine.inspect(companionName(companion.sessionId));
    if (!known.ok) return known;
    if (known.value?.running === true) return { ok: true, value: { isNew: false } };
    const ready = await (known.value === null ? engine.makeEmptyImage(EMPTY_IMAGE) : engine.remove(known.value.id));
    if (!ready.ok) return ready;
    created = await engine.create(spec);
  }
  if (!created.ok) return created;
  const started = await engine.startDetached(created.value);
  if (started.ok) return { ok: true, value: { isNew: true } };
  await engine.remove(created.value);
  return started;
}

function companionSpec(companion: Companion, node: NodeFiles): ContainerSpec {
  const { sessionId, labels, containerId, socketFolder, ports, user } = companion;
  return {
    image: EMPTY_IMAGE,
    name: companionName(sessionId),
    labels,
    env: { LD_LIBRARY_PATH: node.libraryFolders.join(':') },
    mounts: [
      { source: node.program, target: NODE },
      ...node.libraries,
      ...PROGRAM_FILES.map((name) => ({ source: ownFile(name), target: `${OWN_FOLDER}/${name}` })),
      { source: socketFolder, target: SOCKET_FOLDER },
    ].map((mount): BindMount => ({ ...mount, readOnly: true })),
    workdir: '/',
    user,
    entrypoint: NODE,
    command: [PROGRAM, SOCKET_FOLDER, ...ports.map(String)],
    tty: false,
    stdin: false,
    network: { container: containerId },
    hardening: HARDENING,
    confinement: CONFINEMENT,
    enginesProxies: 'left_out',
  };
}

function ownFile(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
