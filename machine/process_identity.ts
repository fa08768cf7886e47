import { readFileSync } from 'node:fs';
import { errorCode } from '../shared/model/error_code.ts';

/** True if a process with this id exists, even if it belongs to another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** Identifies a process even after its id is reused: `started` is its start time, null if the system does not provide it. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly started: string | null;
}

/** The identity of a running process, or null if none has this id. */
export function identify(pid: number): ProcessIdentity | null {
  if (!isAlive(pid)) return null;
  try {
    // Field 22 of /proc/PID/stat is the start time; the command in field 2 may hold spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : { pid, started: fields[19] ?? null };
  } catch {
    return { pid, started: null };
  }
}

/** True if exactly that process still runs. */
export function isRunning(known: ProcessIdentity): boolean {
  const found = identify(known.pid);
  return found !== null && (found.started === null || known.started === null || found.started === known.started);
}
