import { lstatSync, openSync, closeSync, fstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Plan } from '../../shared/model/plan.ts';
import { readLockKey, type LockKey } from '../../sandbox/plan/lock_key.ts';
import { MAX_LOCK_FILE_BYTES } from '../../sandbox/plan/lock_file.ts';
import { MAX_PLAN_FILE_BYTES, parsePlan, planProblemText } from '../../sandbox/plan/plan_file.ts';
import type { ReadFile } from '../../sandbox/plan/verify_plan.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';

/** A plan and its lock, as named on the command line. */
interface PlanPaths {
  /** As typed, for messages. */
  readonly plan: string;
  readonly lock: string;
}

/** `plan.yaml` has `plan.lock` beside it. */
export function planPaths(call: Call): PlanPaths {
  const plan = call.args[0] ?? 'plan.yaml';
  return { plan, lock: `${plan.replace(/\.ya?ml$/i, '')}.lock` };
}

export function readPlanFile(call: Call, paths: PlanPaths): ReadFile {
  return readWhole(call, paths.plan, MAX_PLAN_FILE_BYTES, [
    '`svc plan init` writes an example. To use another file: `svc plan ... FILE`.',
  ]);
}

export function readLockFile(call: Call, paths: PlanPaths): ReadFile {
  return readWhole(call, paths.lock, MAX_LOCK_FILE_BYTES, [`Create it: svc plan freeze ${paths.plan}`]);
}

/** Reads the plan; throws every problem with its line. */
export function planOf(file: ReadFile): Plan {
  const parsed = parsePlan(new TextDecoder().decode(file.bytes));
  if (parsed.ok) return parsed.value;
  const problems = parsed.error.map((problem) => planProblemText(file.name, problem));
  throw new CliError(EXIT.failed, `${file.name} cannot be used:`, problems);
}

/** The key of this state directory's sidecar. */
export async function lockKeyOf(call: Call): Promise<LockKey> {
  const key = await readLockKey(join(homeOf(call.context, call.options), 'sidecar'));
  if (key.ok) return key.value;
  throw new CliError(EXIT.failed, key.error, ['Start svc once: `npm start` or `svc up` (the same --home).']);
}

/** Writes a file atomically: a reader sees the old content or the new. */
export function writeWhole(call: Call, name: string, text: string): void {
  const path = resolve(call.context.workingDirectory, name);
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    writeFileSync(temporary, text, { flag: 'wx' });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new CliError(EXIT.failed, `${name} cannot be written: ${messageOf(error)}`);
  }
}

export function exists(call: Call, name: string): boolean {
  return lstatSync(resolve(call.context.workingDirectory, name), { throwIfNoEntry: false }) !== undefined;
}

function readWhole(call: Call, name: string, mostBytes: number, fixes: readonly string[]): ReadFile {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(resolve(call.context.workingDirectory, name), 'r');
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new CliError(EXIT.failed, `${name} is not a file`, fixes);
    if (stats.size > mostBytes) throw new CliError(EXIT.failed, `${name} is larger than ${mostBytes} bytes`);
    return { name, bytes: new Uint8Array(readFileSync(descriptor)) };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.failed, `${name} cannot be read: ${messageOf(error)}`, fixes);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
