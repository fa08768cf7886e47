/**
 * `node bench/launch.ts [ROUNDS]`: how much longer `svc launch` takes than a plain `docker run` of the same image. It measures the
 * package that is installed, not the checkout.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DockerEngine } from '../e2e/support/docker_engine.ts';
import type { Svc as RunningSvc } from '../e2e/support/svc.ts';
import { buildPackage } from '../tools/package/build_package.ts';
import { figure, table } from './table.ts';

// Which svc is used is read when these modules are loaded.
const PACKAGES = fileURLToPath(new URL('../node_modules/.cache/svc/packages', import.meta.url));
process.env['SVC_TEST_PACKAGE'] = await buildPackage(PACKAGES);
const { containerImages } = await import('../e2e/support/container_images.ts');
const { closeEngine, containersMissing, openEngine } = await import('../e2e/support/docker_engine.ts');
const { Svc } = await import('../e2e/support/svc.ts');

const TARGET_MS = 400;
const DEFAULT_ROUNDS = 15;
const WORKSPACE = '/home/agent/workspace';

/** One way to run `true` in a container to its end. */
interface Way {
  readonly name: string;
  start(): Promise<{ readonly code: number | null }>;
}

function waysOf(engine: DockerEngine, svc: RunningSvc, image: string, folder: string): readonly Way[] {
  const launch = (...flags: string[]): Way['start'] => {
    const args = ['launch', '--image', image, ...flags, '--', 'true'];
    return () => svc.cli(args, { cwd: folder, env: engine.environment });
  };
  const mounted = ['--volume', `${folder}:${WORKSPACE}`, '--workdir', WORKSPACE];
  return [
    { name: 'docker run', start: () => engine.run(['run', '--rm', '--init', ...mounted, image, 'true']) },
    {
      name: 'docker run, --network none',
      start: () => engine.run(['run', '--rm', '--init', '--network', 'none', ...mounted, image, 'true']),
    },
    { name: 'svc launch', start: launch() },
    { name: 'svc launch --egress=sealed', start: launch('--egress=sealed') },
    { name: 'svc launch --relay', start: launch('--relay') },
    { name: 'svc launch --sandbox-proxy=off', start: launch('--sandbox-proxy=off') },
  ];
}

/** Milliseconds per way, measured in turns, so that a busy moment of the machine does not affect only one of them. */
async function measure(ways: readonly Way[], rounds: number): Promise<ReadonlyMap<string, readonly number[]>> {
  const taken = new Map<string, number[]>(ways.map(({ name }) => [name, []]));
  // The first round fills caches, including the remembered check of the image.
  for (let round = -1; round < rounds; round += 1) {
    for (const way of ways) {
      const began = performance.now();
      const { code } = await way.start();
      if (code !== 0) throw new Error(`${way.name} ended with ${code}`);
      if (round >= 0) taken.get(way.name)?.push(performance.now() - began);
    }
    process.stderr.write('.');
  }
  process.stderr.write('\n');
  return taken;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function report(taken: ReadonlyMap<string, readonly number[]>): number {
  const median = (name: string): number => quantile(taken.get(name) ?? [], 0.5);
  const rows = [...taken].map(([name, values]) => {
    const plain = name === 'svc launch --egress=sealed' ? 'docker run, --network none' : 'docker run';
    const over = name.startsWith('svc') ? median(name) - median(plain) : null;
    return [name, figure(quantile(values, 0.5)), figure(quantile(values, 0.9)), figure(over)];
  });
  const over = median('svc launch') - median('docker run');
  const verdict = over < TARGET_MS ? 'met' : 'missed';
  process.stdout.write(`${table(['`true` in a container', 'p50 ms', 'p90 ms', 'over docker run, p50 ms'], rows)}\n`);
  process.stdout.write(
    `\nsvc launch over docker run: ${figure(over)} ms; the target of ${TARGET_MS} ms is ${verdict}\n`,
  );
  return over < TARGET_MS ? 0 : 1;
}

async function main(rounds: number): Promise<number> {
  const missing = containersMissing();
  if (missing !== null) throw new Error(missing);
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-engine-'));
  const workspace = mkdtempSync(join(tmpdir(), 'svc-bench-workspace-'));
  const engine = await openEngine(folder, process.pid);
  let svc: RunningSvc | null = null;
  try {
    const { debian } = await containerImages(engine);
    svc = await Svc.up({ env: engine.environment });
    return report(await measure(waysOf(engine, svc, debian, workspace), rounds));
  } finally {
    await svc?.stop();
    await closeEngine(folder);
    for (const left of [folder, workspace]) rmSync(left, { recursive: true, force: true });
  }
}

const rounds = Number(process.argv[2] ?? DEFAULT_ROUNDS);
if (!Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write('usage: node bench/launch.ts [ROUNDS]\n');
  process.exitCode = 2;
} else {
  process.exitCode = await main(rounds);
}
