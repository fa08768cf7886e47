import { readdirSync, readFileSync } from 'node:fs';
import { RUN_ID_VARIABLE } from './launch_environment.ts';
import { errorCode } from '../../shared/model/error_code.ts';

const ROUNDS = 5;

/** Sends a signal to every process of a group; false if there is none. */
export function signalGroup(pgid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pgid, signal);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
    if (errorCode(error) === 'EPERM') return true;
    throw error;
  }
}

/**
 * Kills what is left of a server: its process group, and processes that left the group but are in its session or carry the mark
 * of its run. A program that starts its own session and clears its environment is not found; only a container can hold it.
 * Without /proc, only the group is found.
 */
export function killTree(leader: number, runId: string): void {
  signalGroup(leader, 'SIGKILL');
  killStrays(leader, runId);
}

/** Kills processes with the mark of a run. */
export function killMarked(runId: string): void {
  killStrays(null, runId);
}

/** Processes that fork during the search are found in the next round. */
function killStrays(session: number | null, runId: string): void {
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = straysOf(session, runId);
    if (left.length === 0) return;
    for (const pid of left) killQuietly(pid);
  }
}

/** The live processes of a session or with the mark of a run. */
function straysOf(session: number | null, runId: string): readonly number[] {
  const mark = `${RUN_ID_VARIABLE}=${runId}`;
  return processIds().filter((pid) => pid !== process.pid && isStray(pid, session, mark));
}

function isStray(pid: number, session: number | null, mark: string): boolean {
  const stat = readProc(`/proc/${pid}/stat`);
  // The command in field 2 may hold spaces and parentheses; the state is field 3, the session field 6.
  const [state, , , sessionId] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === undefined || state === '' || state === 'Z' || state === 'X') return false;
  if (session !== null && Number(sessionId) === session) return true;
  return readProc(`/proc/${pid}/environ`).split('\0').includes(mark);
}

function processIds(): readonly number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

/** Empty if the process has ended or belongs to another user. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended in the meantime.
  }
}
