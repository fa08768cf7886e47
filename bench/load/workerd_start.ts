import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { startLibsqlServer } from '../../e2e/runtimes/programs.ts';
import { firstReply, localBindings, spawnWorkerd, type WorkerdOptions, writeWorkers } from './workerd_process.ts';

/** Times from the start of a workerd process to the end of its first reply, in ms. */
interface WorkerdStarts {
  /** With an empty worker. */
  readonly empty: readonly number[];
  /** With the control worker, on a libSQL server with an existing database; the call asks for its health. */
  readonly ours: readonly number[];
}

/** Starts workerd `times` times with each worker, in turn. */
export async function workerdStarts(times: number): Promise<WorkerdStarts> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-workerd-'));
  const database = await startLibsqlServer();
  try {
    writeWorkers(directory);
    const ours = { directory, module: 'workerd.js', bindings: localBindings(database.url) } as const;
    await startOnce(ours);
    const starts = { empty: new Array<number>(), ours: new Array<number>() };
    for (let n = 0; n < times; n += 1) {
      starts.empty.push(await startOnce({ directory, module: 'empty.js', bindings: {} }));
      starts.ours.push(await startOnce(ours));
    }
    return starts;
  } finally {
    await database.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function startOnce(options: WorkerdOptions): Promise<number> {
  const begun = performance.now();
  const workerd = await spawnWorkerd(options);
  try {
    await firstReply(workerd);
    return performance.now() - begun;
  } finally {
    await workerd.stop();
  }
}
