import { runOk } from '../../e2e/support/program.ts';
import type { Tool } from './programs.ts';

export const H2LOAD: Tool = { name: 'h2load', probe: 'command -v h2load', install: 'apt-get install nghttp2-client' };

interface H2LoadRun {
  /** On loopback; it leads to port 443 of the host. */
  readonly port: number;
  readonly host: string;
  readonly path: string;
  readonly streams: number;
  readonly seconds: number;
}

interface H2LoadReport {
  readonly requests: number;
  readonly failed: number;
}

/** Loads one connection of HTTP/2 with so many requests at a time. A reply other than 2xx or 3xx fails the run, as in `runWrk`. */
export async function runH2load({ port, host, path, streams, seconds }: H2LoadRun): Promise<H2LoadReport> {
  const flags = ['-t', '1', '-c', '1', '-m', String(streams), '-D', String(seconds), `--connect-to=127.0.0.1:${port}`];
  const url = `https://${host}${path}`;
  const { stdout } = await runOk('h2load', [...flags, url]);
  const count = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? Number.NaN);
  const requests = count(/ (\d+) succeeded/);
  const refused = count(/ (\d+) 4xx/) + count(/ (\d+) 5xx/);
  if (!stdout.includes('Application protocol: h2')) throw new Error(`${url} did not speak HTTP/2: ${stdout}`);
  if (!(requests > 0) || refused !== 0) throw new Error(`${url} gave errors: ${stdout}`);
  return { requests, failed: count(/ (\d+) failed/) };
}
