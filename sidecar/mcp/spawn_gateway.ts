import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { GatewayHandle } from './gateway_child.ts';

export interface GatewaySpawn {
  /** `$SVC_HOME`. */
  readonly home: string;
  /** Where the daemon's local API listens. */
  readonly origin: string;
  /** The daemon's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv: readonly string[];
  /** What the program says on stderr. */
  readonly log: (line: string) => void;
}

const PROGRAM = fileURLToPath(new URL('../../gateway/gateway_program.ts', import.meta.url));

/** Starts the gateway's program, which ends when this process does: its input is open as long as this lives. */
export function spawnGateway({ home, origin, env, execArgv, log }: GatewaySpawn, socketPath: string): GatewayHandle {
  const args = [...execArgv, PROGRAM, '--home', home, '--daemon', origin, '--socket', socketPath];
  const child = spawn(process.execPath, args, { env: withoutSettings(env), stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stderr }).on('line', log);
  const ready = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"listening":')) resolve();
      else log(line);
    });
  });
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal === null ? `exit status ${code ?? '?'}` : signal));
  });
  return { ready, exited, kill: (signal) => void child.kill(signal) };
}

/** Settings are the daemon's: the program asks it for what it needs. */
function withoutSettings(env: GatewaySpawn['env']): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^svc_/i.test(name)));
}

/** `$SVC_HOME/mcp`, made for its owner alone, without the sockets of gateways that were killed. */
export function openGatewayDirectory(home: string): string {
  const directory = join(home, 'mcp');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  for (const name of readdirSync(directory)) {
    if (/^gw-[0-9a-f]{8}[.]sock$/.test(name)) rmSync(join(directory, name), { force: true });
  }
  return directory;
}

/** A path that no program has listened on. */
export function newSocketPath(directory: string): string {
  return join(directory, `gw-${randomBytes(4).toString('hex')}.sock`);
}
