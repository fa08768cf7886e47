import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { killTree, signalGroup } from './process_tree.ts';
import type { StderrRing } from './stderr_ring.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** The program to start, without a shell. */
interface ProgramStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly runId: string;
  /** Tracks the process group from its start until it is gone. */
  readonly watch: { add(pid: number): void; remove(pid: number): void };
  /** Ends what signals to the group do not reach: a container. */
  readonly afterwards?: () => Promise<void>;
}

/** A program in its own process group and session. */
export class ServerProcess {
  readonly pid: number;
  readonly child: ChildProcessWithoutNullStreams;
  readonly stderr: StderrRing;
  /** Resolves when the program and its group have ended, with how it ended. */
  readonly ended: Promise<string>;
  readonly #start: ProgramStart;
  #stopping: Promise<void> | null = null;

  private constructor(child: ChildProcessWithoutNullStreams, pid: number, start: ProgramStart, stderr: StderrRing) {
    this.child = child;
    this.pid = pid;
    this.#start = start;
    this.stderr = stderr;
    start.watch.add(pid);
    child.stderr.on('data', (chunk: Uint8Array) => stderr.write(chunk));
    child.stderr.on('close', () => stderr.end());
    child.stderr.on('error', () => undefined);
    this.ended = this.#end();
  }

  /** Starts the program. The error is for a person and names the program. */
  static start(start: ProgramStart, stderr: StderrRing): Promise<Result<ServerProcess, string>> {
    const child = spawn(start.program, [...start.args], {
      cwd: start.directory,
      env: start.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      shell: false,
      detached: true,
    });
    return new Promise((resolve) => {
      child.once('error', (error) => resolve(err(describeStartFailure(start.program, error))));
      child.once('spawn', () => {
        const { pid } = child;
        if (pid === undefined) return resolve(err(describeStartFailure(start.program, new Error('no process'))));
        // Later errors are about signals that could not be sent. Without a listener they would end this program.
        child.on('error', () => undefined);
        resolve(ok(new ServerProcess(child, pid, start, stderr)));
      });
    });
  }

  /** Closes its stdin, sends SIGTERM, and SIGKILL after `patienceMs`. Resolves when it is gone. */
  stop(patienceMs: number): Promise<void> {
    this.#stopping ??= this.#stop(patienceMs);
    return this.#stopping;
  }

  async #stop(patienceMs: number): Promise<void> {
    this.child.stdin.end();
    if (await this.#endsWithin(patienceMs / 2)) return;
    signalGroup(this.pid, 'SIGTERM');
    if (await this.#endsWithin(patienceMs)) return;
    signalGroup(this.pid, 'SIGKILL');
    await this.ended;
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), ms);
    try {
      return await Promise.race([this.ended.then(() => true), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #end(): Promise<string> {
    const how = await exitOf(this.child);
    killTree(this.pid, this.#start.runId);
    await this.#start.afterwards?.();
    this.#start.watch.remove(this.pid);
    // A stray process that holds these open would keep them open forever.
    this.child.stdin.destroy();
    this.child.stdout.destroy();
    this.child.stderr.destroy();
    return how;
  }
}

/** Reads the output to its end, unless another process holds it open. */
function exitOf(child: ChildProcessWithoutNullStreams): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const how = signal === null ? `exit code ${code ?? 'unknown'}` : `signal ${signal}`;
      const timer = setTimeout(() => resolve(how), DRAIN_MS);
      child.once('close', () => {
        clearTimeout(timer);
        resolve(how);
      });
    });
  });
}

const DRAIN_MS = 200;

function describeStartFailure(program: string, error: Error): string {
  const code = errorCode(error) || 'unknown error';
  if (code === 'ENOENT') return `the program ${JSON.stringify(program)} is not on the PATH; install it`;
  return `${JSON.stringify(program)} could not be started (${code})`;
}
