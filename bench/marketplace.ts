/**
 * The marketplace over a registry of 50,000 entries (design sections 7 and 12): the first answer of a fresh control plane,
 * how long the mirror takes, searches once it is there, and the memory of the program. Prints a table for each runtime, one of
 * the targets, and exits 1 when a target is missed. Run with `node bench/marketplace.ts [--entries N] [--searches N] [--runtime node|workerd]`.
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
import { startLibsqlServer, startNodeAt } from '../e2e/runtimes/programs.ts';
import { type IndexedServer, ServerIndex } from '../worker/marketplace/server_index.ts';
import { memoryOf, type ProcessMemory, processorMs } from './load/process_memory.ts';
import { type HeapUse, WorkerInspector } from './load/workerd_heap.ts';
import { firstReply, localBindings, spawnWorkerd, writeWorkers } from './load/workerd_process.ts';
import { machine, machineLine, verdictsTable } from './report.ts';
import { figure, table } from './table.ts';
import type { Verdict } from './targets.ts';

const FIRST_LIMIT_MS = 2_000;
const SEARCH_LIMIT_MS = 30;
/** The limit of an isolate on the platform. */
const ISOLATE_MIB = 128;
const COPY_LIMIT_MIB = 64;
const PATIENCE_MS = 15 * 60_000;
const LOOK_MS = 1_000;

/** Typical searches: common words, words apart, parts of words, a name, a letter, misspelled ones, and something that does not exist. */
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
  'github issues',
  'file system',
  'postgress',
  'kubernets cluster',
];

const ALL = { transport: null, registryType: null, needsSecret: null, publisher: null };

const page = z.object({ items: z.array(z.unknown()), partial: z.boolean(), stale: z.boolean() });

interface Subject {
  readonly url: string;
  readonly memory: () => ProcessMemory;
  readonly processorMs: () => number;
  /** The size of the worker's heap; null if it cannot be inspected. */
  readonly heap: (() => Promise<HeapUse>) | null;
  readonly stop: () => Promise<void>;
}

const options = parseArgs({
  options: {
    entries: { type: 'string', default: '50000' },
    // The first twenty are slower, because nothing is compiled yet: of 400, they would be the slowest hundredth.
    searches: { type: 'string', default: '2000' },
    runtime: { type: 'string', multiple: true, default: ['node', 'workerd'] },
  },
}).values;

async function startNode(registry: RegistryServer): Promise<Subject> {
  const home = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const control = await startNodeAt(home, { SVC_REGISTRY_URL: registry.url });
  const { pid } = control;
  const stop = async () => {
    await control.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { url: control.url, memory: () => memoryOf(pid), processorMs: () => processorMs(pid), heap: null, stop };
}

/** workerd itself, without the developer tools that start it, and with an isolate's heap limit. */
async function startWorkerd(registry: RegistryServer): Promise<Subject> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const database = await startLibsqlServer();
  writeWorkers(directory);
  const bindings = { ...localBindings(database.url), SVC_REGISTRY_URL: registry.url };
  const workerd = await spawnWorkerd({
    directory,
    module: 'workerd.js',
    bindings,
    maxHeapMib: ISOLATE_MIB,
    isInspected: true,
  });
  await firstReply(workerd);
  const inspector = await WorkerInspector.open(workerd.inspectorPort);
  const stop = async () => {
    inspector.close();
    await workerd.stop();
    await database.stop();
    await rm(directory, { recursive: true, force: true });
  };
  const ask = () => fetch(`${workerd.url}/v1/health`).then((reply) => reply.text());
  const { pid } = workerd;
  const heap = () => inspector.heap(ask);
  return { url: workerd.url, memory: () => memoryOf(pid), processorMs: () => processorMs(pid), heap, stop };
}

/** A workerd with an empty worker, after as many calls as the other. */
async function emptyWorkerdMib(calls: number): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  writeWorkers(directory);
  const workerd = await spawnWorkerd({
    directory,
    module: 'empty.js',
    bindings: {},
    maxHeapMib: ISOLATE_MIB,
    isInspected: true,
  });
  try {
    await firstReply(workerd);
    await healths(workerd, calls);
    return memoryOf(workerd.pid).residentMib;
  } finally {
    await workerd.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function search(subject: Subject, query: string) {
  const began = performance.now();
  const reply = await fetch(`${subject.url}/v1/marketplace/servers${query}`);
  const body = page.parse(await reply.json());
  return { ms: performance.now() - began, ...body };
}

/** Polls until the mirror is complete: then the answer is no longer partial. */
async function untilMirrored(subject: Subject): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < PATIENCE_MS) {
    if (!(await search(subject, '?q=mcp')).partial) return performance.now() - began;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error('the mirror was not complete in time');
}

/** Of each search, its time on the clock and the processor time of the program, sorted. */
interface SearchTimes {
  readonly sorted: readonly number[];
  readonly sortedProcessor: readonly number[];
}

async function searches(subject: Subject, count: number): Promise<SearchTimes> {
  const times: number[] = [];
  const processor: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const text = TEXTS[index % TEXTS.length] ?? '';
    const before = subject.processorMs();
    times.push((await search(subject, `?q=${encodeURIComponent(text)}`)).ms);
    processor.push(subject.processorMs() - before);
  }
  return { sorted: times.toSorted((a, b) => a - b), sortedProcessor: processor.toSorted((a, b) => a - b) };
}

/** A call that does almost nothing: the cost of the runtime and this machine. */
async function healths({ url }: Pick<Subject, 'url'>, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const began = performance.now();
    await (await fetch(`${url}/v1/health`)).text();
    times.push(performance.now() - began);
  }
  return times.toSorted((a, b) => a - b);
}

async function measure(runtime: string, start: (registry: RegistryServer) => Promise<Subject>): Promise<Verdict[]> {
  const count = Number(options.searches);
  const registry = await startRegistryServer({ entries: Number(options.entries) });
  const subject = await start(registry);
  const idle = subject.memory();
  const first = await search(subject, '');
  const callsOfFirst = registry.calls.length;
  const mirrorMs = await untilMirrored(subject);
  const coldSearch = await search(subject, '?q=github');
  const { sorted, sortedProcessor } = await searches(subject, count);
  const alone = await healths(subject, count);
  const busy = subject.memory();
  const heap = (await subject.heap?.()) ?? null;
  await subject.stop();
  await registry.stop();
  const rows = [
    ['first browse, cold', `${figure(first.ms)} ms`, `${callsOfFirst} calls of the registry`],
    ['mirror complete after', `${figure(mirrorMs / 1000)} s`, `${registry.calls.length} calls of the registry`],
    ['first search of it', `${figure(coldSearch.ms)} ms`, ''],
    ['search p50', `${figure(at(sorted, 0.5))} ms`, `${sorted.length} searches`],
    ['search p99', `${figure(at(sorted, 0.99))} ms`, ''],
    ['search p50, processor', `${figure(at(sortedProcessor, 0.5))} ms`, 'of the program alone'],
    ['search p99, processor', `${figure(at(sortedProcessor, 0.99))} ms`, ''],
    ['GET /v1/health p50', `${figure(at(alone, 0.5))} ms`, 'the runtime alone'],
    ['GET /v1/health p99', `${figure(at(alone, 0.99))} ms`, ''],
    [
      'memory of the whole process',
      `${figure(busy.residentMib)} MiB`,
      `${figure(idle.residentMib)} MiB idle, ${figure(busy.peakMib)} MiB at most`,
    ],
    ...(heap === null
      ? []
      : [['its heap', `${figure(heap.usedMib)} MiB`, `${figure(heap.liveMib)} MiB without garbage`]]),
  ];
  process.stdout.write(`\n${runtime}, ${options.entries} entries\n${table(['', 'value', ''], rows)}\n`);
  return [
    { what: `${runtime}: first browse, cold`, unit: 'ms', measured: first.ms, limit: FIRST_LIMIT_MS },
    {
      what: `${runtime}: search p99`,
      unit: 'ms',
      measured: at(sorted, 0.99),
      limit: SEARCH_LIMIT_MS,
    },
    {
      what: `${runtime}: search p99, processor time`,
      unit: 'ms',
      measured: at(sortedProcessor, 0.99),
      limit: SEARCH_LIMIT_MS,
    },
    ...(heap === null ? [] : await memoryVerdicts(runtime, busy, heap)),
  ];
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** For the worker: its process's memory above that of an empty worker, and its heap. */
async function memoryVerdicts(runtime: string, busy: ProcessMemory, heap: HeapUse): Promise<Verdict[]> {
  const empty = await emptyWorkerdMib(Number(options.searches));
  process.stdout.write(`${runtime} with a worker that does nothing: ${figure(empty)} MiB\n`);
  const unit = 'MiB';
  return [
    {
      what: `${runtime}: process, above an empty worker`,
      unit,
      measured: busy.residentMib - empty,
      limit: ISOLATE_MIB,
    },
    { what: `${runtime}: heap while it is searched`, unit, measured: heap.usedMib, limit: ISOLATE_MIB },
  ];
}

/** The heap size of the search index, without garbage: every runtime uses the same engine. */
function copyMib(): number {
  setFlagsFromString('--expose_gc');
  const collect: unknown = runInNewContext('gc');
  const heapMib = () => {
    if (typeof collect === 'function') collect();
    return process.memoryUsage().heapUsed / 1024 ** 2;
  };
  const before = heapMib();
  const index = new ServerIndex();
  index.replace('', generateEntries(Number(options.entries)), { change: 0, nowMs: 0 });
  const found = index.search({ ...ALL, text: 'mcp' }, null, 1);
  return found.length === 0 ? Number.NaN : heapMib() - before;
}

function* generateEntries(count: number): Iterable<IndexedServer> {
  for (let number = 0; number < count; number += 1) {
    const { server, updatedAt } = generatedEntry(number, 1);
    // New strings, like those from a database.
    const description = Buffer.from(String(server['description'])).toString();
    const texts = { name: server.name, description, title: '', identifiers: [`@example/${String(number)}`] };
    const facets = { transports: ['stdio'], registryTypes: ['npm'], needsSecret: true };
    yield { ...texts, ...facets, state: 'active', updatedAt };
  }
}

const RUNTIMES = new Map([
  ['node', startNode],
  ['workerd', startWorkerd],
]);

process.stdout.write(`${machineLine(machine())}\n`);
const verdicts: Verdict[] = [
  { what: 'the search index, in heap', unit: 'MiB', measured: copyMib(), limit: COPY_LIMIT_MIB },
];
for (const runtime of options.runtime) {
  const start = RUNTIMES.get(runtime);
  if (start === undefined) throw new Error(`--runtime ${runtime}: use ${[...RUNTIMES.keys()].join(' or ')}`);
  verdicts.push(...(await measure(runtime, start)));
}
process.stdout.write(`\n${verdictsTable(verdicts, `${options.entries} entries`)}\n`);
process.exitCode = verdicts.every(({ measured, limit }) => measured !== null && measured <= limit) ? 0 : 1;
