import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { programFile } from '../../machine/program_file.ts';
import type { GatewayHandle } from './gateway_child.ts';

interface GatewaySpawn {
  /** `$SVC_HOME`. */
  readonly home: string;
  /** The origin of the sidecar's local API. */
  readonly origin: string;
  /** The sidecar's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv: readonly string[];
  /** The program's stderr. */
  readonly log: (line: string) => void;
}

const PROGRAM = programFile('gateway/gateway_program');

/** Starts the gateway's program. It ends with this process, because its stdin stays open only as long as this process lives. */
export function spawnGateway({ home, origin, env, execArgv, log }: GatewaySpawn, socketPath: string): GatewayHandle {
  const args = [...execArgv, PROGRAM, '--home', home, '--sidecar', origin, '--socket', socketPath];
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

/** The program gets no settings: it asks the sidecar for them. */
function withoutSettings(env: GatewaySpawn['env']): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^svc_/i.test(name)));
}

/** `$SVC_HOME/mcp`, created for its owner only; removes the sockets of killed gateways. */
export function openGatewayDirectory(home: string): string {
  const directory = join(home, 'mcp');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  for (const name of readdirSync(directory)) {
    if (/^gw-[0-9a-f]{8}[.]sock$/.test(name)) rmSync(join(directory, name), { force: true });
  }
  return directory;
}

/** A path on which no program has listened. */
export function newSocketPath(directory: string): string {
  return join(directory, `gw-${randomBytes(4).toString('hex')}.sock`);
}
