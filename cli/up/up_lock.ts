import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identify, isRunning, isSurelyRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { parseJson } from '../../shared/model/json.ts';
import { isListOf, isObjectOf, isText, isWholeNumber, orNull, readFields } from '../read_fields.ts';
import { readStateText } from './home.ts';

interface UpLockContent {
  readonly supervisor: ProcessIdentity;
  readonly programs: readonly ProcessIdentity[];
}

const isIdentity = isObjectOf<ProcessIdentity>({ pid: isWholeNumber, started: orNull(isText) });

/** What prevents a start. */
type LockOutcome =
  | { readonly kind: 'taken'; readonly lock: UpLock }
  /** Another `svc up` is running here. */
  | { readonly kind: 'running'; readonly pid: number }
  /** An earlier one was killed: its programs may still be running. The lock is now free. */
  | { readonly kind: 'stale'; readonly programs: readonly ProcessIdentity[] };

/** `$SVC_HOME/up.lock`: allows one supervisor per state directory and lists the programs that it started. */
export class UpLock {
  readonly #path: string;
  readonly #supervisor: ProcessIdentity;

  private constructor(path: string, supervisor: ProcessIdentity) {
    this.#path = path;
    this.#supervisor = supervisor;
  }

  /** Takes the lock, or one of another name, or returns why not. After `stale`, call it again. */
  static take(home: string, pid: number, name = 'up.lock'): LockOutcome {
    const path = join(home, name);
    const supervisor = identify(pid) ?? { pid, started: null };
    const own = `${path}.${pid}`;
    writeFileSync(own, content(supervisor, []), { mode: 0o600 });
    try {
      // A hard link appears atomically and never replaces another process's file.
      linkSync(own, path);
      return { kind: 'taken', lock: new UpLock(path, supervisor) };
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      return lookAt(path, pid);
    } finally {
      rmSync(own, { force: true });
    }
  }

  /** What the running supervisor of the state directory recorded; null if none runs. */
  static readRunning(home: string): UpLockContent | null {
    const found = parse(readStateText(join(home, 'up.lock')));
    return found !== null && isRunning(found.supervisor) ? found : null;
  }

  /** The supervisor and the programs that the lock names and that run, also if the supervisor itself was killed. */
  static readPrograms(home: string): readonly ProcessIdentity[] {
    const found = parse(readStateText(join(home, 'up.lock')));
    return found === null ? [] : [found.supervisor, ...found.programs].filter((each) => isSurelyRunning(each));
  }

  /** Records the running programs, for the next `svc up` if this one crashes. */
  note(pids: readonly number[]): void {
    const programs = pids.map((pid) => identify(pid)).filter((found) => found !== null);
    const next = `${this.#path}.next`;
    writeFileSync(next, content(this.#supervisor, programs), { mode: 0o600 });
    renameSync(next, this.#path);
  }

  release(): void {
    rmSync(this.#path, { force: true });
  }
}

function content(supervisor: ProcessIdentity, programs: readonly ProcessIdentity[]): string {
  return `${JSON.stringify({ supervisor, programs })}\n`;
}

/** Finds the lock's owner; moves a stale lock away, unless a third process has just taken it over. */
function lookAt(path: string, pid: number): LockOutcome {
  const text = readStateText(path);
  const found = parse(text);
  if (found !== null && isRunning(found.supervisor)) return { kind: 'running', pid: found.supervisor.pid };
  const aside = `${path}.stale.${pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return { kind: 'stale', programs: [] };
  }
  const moved = parse(readStateText(aside));
  if (moved !== null && isRunning(moved.supervisor)) {
    renameSync(aside, path);
    return { kind: 'running', pid: moved.supervisor.pid };
  }
  rmSync(aside, { force: true });
  return { kind: 'stale', programs: (moved?.programs ?? []).filter((program) => isRunning(program)) };
}

function parse(text: string | null): UpLockContent | null {
  return readFields<UpLockContent>(parseJson(text ?? ''), { supervisor: isIdentity, programs: isListOf(isIdentity) });
}
