import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { identify, isRunning, type ProcessIdentity } from '../session/process_identity.ts';

const identity = z.object({ pid: z.number().int().positive(), started: z.string().nullable() });
const record = z.object({ server: identity, gateway: identity, run_id: z.string().regex(/^[0-9a-f.]{8,80}$/) });

/** A server process that was started, by whom, and the mark that it and what it started bear. */
export interface ProcessRecord {
  readonly server: ProcessIdentity;
  readonly gateway: ProcessIdentity;
  readonly runId: string;
}

/** What runs for gateways, in `$SVC_HOME/mcp/running`: how a gateway finds what one before it, that was killed, left. */
export class ProcessRecords {
  readonly #directory: string;
  readonly #gateway: ProcessIdentity;

  constructor(mcpHome: string, gatewayPid: number) {
    this.#directory = join(mcpHome, 'running');
    this.#gateway = identify(gatewayPid) ?? { pid: gatewayPid, started: null };
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
  }

  add(pid: number, runId: string): void {
    const server = identify(pid) ?? { pid, started: null };
    const text = JSON.stringify({ server, gateway: this.#gateway, run_id: runId });
    writeFileSync(this.#path(pid), text, { mode: 0o600 });
  }

  remove(pid: number): void {
    rmSync(this.#path(pid), { force: true });
  }

  /** The records of gateways that are gone. A file that is no record is removed. */
  abandoned(): readonly ProcessRecord[] {
    const names = readdirSync(this.#directory).filter((name) => /^\d+\.json$/.test(name));
    return names.flatMap((name) => {
      const found = read(join(this.#directory, name));
      if (found === null) rmSync(join(this.#directory, name), { force: true });
      return found === null || isRunning(found.gateway) ? [] : [found];
    });
  }

  #path(pid: number): string {
    return join(this.#directory, `${pid}.json`);
  }
}

function read(path: string): ProcessRecord | null {
  try {
    const { server, gateway, run_id: runId } = record.parse(JSON.parse(readFileSync(path, 'utf8')));
    return { server, gateway, runId };
  } catch {
    return null;
  }
}
