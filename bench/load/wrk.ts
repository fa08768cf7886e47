import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { runOk } from '../../e2e/support/program.ts';
import type { Tool } from './programs.ts';

export const WRK: Tool = { name: 'wrk', probe: 'command -v wrk', install: 'apt-get install wrk' };

const REPORT = fileURLToPath(new URL('wrk_report.lua', import.meta.url));

const report = z.object({
  requests: z.number(),
  duration: z.number(),
  p50: z.number(),
  p99: z.number(),
  failed: z.number(),
  status_errors: z.number(),
});
/** Latencies and the duration are in microseconds. */
type WrkReport = z.infer<typeof report>;

interface WrkRun {
  readonly port: number;
  readonly path: string;
  readonly headers: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

/** Loads `https://localhost:PORT` for some seconds. A reply other than 2xx or 3xx fails the run, because it would measure the speed of a refusal. */
export async function runWrk(run: WrkRun): Promise<WrkReport> {
  const flags = ['-t1', `-c${run.connections}`, `-d${run.seconds}s`, '--timeout', '20s', '--latency', '-s', REPORT];
  const headers = run.headers.flatMap((header) => ['-H', header]);
  const url = `https://localhost:${run.port}${run.path}`;
  const { stdout } = await runOk('wrk', [...flags, ...headers, url]);
  const found = report.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
  if (found.status_errors > 0)
    throw new Error(`${found.status_errors} of ${found.requests} replies of ${url} were errors`);
  if (found.requests === 0) throw new Error(`${url} gave no reply: ${stdout}`);
  return found;
}
