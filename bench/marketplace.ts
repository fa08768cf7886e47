/**
 * The marketplace over a registry of 50,000 entries (design sections 7 and 12): the first answer of a fresh control plane,
 * how long the mirror takes, searches once it is there, and the memory of the program. Prints a table for each runtime and
 * exits 1 when a target is missed. Run with `node bench/marketplace.ts [--entries N] [--searches N] [--runtime node|workerd]`.
 */
import { performance } from 'node:perf_hooks';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { generatedEntry } from '../e2e/marketplace/registry_entries.ts';
import { type RegistryServer, startRegistryServer } from '../e2e/marketplace/registry_server.ts';
import { startLibsqlServer, startNodeAt, startOnWorkerd } from '../e2e/runtimes/programs.ts';
import { type IndexedServer, ServerIndex } from '../worker/marketplace/server_index.ts';
import { memoryOf, processesBeside } from './load/process_memory.ts';
import { machine, machineLine } from './report.ts';
import { figure, table } from './table.ts';

const FIRST_LIMIT_MS = 2_000;
const SEARCH_LIMIT_MS = 30;
/** Of the 128 MiB that an isolate has. */
const COPY_LIMIT_MIB = 64;
const PATIENCE_MS = 15 * 60_000;
const LOOK_MS = 1_000;

/** What people look for: common words, parts of words, a name, a letter, and what is not there. */
const TEXTS = [
  'github',
  'mcp',
  'database search',
  'a',
  'graph',
  'jira-li',
  'io.example.n04',
  'weather',
  'zzz',
  'é',
  'al',
];

const page = z.object({ items: z.array(z.unknown()), partial: z.boolean(), stale: z.boolean() });

interface Subject {
  readonly url: string;
  readonly memory: () => { readonly residentMib: number; readonly peakMib: number };
  readonly stop: () => Promise<void>;
}

const options = parseArgs({
  options: {
    entries: { type: 'string', default: '50000' },
    searches: { type: 'string', default: '400' },
    runtime: { type: 'string', multiple: true, default: ['node', 'workerd'] },
  },
}).values;

async function startNode(registry: RegistryServer): Promise<Subject> {
  const home = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const control = await startNodeAt(home, { SVC_REGISTRY_URL: registry.url });
  const [pid = 0] = processesBeside(['worker/entries/node.ts', home], 'MainThread').concat(
    processesBeside(['worker/entries/node.ts', home], 'node'),
  );
  const stop = async () => {
    await control.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { url: control.url, memory: () => memoryOf(pid), stop };
}

async function startWorkerd(registry: RegistryServer): Promise<Subject> {
  const database = await startLibsqlServer();
  const control = await startOnWorkerd(database, { SVC_REGISTRY_URL: registry.url });
  const pids = processesBeside(['--port', new URL(control.url).port], 'workerd');
  const stop = async () => {
    await control.stop();
    await database.stop();
  };
  // Of the two that wrangler starts, the larger one runs the worker.
  const memory = () =>
    pids.map((pid) => memoryOf(pid)).toSorted((a, b) => b.residentMib - a.residentMib)[0] ?? memoryOf(0);
  return { url: control.url, memory, stop };
}

async function search(subject: Subject, query: string) {
  const began = performance.now();
  const reply = await fetch(`${subject.url}/v1/marketplace/servers${query}`);
  const body = page.parse(await reply.json());
  return { ms: performance.now() - began, ...body };
}

/** Looks again until the mirror is complete: then the answer is no longer a partial one. */
async function untilMirrored(subject: Subject): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < PATIENCE_MS) {
    if (!(await search(subject, '?q=mcp')).partial) return performance.now() - began;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error('the mirror was not complete in time');
}

async function searches(subject: Subject, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const text = TEXTS[index % TEXTS.length] ?? '';
    times.push((await search(subject, `?q=${encodeURIComponent(text)}`)).ms);
  }
  return times.toSorted((a, b) => a - b);
}

/** A call that does next to nothing: what the runtime and this machine take. */
async function healths({ url }: Subject, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const began = performance.now();
    await (await fetch(`${url}/v1/health`)).text();
    times.push(performance.now() - began);
  }
  return times.toSorted((a, b) => a - b);
}

async function measure(runtime: string, start: (registry: RegistryServer) => Promise<Subject>) {
  const registry = await startRegistryServer({ entries: Number(options.entries) });
  const subject = await start(registry);
  const idle = subject.memory();
  const first = await search(subject, '');
  const callsOfFirst = registry.calls.length;
  const mirrorMs = await untilMirrored(subject);
  const coldSearch = await search(subject, '?q=github');
  const sorted = await searches(subject, Number(options.searches));
  const alone = await healths(subject, Number(options.searches));
  const busy = subject.memory();
  await subject.stop();
  await registry.stop();
  const at = (share: number, of = sorted) => of[Math.min(of.length - 1, Math.floor(of.length * share))] ?? Number.NaN;
  const rows = [
    ['first browse, cold', `${figure(first.ms)} ms`, `${callsOfFirst} calls of the registry`],
    ['mirror complete after', `${figure(mirrorMs / 1000)} s`, `${registry.calls.length} calls of the registry`],
    ['first search of it', `${figure(coldSearch.ms)} ms`, ''],
    ['search p50', `${figure(at(0.5))} ms`, `${sorted.length} searches`],
    ['search p99', `${figure(at(0.99))} ms`, ''],
    ['GET /v1/health p50', `${figure(at(0.5, alone))} ms`, 'the runtime alone'],
    ['GET /v1/health p99', `${figure(at(0.99, alone))} ms`, ''],
    [
      'memory of the whole process',
      `${figure(busy.residentMib)} MiB`,
      `${figure(idle.residentMib)} MiB idle, ${figure(busy.peakMib)} MiB at most`,
    ],
  ];
  process.stdout.write(`\n${runtime}, ${options.entries} entries\n${table(['', 'value', ''], rows)}\n`);
  const misses = [
    ...(first.ms > FIRST_LIMIT_MS ? [`${runtime}: the first browse took over ${FIRST_LIMIT_MS} ms`] : []),
    ...(at(0.5) - at(0.5, alone) > SEARCH_LIMIT_MS ? [`${runtime}: a search takes over ${SEARCH_LIMIT_MS} ms`] : []),
  ];
  return misses;
}

/** What the searchable copy takes of a heap, garbage aside: the same engine runs in every runtime. */
function copyMib(): number {
  setFlagsFromString('--expose_gc');
  const collect: unknown = runInNewContext('gc');
  const heapMib = () => {
    if (typeof collect === 'function') collect();
    return process.memoryUsage().heapUsed / 1024 ** 2;
  };
  const before = heapMib();
  const index = new ServerIndex();
  index.replace('', generated(Number(options.entries)), { change: 0, nowMs: 0 });
  const found = index.search({ text: 'mcp', transport: null, registryType: null }, null, 1);
  return found.length === 0 ? Number.NaN : heapMib() - before;
}

function* generated(count: number): Iterable<IndexedServer> {
  for (let number = 0; number < count; number += 1) {
    const { server } = generatedEntry(number, 1);
    // Texts of their own, as those that come from a database are.
    const description = Buffer.from(String(server['description'])).toString();
    yield { name: server.name, description, transports: ['stdio'], registryTypes: ['npm'] };
  }
}

const RUNTIMES = new Map([
  ['node', startNode],
  ['workerd', startWorkerd],
]);

process.stdout.write(`${machineLine(machine())}\n`);
const missed: string[] = [];
const copied = copyMib();
process.stdout.write(`the searchable copy of ${options.entries} entries: ${figure(copied)} MiB of a heap\n`);
if (!(copied <= COPY_LIMIT_MIB)) missed.push(`the searchable copy takes over ${COPY_LIMIT_MIB} MiB`);
for (const runtime of options.runtime) {
  const start = RUNTIMES.get(runtime);
  if (start === undefined) throw new Error(`--runtime ${runtime}: use ${[...RUNTIMES.keys()].join(' or ')}`);
  missed.push(...(await measure(runtime, start)));
}
for (const miss of missed) process.stderr.write(`missed: ${miss}\n`);
process.exitCode = missed.length === 0 ? 0 : 1;
