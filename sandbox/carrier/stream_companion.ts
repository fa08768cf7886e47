import { readFileSync } from 'node:fs';
import type { Result } from '../../shared/model/result.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { AGENT_HARDENING } from '../engine/agent_hardening.ts';
import type { ContainerRuntime, ContainerSpec, ContainerStreams, RuntimeFailure } from '../engine/container_runtime.ts';
import { NODE_IMAGE } from '../engine/node_image.ts';
import { companionName } from './companion_container.ts';

/** The operations of an engine that a companion with a stream needs. */
export type StreamEngine = Pick<ContainerRuntime, 'create' | 'startWithStreams' | 'remove'>;

/** A companion that carries connections over its standard streams, for an engine that shares no socket with us (decision 0182). */
export interface StreamCompanion {
  readonly sessionId: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The running container whose network it shares. */
  readonly containerId: string;
  /** The image whose Node it runs on. */
  readonly imageId: string;
  readonly ports: readonly number[];
}

/** Code and connections in flight. */
const CONFINEMENT = { memory: 256, cpus: 1, tmpfs: [] } as const;
const HARDENING = { ...AGENT_HARDENING, init: false, capabilities: [], pidsLimit: 64 };
/** Nobody: it opens no file, and its ports are above 1024. */
const USER = '65534:65534';
/** The exit code where the image has no Node that is new enough. */
export const NO_NODE = 127;
const OLDEST_NODE = 20;

/**
 * The Node of the image, which is the one of its svc-mcp if it was built with one; Bun takes its name in images of its own. `$1` is the
 * program, the rest are the ports.
 */
const START = `node=/usr/local/lib/svc-mcp/node; [ -x "$node" ] || node=node
major=$("$node" --print 'process.versions.bun ? 0 : process.versions.node.split(".")[0]' 2>/dev/null) || exit ${NO_NODE}
[ "$major" -ge ${OLDEST_NODE} ] 2>/dev/null || exit ${NO_NODE}
exec "$node" --eval "$@"`;

const CARRY = 'module.exports.runCompanion(process.argv.slice(1));';

/** Starts a session's companion. One of an earlier stream serves nobody any more, and is replaced. */
export async function startStreamCompanion(
  engine: StreamEngine,
  companion: StreamCompanion,
): Promise<Result<ContainerStreams, RuntimeFailure>> {
  const spec = streamCompanionSpec(companion);
  let created = await engine.create(spec);
  if (!created.ok && created.error.reason === 'engine_refused') {
    const removed = await engine.remove(companionName(companion.sessionId));
    if (!removed.ok) return removed;
    created = await engine.create(spec);
  }
  if (!created.ok) return created;
  const started = await engine.startWithStreams(created.value);
  if (!started.ok) await engine.remove(created.value);
  return started;
}

/** Why a companion that has ended did not listen. What it said is not to be trusted: its image may be the agent's. */
export function whyNoCompanion(exitCode: number, said: string): string {
  if (exitCode === NO_NODE) return `its image has no Node ${OLDEST_NODE} or newer`;
  const why = toPrintable(said.trim());
  if (why.includes('EADDRINUSE')) return `${why}; no program of the image may use that port`;
  return why === '' ? `it ended with ${exitCode}` : why;
}

/** Why neither the image of the container nor the one with Node can be used, and what to do. */
export function whyNoNode(why: string): string {
  const fix = `add Node to the image, or: docker pull ${NODE_IMAGE}`;
  return `the image of the container has no Node ${OLDEST_NODE} or newer, and ${NODE_IMAGE} cannot be used in its place (${why}); ${fix}`;
}

/** Nothing of this machine is in it: the program is one of its arguments. */
function streamCompanionSpec({ sessionId, labels, containerId, imageId, ports }: StreamCompanion): ContainerSpec {
  const program = readFileSync(new URL('multiplex.cjs', import.meta.url), 'utf8');
  return {
    image: imageId,
    name: companionName(sessionId),
    labels,
    // The image's own could load something before the program.
    env: { NODE_OPTIONS: '' },
    mounts: [],
    workdir: '/',
    user: USER,
    entrypoint: '/bin/sh',
    command: ['-c', START, 'svc-companion', `${program}\n${CARRY}`, '--', ...ports.map(String)],
    tty: false,
    stdin: true,
    network: { container: containerId },
    hardening: HARDENING,
    confinement: CONFINEMENT,
    // The agent's requests to the proxy, with the session's token, are what it prints.
    keepsNoLog: true,
    enginesProxies: 'left_out',
  };
}
