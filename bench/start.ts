/**
 * `node bench/start.ts [ROUNDS]`: how long the commands of svc take besides Node's own start, how soon `svc up` is ready, and the memory
 * of its programs at rest. It measures the package that is installed, not the checkout. Rounds alternate; CPU time changes little on a
 * busy machine, the time on the clock a lot.
 */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildPackage } from '../tools/package/build_package.ts';
import { median } from './sample.ts';
import { figure, table } from './table.ts';

const DEFAULT_ROUNDS = 7;
const REPEATS = 5;
const REST_MS = 15_000;
const NODE = 'node -e 0';
const RUN = 'svc run -- true';
const SANDBOX = 'svc run --sandbox -- true';

// Which svc is used is read when these modules are loaded.
const folder = fileURLToPath(new URL('../node_modules/.cache/svc/packages', import.meta.url));
process.env['SVC_TEST_PACKAGE'] = await buildPackage(folder);
const { run, start, SVC } = await import('../e2e/support/program.ts');
const { Svc } = await import('../e2e/support/svc.ts');

interface Taken {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** The most milliseconds of CPU besides those of `node -e 0`, and the words of each command. */
const COMMANDS: readonly {
  readonly name: string;
  readonly words: readonly string[];
  readonly mostMs: number | null;
}[] = [
  { name: NODE, words: [process.execPath, '-e', '0'], mostMs: null },
  { name: 'svc --version', words: [SVC, '--version'], mostMs: 40 },
  { name: 'svc status', words: [SVC, 'status'], mostMs: 120 },
  { name: RUN, words: [SVC, 'run', '--', 'true'], mostMs: 120 },
  { name: SANDBOX, words: [SVC, 'run', '--sandbox', '--', 'true'], mostMs: null },
];
/** How much longer a run may take with a sandbox, in milliseconds of the clock. */
const MOST_OF_SANDBOX_MS = 60;

/** One run of a command, as the mean of some: a shell counts the CPU time of what it has waited for. */
async function time(words: readonly string[], home: string): Promise<Taken> {
  const script = `for i in ${'x '.repeat(REPEATS)}; do "$@" >/dev/null 2>&1 || exit 1; done; times`;
  const began = performance.now();
  const { code, stdout } = await run('sh', ['-c', script, 'sh', ...words], {
    env: { SVC_HOME: home },
    cwd: projectIn(home),
  });
  const wallMs = (performance.now() - began) / REPEATS;
  if (code !== 0) throw new Error(`${words.join(' ')} failed`);
  const ofChildren = stdout.trim().split('\n').at(-1) ?? '';
  const seconds = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => Number(minutes) * 60 + Number(rest),
  );
  return { cpuMs: (seconds.reduce((sum, each) => sum + each, 0) * 1_000) / REPEATS, wallMs };
}

/** A folder beside the state, which a sandbox may show. */
function projectIn(home: string): string {
  const project = `${home}-project`;
  mkdirSync(project, { recursive: true });
  return project;
}

/** Resident memory in MiB, and the part that no other process shares. */
function memoryOf(pid: number): readonly [resident: number, own: number] {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return [mib('VmRSS'), mib('RssAnon')];
}

/** The memory of what waits for the end of a run. */
async function memoryOfRun(home: string): Promise<readonly [resident: number, own: number]> {
  const waiting = start(SVC, ['run', '--', 'sh', '-c', 'echo started; exec cat'], { env: { SVC_HOME: home } });
  const ended = once(waiting, 'close');
  await once(waiting.stdout ?? waiting, 'data');
  const taken = memoryOf(waiting.pid ?? 0);
  waiting.stdin?.end();
  await ended;
  return taken;
}

async function main(rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-bench-start-'));
  const readyMs: number[] = [];
  const taken = new Map<string, Taken[]>(COMMANDS.map(({ name }) => [name, []]));
  const memory: (readonly [name: string, mostMib: number, resident: number, own: number])[] = [];
  try {
    for (let round = 0; round < rounds; round += 1) {
      const began = performance.now();
      const svc = await Svc.up({ home });
      readyMs.push(performance.now() - began);
      try {
        for (const { name, words } of COMMANDS) taken.get(name)?.push(await time(words, home));
        if (round < rounds - 1) continue;
        memory.push(['beside svc run', 10, ...(await memoryOfRun(home))]);
        await pause(REST_MS);
        const { control_pid: control, sidecar_pid: sidecar } = svc.runFile;
        memory.push(['supervisor', 60, ...memoryOf(svc.process.pid ?? 0)]);
        memory.push(['control plane', 110, ...memoryOf(control)], ['sidecar', 90, ...memoryOf(sidecar)]);
      } finally {
        await svc.stop();
      }
    }
  } finally {
    for (const place of [home, projectIn(home)]) rmSync(place, { recursive: true, force: true });
  }
  print(taken, readyMs, memory);
}

/** The median of how much longer the one takes than the other in the same round. */
function pairedDifference(longer: readonly Taken[], shorter: readonly Taken[]): number {
  return median(longer.map(({ wallMs }, round) => wallMs - (shorter[round]?.wallMs ?? Number.NaN)));
}

function print(
  taken: ReadonlyMap<string, readonly Taken[]>,
  readyMs: readonly number[],
  memory: readonly (readonly [name: string, mostMib: number, resident: number, own: number])[],
): void {
  const of = (name: string, pick: (each: Taken) => number) => median((taken.get(name) ?? []).map(pick));
  const ownCpu = of(NODE, ({ cpuMs }) => cpuMs);
  const rows = COMMANDS.map(({ name, mostMs }) => {
    const cpu = of(name, ({ cpuMs }) => cpuMs);
    return [
      name,
      figure(of(name, ({ wallMs }) => wallMs)),
      figure(cpu),
      figure(mostMs === null ? null : cpu - ownCpu),
      figure(mostMs),
    ];
  });
  process.stdout.write(`${table(['command', 'ms', 'CPU, ms', 'above Node', 'at most'], rows)}\n\n`);
  const added = pairedDifference(taken.get(SANDBOX) ?? [], taken.get(RUN) ?? []);
  process.stdout.write(`a sandbox adds ${figure(added)} ms to a run (at most ${MOST_OF_SANDBOX_MS})\n\n`);
  process.stdout.write(`ready after ${figure(median(readyMs))} ms (at most 1500)\n\n`);
  const programs = memory.map(([name, most, resident, own]) => [name, figure(resident), figure(own), figure(most)]);
  process.stdout.write(`${table(['program at rest', 'resident, MiB', 'its own', 'at most'], programs)}\n`);
}

const rounds = Number(process.argv[2] ?? DEFAULT_ROUNDS);
if (!Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write('usage: node bench/start.ts [ROUNDS]\n');
  process.exitCode = 2;
} else await main(rounds);
