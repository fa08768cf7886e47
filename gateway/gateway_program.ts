import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { readPrivateFile } from '../machine/state_file.ts';
import type { LocalApiAddress } from './sidecar/local_api.ts';
import { type GatewayRun, runSocketGateway, runStdioGateway } from './run_gateway.ts';

/**
 * Composition root of the gateway that the sidecar starts (`--socket PATH`). It ends when its stdin closes, which the sidecar
 * keeps open while it runs. Without a socket it serves one client over stdin and stdout.
 */

const EXIT_USAGE = 2;
const EXIT_UNREACHABLE = 3;

const FLAGS = {
  home: { type: 'string' },
  sidecar: { type: 'string' },
  socket: { type: 'string' },
} as const;

function fail(code: number, message: string): never {
  process.stderr.write(`svc mcp gateway: ${message}\n`);
  process.exit(code);
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

/** The token is read each time, because the sidecar may have been restarted with a new one. */
function locate(home: string, origin: URL): LocalApiAddress | null {
  const token = readPrivateFile(join(home, 'sidecar', 'host.token'));
  return token.ok && token.value !== null ? { origin, hostToken: token.value.trim() } : null;
}

function runOf(home: string, origin: URL, stop: AbortSignal): GatewayRun {
  return {
    mcpHome: join(home, 'mcp'),
    locate: () => locate(home, origin),
    env: process.env,
    version: version(),
    pid: process.pid,
    clock: { now: () => Date.now() },
    pause: async (ms, signal) => {
      await delay(ms, undefined, { signal }).catch(() => undefined);
    },
    warn: (message) => {
      process.stderr.write(`${message}\n`);
    },
    stop,
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({ args: process.argv.slice(2), options: FLAGS, strict: true });
  const { home, sidecar, socket } = values;
  if (home === undefined || sidecar === undefined || !URL.canParse(sidecar)) {
    fail(EXIT_USAGE, 'give --home DIR and --sidecar URL');
  }
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stop.abort());
  const run = runOf(home, new URL(sidecar), stop.signal);
  if (socket === undefined) {
    const served = await runStdioGateway(run, { stdin: process.stdin, stdout: process.stdout });
    process.exit(served.ok ? 0 : fail(EXIT_UNREACHABLE, served.error.message));
  }
  process.stdin.on('end', () => stop.abort()).resume();
  const served = await runSocketGateway(run, socket, () => {
    process.stdout.write(`${JSON.stringify({ listening: socket })}\n`);
  });
  process.exit(served.ok ? 0 : fail(EXIT_UNREACHABLE, served.error.message));
}

await main();
