import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { holdPort, type HeldPort } from './held_port.ts';
import { pause } from '../../machine/pause.ts';
import { isRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { logFolder, prepareLog, type LogName } from './log_files.ts';
import { RotatingLog } from './rotating_log.ts';
import { readRunFile, removeRunFile, writeRunFile } from './run_file.ts';
import {
  SupervisedProgram,
  StartError,
  STOP_TIMEOUT_MS,
  type ProgramSpec,
  type SupervisorPort,
} from './supervised_program.ts';
import { UpLock } from './up_lock.ts';
import { errorCode } from '../../shared/model/error_code.ts';

const LOOK_AGAIN_MS = 50;

/** The content of run.json without the process ids. */
interface PublishedFacts {
  readonly controlUrl: string;
  readonly proxyUrl: string;
  readonly control: SupervisedProgram | null;
  readonly sidecar: SupervisedProgram;
}

type SupervisorContext = Pick<CliContext, 'stop' | 'pause' | 'now' | 'version'>;

/** The programs that one `svc up` keeps running on a state directory. */
export class Supervisor {
  readonly #context: SupervisorContext;
  readonly #stop: AbortSignal;
  readonly #home: string;
  readonly #lock: UpLock;
  readonly #port: SupervisorPort;
  readonly #programs: SupervisedProgram[] = [];
  readonly #logs: RotatingLog[] = [];
  readonly #held: HeldPort[] = [];
  #published: (PublishedFacts & { readonly startedAt: string }) | null = null;

  private constructor(
    context: SupervisorContext,
    stop: AbortSignal,
    { home, lock, notice }: { readonly home: string; readonly lock: UpLock; readonly notice: (text: string) => void },
  ) {
    this.#context = context;
    this.#stop = stop;
    this.#home = home;
    this.#lock = lock;
    this.#port = { notice, delay: context.pause, now: context.now, onChanged: () => this.#recordPrograms() };
  }

  /** Locks the prepared state directory for this process; throws `CliError` if another one holds it. */
  static async open(context: SupervisorContext, home: string, notice: (text: string) => void): Promise<Supervisor> {
    // Taking it begins to handle signals, which until then end the process at once and would leave the lock behind.
    const { stop } = context;
    const lock = await takeLock(home, notice);
    removeRunFile(home);
    return new Supervisor(context, stop, { home, lock, notice });
  }

  /** Starts a program and keeps it running; throws `CliError` with its last log lines if it does not start. */
  async start(spec: ProgramSpec): Promise<SupervisedProgram> {
    const program = await startProgram(spec, this.#port, this.#stop, logFolder(this.#home));
    this.#programs.push(program);
    this.#recordPrograms();
    return program;
  }

  /** Binds a port for a program, until {@link stop}; throws `CliError` if that fails. */
  holdPort(port: number, addresses: readonly [string, ...string[]]): HeldPort {
    try {
      const held = holdPort(port, addresses);
      this.#held.push(held);
      return held;
    } catch (error) {
      throw new CliError(EXIT.failed, `port ${port} cannot be used (${errorCode(error)})`, [
        'Stop the program that uses it, or choose another port with --control-port or --proxy-port.',
      ]);
    }
  }

  openLog(name: LogName): RotatingLog {
    const log = new RotatingLog(prepareLog(this.#home, name));
    this.#logs.push(log);
    return log;
  }

  /** Writes run.json now and whenever a program gets a new process id. */
  publish(facts: PublishedFacts): void {
    this.#published = { ...facts, startedAt: new Date(this.#context.now()).toISOString() };
    this.#recordPrograms();
  }

  /**
   * Ends every program in reverse order of start and removes run.json and the lock. If one cannot be ended, the others still
   * are; its error is thrown at the end. `afterwards` is called when they have ended, while no other start is possible.
   */
  async stop(afterwards?: () => Promise<void> | void): Promise<void> {
    this.#published = null;
    const errors: unknown[] = [];
    for (const program of this.#programs.toReversed())
      await program.stop().catch((error: unknown) => errors.push(error));
    for (const held of this.#held) held.close();
    for (const log of this.#logs) log.close();
    removeRunFile(this.#home);
    try {
      await afterwards?.();
    } catch (error) {
      errors.push(error);
    }
    this.#lock.release();
    if (errors.length > 0) throw new AggregateError(errors, 'not everything could be ended');
  }

  #recordPrograms(): void {
    this.#lock.note(this.#programs.map((program) => program.pid));
    if (this.#published === null) return;
    const { controlUrl, proxyUrl, control, sidecar, startedAt } = this.#published;
    writeRunFile(this.#home, {
      control_url: controlUrl,
      proxy_url: proxyUrl,
      control_pid: control?.pid ?? null,
      sidecar_pid: sidecar.pid,
      version: this.#context.version,
      started_at: startedAt,
    });
  }
}

async function startProgram(
  spec: ProgramSpec,
  port: SupervisorPort,
  stop: AbortSignal,
  logs: string,
): Promise<SupervisedProgram> {
  try {
    return await SupervisedProgram.start(spec, port, stop);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    if (stop.aborted) throw new CliError(EXIT.ok, 'stopped before it was ready');
    throw new CliError(EXIT.failed, error.message, [...error.lastWords, `See ${logs}.`]);
  }
}

async function takeLock(home: string, notice: (text: string) => void): Promise<UpLock> {
  for (;;) {
    const outcome = UpLock.take(home, process.pid);
    if (outcome.kind === 'taken') return outcome.lock;
    if (outcome.kind === 'running') throw alreadyRunning(home, outcome.pid);
    notice(`an earlier svc on ${home} did not shut down cleanly; continuing from its state`);
    await endPrograms(home, outcome.programs, notice);
  }
}

async function endPrograms(
  home: string,
  programs: readonly ProcessIdentity[],
  notice: (text: string) => void,
): Promise<void> {
  removeRunFile(home);
  await Promise.all(programs.map((program) => endLeftOver(program, notice)));
}

/** Ends the programs that a killed supervisor left behind. Returns how many there were. */
export async function endLeftOvers(home: string, notice: (text: string) => void): Promise<number> {
  if (!existsSync(join(home, 'up.lock'))) return 0;
  const outcome = UpLock.take(home, process.pid);
  if (outcome.kind === 'taken') outcome.lock.release();
  if (outcome.kind !== 'stale') return 0;
  await endPrograms(home, outcome.programs, notice);
  return outcome.programs.length;
}

export function alreadyRunning(home: string, pid: number): CliError {
  const url = readRunFile(home)?.control_url;
  return new CliError(EXIT.failed, `svc is already running on ${home}: process ${pid}, ${url ?? 'still starting'}`, [
    `Use that one, stop it (svc down), or start another with --home DIR --control-port 0 --proxy-port 0.`,
  ]);
}

/** Ends a program that a killed supervisor left behind: it still holds a port or the database. */
async function endLeftOver(program: ProcessIdentity, notice: (text: string) => void): Promise<void> {
  notice(`ending process ${program.pid}, left behind by an earlier svc`);
  kill(program, 'SIGTERM');
  const never = new AbortController().signal;
  for (let waitedMs = 0; isRunning(program) && waitedMs < STOP_TIMEOUT_MS; waitedMs += LOOK_AGAIN_MS) {
    await pause(LOOK_AGAIN_MS, never);
  }
  kill(program, 'SIGKILL');
}

function kill(program: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (!isRunning(program)) return;
  try {
    process.kill(program.pid, signal);
  } catch {
    // It has just ended by itself.
  }
}
