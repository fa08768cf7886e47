/** `npm run bench`: the cost of the whole product, compared with other proxies of its kind. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CASES, type Case } from './cases.ts';
import { CleanUp } from './clean_up.ts';
import { NGINX, startNginx, type Upstream } from './load/nginx.ts';
import { present } from './load/programs.ts';
import { CURL } from './load/transfer.ts';
import { H2LOAD } from './load/h2load.ts';
import { WRK } from './load/wrk.ts';
import { measure, type Subject, subjectOf } from './measure.ts';
import { type Options, readOptions, USAGE } from './options.ts';
import { charts } from './plots/charts.ts';
import { profileSvc } from './profile/profile_svc.ts';
import { type Machine, machine, machineLine, proxiesLine, resultsTable, verdictsTable } from './report.ts';
import type { Sample } from './sample.ts';
import type { SvcProxy } from './peers/svc.ts';
import { startProxies } from './start_proxies.ts';
import { type StartFigures, type Verdict, verdicts } from './targets.ts';

const EXIT_USAGE = 2;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Directly to the upstream only latency can be compared. */
const DIRECT_CASES: ReadonlySet<string> = new Set(['keepalive_1', 'keepalive_32']);

/** Each round starts with another subject, so that none always follows a pause. */
function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const at = by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
}

async function oneRound(
  round: number,
  cases: readonly Case[],
  subjects: readonly Subject[],
  upstream: Upstream,
  seconds: number,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const one of cases) {
    for (const subject of rotate(subjects, round)) {
      if (subject.proxy === null && !DIRECT_CASES.has(one.id)) continue;
      const found = await measure(one, subject, upstream, seconds);
      if (found !== null) samples.push({ round, caseId: one.id, subject: subject.proxy?.name ?? 'direct', ...found });
    }
    process.stderr.write('.');
  }
  return samples;
}

/** Node's compilers are still working in the first seconds of a load. */
const WARM_UP_SECONDS = 5;

async function warmUp(cases: readonly Case[], subjects: readonly Subject[], upstream: Upstream): Promise<void> {
  const loads = cases.filter((one) => one.kind !== 'transfer');
  for (const subject of subjects) for (const one of loads) await measure(one, subject, upstream, WARM_UP_SECONDS);
}

function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN;
}

/** The sidecar continues with its policy and credential; its events wait in the spool. */
function holdWorker({ companion }: SvcProxy, cleanUp: CleanUp): void {
  if (companion === null) return;
  process.kill(companion.pid, 'SIGSTOP');
  cleanUp.do(() => void process.kill(companion.pid, 'SIGCONT'));
}

async function bench(options: Options, directory: string, cleanUp: CleanUp): Promise<void> {
  const upstream = cleanUp.add(await startNginx(directory));
  const { svc, all, missing } = await startProxies(directory, upstream, options.only, cleanUp);
  missing.forEach(say);
  const subjects: Subject[] = [];
  for (const proxy of [null, ...all]) {
    subjects.push(await subjectOf(proxy, upstream, cleanUp));
  }
  const chosen = CASES.filter(({ id }) => options.cases.length === 0 || options.cases.includes(id));
  const cases = chosen.filter(({ kind }) => kind === 'load' || present(kind === 'streams' ? H2LOAD : CURL));
  if (!present(CURL)) say(`curl is not installed, the transfers are left out: ${CURL.install}`);
  if (!present(H2LOAD)) say(`h2load is not installed, HTTP/2 is left out: ${H2LOAD.install}`);
  if (!options.quick || options.holdWorker) await warmUp(cases, subjects, upstream);
  if (options.holdWorker) holdWorker(svc, cleanUp);
  const samples: Sample[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    samples.push(...(await oneRound(round, cases, subjects, upstream, options.seconds)));
  }
  const start = { idleResidentMib: svc.idleResidentMib, apiP99Ms: p99(svc.apiCallsMs) };
  const found = verdicts(samples, start);
  say(
    `\n${machineLine(machine())}; ${proxiesLine(all)}; medians of ${options.rounds} rounds of ${options.seconds} s\n`,
  );
  say(`${resultsTable(samples)}\n\n${verdictsTable(found)}`);
  write(options, { machine: machine(), options, start, verdicts: found, samples });
}

interface Results {
  readonly machine: Machine;
  readonly options: Options;
  readonly start: StartFigures;
  readonly verdicts: readonly Verdict[];
  readonly samples: readonly Sample[];
}

function write({ out, plots }: Options, results: Results): void {
  if (out !== null) writeFileSync(out, `${JSON.stringify(results, null, 2)}\n`);
  if (plots === null) return;
  mkdirSync(plots, { recursive: true });
  for (const [name, svg] of Object.entries(charts(results.samples))) writeFileSync(join(plots, name), svg);
}

function optionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : 'bad arguments'}\n\n${USAGE}`);
    return process.exit(EXIT_USAGE);
  }
}

async function main(): Promise<void> {
  const options = optionsOrExit();
  const needed = [NGINX, WRK].filter((tool) => !present(tool));
  for (const tool of needed)
    say(`${tool.name} is not installed, and nothing can be measured without it: ${tool.install}`);
  if (needed.length > 0) process.exit(1);
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const cleanUp = new CleanUp();
  cleanUp.do(() => rmSync(directory, { recursive: true, force: true }));
  cleanUp.onSignal();
  try {
    if (options.profile) say(await profileSvc(directory, options, cleanUp));
    else await bench(options, directory, cleanUp);
  } finally {
    await cleanUp.run();
  }
}

await main();
