import type { ChildProcess } from 'node:child_process';
import { lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { CollectedTree, CollectError, type CollectLimits } from './collected_tree.ts';
import type { PlanContainer } from './plan_container.ts';
import type { PlanPorts } from './plan_ports.ts';
import { readTar, TarError, type TarEntry } from './tar_reader.ts';

/** An output that was copied. */
export interface Collected {
  readonly as: string;
  readonly bytes: number;
}

/** Limits on all outputs of one step together. */
const COLLECT_LIMITS: CollectLimits = { maxBytes: 1024 ** 3, maxEntries: 100_000 };

interface Source {
  readonly container: PlanContainer;
  readonly outputFolder: string;
}

/**
 * Copies a step's outputs from the container to its folder: all or none. Runs after the step's processes have ended, so that
 * nothing changes during the copy. The error is a sentence.
 */
export async function collectOutputs(
  ports: PlanPorts,
  source: Source,
  step: SealedStep,
): Promise<Result<readonly Collected[], string>> {
  if (step.collect.length === 0) return ok([]);
  await mkdir(source.outputFolder, { recursive: true });
  const staging = await mkdtemp(join(source.outputFolder, `.${step.id}-`));
  try {
    const collected: Collected[] = [];
    let left = COLLECT_LIMITS.maxBytes;
    for (const output of step.collect) {
      const bytes = await collectOne(ports, source.container, { ...output, staging, maxBytes: left });
      collected.push({ as: output.as, bytes });
      left -= bytes;
    }
    await publish(staging, join(source.outputFolder, step.id));
    return ok(collected);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    if (error instanceof CollectError) return err(error.message);
    return err(`its outputs could not be kept: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Creates the folder of a step. An existing one is not touched. */
async function publish(staging: string, folder: string): Promise<void> {
  const there = await lstat(folder).catch(() => null);
  if (there !== null) throw new CollectError(`its outputs were not kept: ${folder} is there already`);
  await rename(staging, folder);
}

interface OneOutput {
  readonly path: string;
  readonly as: string;
  readonly staging: string;
  readonly maxBytes: number;
}

async function collectOne(ports: PlanPorts, container: PlanContainer, output: OneOutput): Promise<number> {
  const kind = await container.kindOfPath(output.path);
  if (kind !== 'plain') throw new CollectError(`its output ${output.path} ${NOT_PLAIN[kind]}`);
  const limits = { ...COLLECT_LIMITS, maxBytes: output.maxBytes };
  const tree = new CollectedTree(output.staging, output.as, limits, mayRead(container.image.uid));
  const child = container.archiveOf(output.path);
  try {
    await killOnStop(ports.stop, child, readArchive(child, tree));
    await tree.finish();
    return tree.bytes;
  } catch (error) {
    child.kill('SIGKILL');
    await tree.abandon();
    if (error instanceof CollectError) throw new CollectError(`its output ${output.path} ${error.message}`);
    if (error instanceof TarError)
      throw new CollectError(`its output ${output.path} came in no archive: ${error.message}`);
    throw error;
  }
}

const NOT_PLAIN = {
  link: 'is a symbolic link or lies behind one, and was not taken',
  missing: 'is not there',
  unknown: 'could not be looked at',
};

/** A file that only root can read is refused: the step's user could not read it. */
function mayRead(agentUid: number): (entry: TarEntry) => boolean {
  return ({ uid, mode, kind }) => kind === 'symlink' || uid === agentUid || (mode & 0o004) !== 0;
}

async function readArchive(child: ChildProcess, tree: CollectedTree): Promise<void> {
  const said: Buffer[] = [];
  child.stderr?.on('data', (chunk: Buffer) => said.length < 16 && said.push(chunk));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end();
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  ended.catch(() => undefined);
  await readTar(bytesOf(child), tree);
  const code = await ended;
  if (code !== 0)
    throw new CollectError(`was not handed out: ${Buffer.concat(said).toString('utf8').trim().slice(0, 400)}`);
}

async function* bytesOf(child: ChildProcess): AsyncGenerator<Uint8Array> {
  for await (const chunk of child.stdout ?? []) if (chunk instanceof Uint8Array) yield chunk;
}

function killOnStop(stop: AbortSignal, child: ChildProcess, work: Promise<void>): Promise<void> {
  const kill = (): void => void child.kill('SIGKILL');
  stop.addEventListener('abort', kill);
  return work.finally(() => stop.removeEventListener('abort', kill));
}
