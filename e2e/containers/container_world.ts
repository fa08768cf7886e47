import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, inject } from 'vitest';
import { containerImages, type ContainerImages } from '../support/container_images.ts';
import { type DockerEngine, openEngine } from '../support/docker_engine.ts';
import { type Finished, type RunOptions, runOk } from '../support/program.ts';
import type { Svc, UpOptions } from '../support/svc.ts';
import { startWorld, type World } from '../support/world.ts';

const { missing, failure } = inject('containers');
/** For suites that need containers: skipped if they cannot run; `engine.test.ts` says why and what to do. */
export const describeContainers: typeof describe.skip = (missing ?? failure) === null ? describe : describe.skip;

/** The agent's user and group in our images. */
const AGENT_ID = 1000;

/** The environment of container tests: the engine and images of this run, and folders to mount. */
export interface Bench {
  readonly engine: DockerEngine;
  readonly images: ContainerImages;
  /** A folder owned by a container's agent; removed at the end. */
  folder(name: string): string;
  /** `svc launch` with these flags and command; in the Debian image unless the flags name another. */
  launch(svc: Svc, flags: readonly string[], command: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The ids of this home's containers in the engine, running or not. */
  containersOf(svc: Svc): Promise<string[]>;
  /** A folder with the files of a container that are not as in its image: only these can contain what is newer than the image. */
  exportChanges(container: string): Promise<string>;
  /** Removes the folders. */
  clear(): void;
}

export async function openBench(): Promise<Bench> {
  const engine = await openEngine(inject('engineFolder'), inject('engineWatches'));
  const images = await containerImages(engine);
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-containers-'));
  chmodSync(scratch, 0o755);
  const folder = (name: string): string => {
    const made = mkdtempSync(join(scratch, `${name}-`));
    chmodSync(made, 0o777);
    chownSync(made, AGENT_ID, AGENT_ID);
    return made;
  };
  const workspace = folder('workspace');
  return {
    engine,
    images,
    folder,
    launch: (svc, flags, command, options = {}) =>
      svc.cli(['launch', ...withImage(flags, images.debian), '--', ...command], {
        cwd: workspace,
        ...options,
        env: { ...engine.environment, ...options.env },
      }),
    containersOf: async (svc) => {
      const home = createHash('sha256').update(realpathSync(svc.home)).digest('hex').slice(0, 16);
      const listed = await engine.docker('ps', '-a', '-q', '--no-trunc', '--filter', `label=svc.home=${home}`);
      return listed.split('\n').filter((id) => id !== '');
    },
    exportChanges: (container) => exportChanges(engine, container, folder('exported')),
    clear: () => rmSync(scratch, { recursive: true, force: true }),
  };
}

async function exportChanges(engine: DockerEngine, container: string, folder: string): Promise<string> {
  const changed = (await engine.docker('diff', container)).split('\n').filter((line) => /^[AC] /.test(line));
  if (changed.length < 2) throw new Error(`the container has no changes: ${changed.join(', ')}`);
  const archive = join(folder, 'root.tar');
  await engine.docker('export', '--output', archive, container);
  const root = join(folder, 'root');
  mkdirSync(root);
  const files = changed.map((line) => line.slice('A /'.length));
  const regular = ['tar', '-C', root, '-xf', archive, '--no-recursion', '--', ...files];
  await runOk('sh', ['-c', '"$@" 2>/dev/null || true', 'sh', ...regular]);
  return root;
}

/** svc in front of one raw upstream, on a bench. */
export interface ContainerWorld extends World {
  readonly bench: Bench;
  launch(flags: readonly string[], command: readonly string[], options?: RunOptions): Promise<Finished>;
}

export async function startContainerWorld(hosts: readonly string[], options: UpOptions = {}): Promise<ContainerWorld> {
  const bench = await openBench();
  const world = await startWorld(hosts, { ...options, env: { ...bench.engine.environment, ...options.env } });
  const stop = async (): Promise<void> => {
    await world.stop();
    bench.clear();
  };
  return { ...world, bench, launch: (...call) => bench.launch(world.svc, ...call), stop };
}

/** The same with a credential, `vault://user/api`, that is bound to every host. */
export async function startBoundContainerWorld(hosts: readonly string[], credential: string): Promise<ContainerWorld> {
  const world = await startContainerWorld(hosts);
  await world.svc.secret('user/api', credential);
  for (const host of hosts) {
    await world.svc.binding({ host, scheme: 'bearer', credential_ref: 'vault://user/api' });
  }
  return world;
}

function withImage(flags: readonly string[], image: string): readonly string[] {
  return flags.includes('--image') ? flags : ['--image', image, ...flags];
}
