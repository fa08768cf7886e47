import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../shared/model/json.ts';
import { bootId, identify, isRunning, isSurelyRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { pause } from '../../machine/pause.ts';
import { isObjectOf, isText, isWholeNumber, orMissing, orNull, readFields } from '../read_fields.ts';
import { listSessionFolders, readSessionText } from '../up/session_folders.ts';

/** The part of a saved session's signed text that names its launcher and the proxy. Who may restore it is the sidecar's to check. */
interface SavedLauncher {
  readonly proxyPort?: number | undefined;
  readonly bootId: string | null;
  readonly owner: { readonly pid: number; readonly started: string } | null;
}

const isPort = (value: unknown): value is number => isWholeNumber(value) && value >= 1 && value <= 65_535;
const isOrdinaryPid = (value: unknown): value is number => isWholeNumber(value) && value >= 2;

const KILL_MS = 5_000;
const LOOK_AGAIN_MS = 50;
/** A pass over the processes takes a few milliseconds; a program that forks faster than it is stopped would never end it. */
const MOST_PASSES = 200;
/** A process that is just starting its program has no environment, for less than a millisecond if the program is in memory. */
const STARTING_MS = 100;
const STARTING_LOOK_MS = 2;

/** The running `svc run` and `svc launch` of the saved sessions. Start times of an earlier run of the system do not count. */
export function findLaunchers(home: string): readonly ProcessIdentity[] {
  return findSaved(home).flatMap(({ owner }) => (owner === null ? [] : [owner]));
}

/** The proxy's port of a saved session whose launcher runs; null if there is none. */
export function findSavedPort(home: string): number | null {
  return findSaved(home).find(({ proxyPort }) => proxyPort !== undefined)?.proxyPort ?? null;
}

function findSaved(home: string): readonly SavedLauncher[] {
  const boot = bootId();
  const saved = listSessionFolders(home).map(({ path }) => readLauncher(join(path, 'session.jws')));
  return saved.flatMap((each) => {
    const runs = each !== null && each.bootId === boot && each.owner !== null && isSurelyRunning(each.owner);
    return runs ? [each] : [];
  });
}

/** The launcher of a saved session that this process runs below; null if there is none. */
export function findLauncherAbove(home: string): ProcessIdentity | null {
  const above = ancestorsOf(process.pid, readParents());
  return findLaunchers(home).find(({ pid }) => above.has(pid)) ?? null;
}

/** Whether the folder of a session names its launcher, which may have ended. */
export function namesLauncher(folder: string): boolean {
  return readLauncher(join(folder, 'session.jws')) !== null;
}

function readLauncher(path: string): SavedLauncher | null {
  const payload = Buffer.from(readSessionText(path)?.split('.')[1] ?? '', 'base64url').toString('utf8');
  return readFields<SavedLauncher>(parseJson(payload), {
    proxyPort: orMissing(isPort),
    bootId: orNull(isText),
    owner: orNull(isObjectOf({ pid: isOrdinaryPid, started: isText })),
  });
}

/** What became of processes that should end. */
export interface EndedProcesses {
  readonly ended: readonly number[];
  /** They could not be ended. */
  readonly left: readonly number[];
  /** This command runs below them, so they were not touched. */
  readonly above: readonly number[];
}

/** Which processes to end. */
interface Targets {
  /** These and everything below them. */
  readonly roots: readonly ProcessIdentity[];
  /** On Linux also every process whose environment names one of these sessions: it may have left its parent. */
  readonly sessionIds: readonly string[];
  /** Not these, and nothing below them, even if they are below a root. */
  readonly spared: readonly ProcessIdentity[];
}

/**
 * Processes that are stopped first and killed later. A process that got a signal to end could start another one that nobody
 * looks for; a stopped one cannot.
 */
export class FrozenProcesses {
  readonly #frozen = new Map<string, ProcessIdentity>();
  readonly #above = new Set<number>();
  readonly #startingMs: number;

  /** How long a process without an environment is read again. */
  constructor(startingMs = STARTING_MS) {
    this.#startingMs = startingMs;
  }

  /** Stops the processes, and what they start meanwhile, until there is nothing new. */
  freeze(targets: Targets): void {
    let waitedMs = 0;
    for (let pass = 0; pass < MOST_PASSES;) {
      const { found, isAnyStarting } = this.#find(targets);
      const fresh = found.filter((each) => !this.#frozen.has(keyOf(each)));
      for (const each of fresh) {
        this.#frozen.set(keyOf(each), each);
        signal(each, 'SIGSTOP');
      }
      if (fresh.length > 0) pass += 1;
      // One of them may turn out to be of a session.
      else if (waitedMs < this.#startingMs && isAnyStarting) {
        waitedMs += STARTING_LOOK_MS;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STARTING_LOOK_MS);
      } else return;
    }
  }

  /** Kills what was stopped. */
  async kill(): Promise<EndedProcesses> {
    const all = [...this.#frozen.values()];
    for (const each of all) signal(each, 'SIGKILL');
    await waitForEnd(all, KILL_MS);
    const left = all.filter((each) => isRunning(each)).map(({ pid }) => pid);
    const ended = all.map(({ pid }) => pid).filter((pid) => !left.includes(pid));
    return { ended, left, above: [...this.#above] };
  }

  #find({ roots, sessionIds, spared }: Targets): Found {
    const parents = readParents();
    const ancestors = ancestorsOf(process.pid, parents);
    const known = [...roots, ...this.#frozen.values()].filter((each) => isRunning(each));
    const { marked, isAnyStarting } = findMarked(parents, sessionIds);
    const rootPids = new Set([...known.map(({ pid }) => pid), ...marked]);
    const sparedPids = new Set(spared.filter((each) => isRunning(each)).map(({ pid }) => pid));
    for (const pid of rootPids) if (pid !== process.pid && ancestors.has(pid)) this.#above.add(pid);
    const ended = [...rootPids].filter((pid) => !ancestors.has(pid));
    const found = [...ended, ...pidsBelow(new Set(ended), parents)].filter((pid) => {
      return !ancestors.has(pid) && !hasAny(ancestorsOf(pid, parents), sparedPids);
    });
    return {
      found: [...new Set(found)].map((pid) => identify(pid)).filter((each) => each !== null),
      isAnyStarting,
    };
  }
}

interface Found {
  readonly found: readonly ProcessIdentity[];
  readonly isAnyStarting: boolean;
}

function keyOf({ pid, started }: ProcessIdentity): string {
  return `${pid} ${started}`;
}

/**
 * The processes whose environment names one of the sessions; none if the system does not tell. A process between two programs has
 * no environment; one that really has none looks the same. Both are told by one look, or a program could start between two.
 */
function findMarked(
  parents: ReadonlyMap<number, number>,
  sessionIds: readonly string[],
): { readonly marked: readonly number[]; readonly isAnyStarting: boolean } {
  const marks = new Set(sessionIds.map((id) => `SVC_SESSION_ID=${id}`));
  if (marks.size === 0) return { marked: [], isAnyStarting: false };
  const environments = [...parents.keys()].map((pid) => ({ pid, environment: readEnvironment(pid) }));
  return {
    marked: environments.flatMap(({ pid, environment }) =>
      hasAny(environment?.split('\0') ?? [], marks) ? [pid] : [],
    ),
    isAnyStarting: environments.some(({ environment }) => environment === ''),
  };
}

/** Null if the process has ended, is no program, or belongs to another user. */
function readEnvironment(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return null;
  }
}

function hasAny<T>(values: Iterable<T>, wanted: ReadonlySet<T>): boolean {
  for (const value of values) if (wanted.has(value)) return true;
  return false;
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

function pidsBelow(roots: ReadonlySet<number>, parents: ReadonlyMap<number, number>): readonly number[] {
  return [...parents.keys()].filter((pid) => !roots.has(pid) && hasAny(ancestorsOf(pid, parents), roots));
}

function signal(known: ProcessIdentity, name: 'SIGSTOP' | 'SIGKILL'): void {
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
