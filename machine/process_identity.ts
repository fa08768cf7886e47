import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
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

const HAS_PROC = existsSync('/proc/self/stat');
const PS_MS = 5_000;

/** The identity of a running process, or null if none has this id. Without /proc (macOS), this starts `ps`. */
export function identify(pid: number): ProcessIdentity | null {
  if (!isAlive(pid)) return null;
  if (!HAS_PROC) return { pid, started: startTimeFromPs(pid) };
  try {
    // Field 22 of /proc/PID/stat is the start time; the command in field 2 may hold spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : { pid, started: fields[19] ?? null };
  } catch {
    return { pid, started: null };
  }
}

/** The start time of a process as `ps` prints it, in UTC; null if it does not. */
export function startTimeFromPs(pid: number, program = '/bin/ps'): string | null {
  try {
    const options = { env: { LC_ALL: 'C', TZ: 'UTC0' }, timeout: PS_MS, encoding: 'utf8' } as const;
    const text = execFileSync(program, ['-o', 'lstart=', '-p', String(pid)], {
      ...options,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return text.trim() === '' ? null : text.trim();
  } catch {
    return null;
  }
}

/** True if exactly that process still runs. A start time that is not known is not compared. */
export function isRunning(known: ProcessIdentity): boolean {
  return matches(known, identify(known.pid));
}

/** The same for a check that is made often: it starts no program, so without /proc it compares only the id. */
export function isRunningByPoll(known: ProcessIdentity): boolean {
  return HAS_PROC ? isRunning(known) : isAlive(known.pid);
}

/** The same, but false if a start time is not known. For a record that was written by an earlier run. */
export function isSurelyRunning(known: ProcessIdentity): boolean {
  return known.started !== null && identify(known.pid)?.started === known.started;
}

function matches(known: ProcessIdentity, found: ProcessIdentity | null): boolean {
  return found !== null && (found.started === null || known.started === null || found.started === known.started);
}

/** Identifies the run of the system: Linux counts start times from its boot. Null where they are absolute. */
export function bootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return null;
  }
}
