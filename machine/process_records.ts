import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { identify, isRunning, isSurelyRunning, type ProcessIdentity } from './process_identity.ts';

const identity = z.object({ pid: z.number().int().positive(), started: z.string().nullable() });
const record = z.object({
  server: identity,
  gateway: identity,
  run_id: z.string().regex(/^[0-9a-f.]{8,80}$/),
  server_id: z.string().nullable().default(null),
});

/** A started server process, the gateway that started it, and the mark of its processes. */
interface ProcessRecord {
  readonly server: ProcessIdentity;
  readonly gateway: ProcessIdentity;
  readonly runId: string;
  /** The gateway's process; null if an earlier version wrote the record. */
  readonly serverId: string | null;
}

/** Records of running servers in `$SVC_HOME/mcp/running`. A gateway uses them to find leftovers of a killed one. */
export class ProcessRecords {
  readonly #directory: string;
  readonly #gateway: ProcessIdentity;

  constructor(mcpHome: string, gatewayPid: number) {
    this.#directory = recordsDirectory(mcpHome);
    this.#gateway = identify(gatewayPid) ?? { pid: gatewayPid, started: null };
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
  }

  add(pid: number, runId: string, serverId: string): void {
    const server = identify(pid) ?? { pid, started: null };
    const text = JSON.stringify({ server, gateway: this.#gateway, run_id: runId, server_id: serverId });
    writeFileSync(this.#path(pid), text, { mode: 0o600 });
  }

  remove(pid: number): void {
    rmSync(this.#path(pid), { force: true });
  }

  /** The records of dead gateways. Invalid files are removed. */
  listAbandoned(): readonly ProcessRecord[] {
    return recordFiles(this.#directory).flatMap((path) => {
      const found = read(path);
      if (found === null) rmSync(path, { force: true });
      return found === null || isRunning(found.gateway) ? [] : [found];
    });
  }

  #path(pid: number): string {
    return join(this.#directory, `${pid}.json`);
  }
}

/** The servers that may have running processes, of any gateway; null if unknown. */
export function serversInUse(mcpHome: string): ReadonlySet<string> | null {
  const directory = recordsDirectory(mcpHome);
  const records = existsSync(directory) ? recordFiles(directory).map((path) => read(path)) : [];
  // An unreadable record may be in the middle of being written.
  if (records.includes(null)) return null;
  const running = records.filter((found) => found !== null && (isRunning(found.server) || isRunning(found.gateway)));
  const ids = running.map((found) => found?.serverId ?? null);
  return ids.includes(null) ? null : new Set(ids.filter((id) => id !== null));
}

/** The running gateways and the servers that they started, of every client of this machine. */
export function listRunningServers(mcpHome: string): readonly ProcessIdentity[] {
  const directory = recordsDirectory(mcpHome);
  const paths = existsSync(directory) ? recordFiles(directory) : [];
  const found = paths.map((path) => read(path)).filter((each) => each !== null);
  return found.flatMap(({ gateway, server }) => [gateway, server]).filter((each) => isSurelyRunning(each));
}

function recordsDirectory(mcpHome: string): string {
  return join(mcpHome, 'running');
}

function recordFiles(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => join(directory, name));
}

function read(path: string): ProcessRecord | null {
  try {
    const {
      server,
      gateway,
      run_id: runId,
      server_id: serverId,
    } = record.parse(JSON.parse(readFileSync(path, 'utf8')));
    return { server, gateway, runId, serverId };
  } catch {
    return null;
  }
}
