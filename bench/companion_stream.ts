/**
 * `node bench/companion_stream.ts [ROUNDS]`: what a companion's stream costs (decision 0182), compared with the companion that has the
 * sockets of the session mounted (decision 0127). Both without an engine: Docker copies the stream's bytes in addition.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { freePort } from '../e2e/support/free_port.ts';
import { CleanUp } from './clean_up.ts';
import { cpuMicroseconds } from './load/process_stats.ts';
import { figure, table } from './table.ts';

const SERVER = fileURLToPath(new URL('load/carried_server.ts', import.meta.url));
const DEFAULT_ROUNDS = 7;
const UPLOAD = Buffer.alloc(64 * 1024 * 1024, 'u');
const SMALL_EXCHANGES = 500;

/** A carrier whose port leads to the server. */
interface Carrier {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<unknown>;
}

interface Cost {
  readonly ms: number;
  /** Of the companion and the sidecar's end. */
  readonly cpuMs: number;
}

async function startCarrier(kind: 'direct' | 'stream', directory: string): Promise<Carrier> {
  const port = await freePort();
  const folder = mkdtempSync(join(directory, `${kind}-`));
  const child: ChildProcess = spawn(process.execPath, [SERVER, kind, folder, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const { pid, stdout } = child;
  if (pid === undefined || stdout === null) throw new Error('the server did not start');
  await once(stdout, 'data');
  const stop = async (): Promise<void> => {
    const gone = once(child, 'exit');
    process.kill(-pid, 'SIGKILL');
    await gone;
  };
  return { port, pid, stop };
}

/** Sends something, and reads to the end. */
async function exchange(port: number, said: string | Buffer): Promise<void> {
  const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.end(said);
  await once(socket.resume(), 'end');
}

const CASES: Readonly<Record<string, (port: number) => Promise<unknown>>> = {
  [`${SMALL_EXCHANGES} small exchanges, each with a connection of its own`]: async (port) => {
    for (let done = 0; done < SMALL_EXCHANGES; done += 1) await exchange(port, 'small');
  },
  'download of 64 MiB': (port) => exchange(port, 'd'),
  'upload of 64 MiB': (port) => exchange(port, UPLOAD),
  '8 downloads of 64 MiB at once': (port) => Promise.all(Array.from({ length: 8 }, () => exchange(port, 'd'))),
};

async function measure({ port, pid }: Carrier, run: (port: number) => Promise<unknown>): Promise<Cost> {
  const [cpu, start] = [cpuMicroseconds(pid), performance.now()];
  await run(port);
  return { ms: performance.now() - start, cpuMs: (cpuMicroseconds(pid) - cpu) / 1000 };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function main(): Promise<void> {
  const rounds = Number(process.argv[2] ?? DEFAULT_ROUNDS);
  const directory = mkdtempSync(join(tmpdir(), 'svc-companion-stream-'));
  const cleanUp = new CleanUp();
  cleanUp.do(() => rmSync(directory, { recursive: true, force: true }));
  cleanUp.onSignal();
  try {
    const direct = cleanUp.add(await startCarrier('direct', directory));
    const stream = cleanUp.add(await startCarrier('stream', directory));
    const rows: (readonly string[])[] = [];
    for (const [name, run] of Object.entries(CASES)) {
      const taken: { readonly direct: Cost; readonly stream: Cost }[] = [];
      for (let round = 0; round < rounds; round += 1) {
        taken.push({ direct: await measure(direct, run), stream: await measure(stream, run) });
        process.stderr.write('.');
      }
      const of = (read: (one: (typeof taken)[number]) => number): string => figure(median(taken.map(read)));
      rows.push([
        name,
        of((one) => one.direct.ms),
        of((one) => one.stream.ms),
        of((one) => one.stream.ms / one.direct.ms),
        of((one) => one.stream.cpuMs / one.direct.cpuMs),
      ]);
    }
    const header = ['Case', 'direct, ms', 'stream, ms', 'ratio', 'ratio of CPU'];
    process.stdout.write(`\n${table(header, rows)}\n\n${rounds} rounds in turns\n`);
  } finally {
    await cleanUp.run();
  }
}

await main();
