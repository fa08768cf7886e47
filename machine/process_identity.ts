import { readFileSync } from 'node:fs';
import { errorCode } from '../shared/model/error_code.ts';

/** True when a process with this id exists (also one that belongs to somebody else). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** A process that can be told from a later one with the same id: `started` is null where the system does not say it. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly started: string | null;
}

/** The identity of a running process, or null when there is none with this id. */
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

/** True when that very process still runs. */
export function isRunning(known: ProcessIdentity): boolean {
  const found = identify(known.pid);
  return found !== null && (found.started === null || known.started === null || found.started === known.started);
}
