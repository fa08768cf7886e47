import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { identify, isRunning, isSurelyRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { pause } from '../../machine/pause.ts';

/** The part of a saved session's signed text that names its launcher. Who may restore it is the sidecar's to check. */
const launcher = z.object({ owner: z.object({ pid: z.number().int().min(2), started: z.string() }).nullable() });

const TERM_MS = 3_000;
const KILL_MS = 5_000;
const LOOK_AGAIN_MS = 50;

/** The running `svc run` and `svc launch` of the saved sessions. */
export function findLaunchers(home: string): readonly ProcessIdentity[] {
  const directory = join(home, 'sessions');
  const names = existsSync(directory) ? readdirSync(directory) : [];
  const found = names.map((name) => ownerIn(join(directory, name, 'session.jws'))).filter((each) => each !== null);
  return found.filter((each) => isSurelyRunning(each));
}

function ownerIn(path: string): ProcessIdentity | null {
  try {
    const payload = Buffer.from(readFileSync(path, 'utf8').split('.')[1] ?? '', 'base64url').toString('utf8');
    return launcher.safeParse(parseJson(payload)).data?.owner ?? null;
  } catch {
    return null;
  }
}

/** What became of processes that should end. */
export interface EndedProcesses {
  readonly ended: readonly number[];
  /** They could not be ended. */
  readonly left: readonly number[];
  /** This command runs below them, so they were not touched. */
  readonly above: readonly number[];
}

/**
 * Ends processes with everything below them: SIGTERM, and SIGKILL after a few seconds. What they have started is found before
 * the first signal, since it loses its parent afterwards.
 */
export async function endTrees(roots: readonly ProcessIdentity[]): Promise<EndedProcesses> {
  const parents = readParents();
  const ancestors = ancestorsOf(process.pid, parents);
  const above = roots.filter(({ pid }) => ancestors.has(pid));
  const wanted = roots.filter(({ pid }) => !ancestors.has(pid));
  const trees = [...wanted, ...descendantsOf(wanted, parents)];
  for (const each of wanted) signal(each, 'SIGTERM');
  await waitForEnd(trees, TERM_MS);
  for (const each of trees) signal(each, 'SIGKILL');
  await waitForEnd(trees, KILL_MS);
  const left = trees.filter((each) => isRunning(each)).map(({ pid }) => pid);
  const ended = trees.map(({ pid }) => pid).filter((pid) => !left.includes(pid));
  return { ended, left, above: above.map(({ pid }) => pid) };
}

/** The parent of each process of this machine; empty if the system does not tell. */
function readParents(): ReadonlyMap<number, number> {
  return new Map(existsSync('/proc/self/stat') ? parentsFromProc() : parentsFromPs());
}

function parentsFromProc(): readonly (readonly [number, number])[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // Field 4 of /proc/PID/stat is the parent; the command in field 2 may hold spaces and parentheses.
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      return [[Number(name), parent] as const];
    } catch {
      return [];
    }
  });
}

function parentsFromPs(): readonly (readonly [number, number])[] {
  try {
    const text = execFileSync('/bin/ps', ['-A', '-o', 'pid=,ppid='], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const rows = text.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
    return rows.flatMap(([pid, parent]) => (pid === undefined || parent === undefined ? [] : [[pid, parent] as const]));
  } catch {
    return [];
  }
}

function ancestorsOf(pid: number, parents: ReadonlyMap<number, number>): ReadonlySet<number> {
  const found = new Set<number>();
  for (let at: number | undefined = pid; at !== undefined && at > 1 && !found.has(at); at = parents.get(at))
    found.add(at);
  return found;
}

function descendantsOf(
  roots: readonly ProcessIdentity[],
  parents: ReadonlyMap<number, number>,
): readonly ProcessIdentity[] {
  const rootIds = new Set(roots.map(({ pid }) => pid));
  const below = [...parents.keys()].filter((pid) => {
    return !rootIds.has(pid) && [...ancestorsOf(pid, parents)].some((ancestor) => rootIds.has(ancestor));
  });
  return below.map((pid) => identify(pid)).filter((each) => each !== null);
}

function signal(known: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL'): void {
  if (!isRunning(known)) return;
  try {
    process.kill(known.pid, name);
  } catch {
    // It has just ended, or belongs to another user: then it is reported as left.
  }
}

async function waitForEnd(all: readonly ProcessIdentity[], mostMs: number): Promise<void> {
  const never = new AbortController().signal;
  for (let waitedMs = 0; waitedMs < mostMs && all.some((each) => isRunning(each)); waitedMs += LOOK_AGAIN_MS) {
    await pause(LOOK_AGAIN_MS, never);
  }
}
