import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';

export interface ProgramRun {
  /** An absolute path. No shell is started. */
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** Why a program gave nothing. */
export interface RunFailure {
  /** A predicate for the program. It has nothing in it that the program wrote. */
  readonly message: string;
  /** What the program wrote to stderr at its end. It may contain anything. */
  readonly stderr: string;
}

const KEPT_STDERR_BYTES = 4_096;
/** Something that the program left running may hold its output open. */
const DRAIN_MS = 500;

/**
 * Runs a program to its end and returns its output. It has no terminal and no input, and works in `/`, where no file of a
 * project can change what it does. At the time limit, or when it writes too much, it is killed with everything in its process group.
 */
export async function runProgram(run: ProgramRun, stop?: AbortSignal): Promise<Result<Buffer, RunFailure>> {
  const started = await startProgram(run);
  return started.ok ? superviseProgram(started.value, run, stop) : started;
}

type Started = ChildProcessByStdio<null, Readable, Readable>;

/** Some errors are thrown (ETXTBSY), others are an event, and without a free descriptor (EMFILE) the child has no streams. */
async function startProgram({ program, args, env }: ProgramRun): Promise<Result<Started, RunFailure>> {
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  try {
    const child = spawn(program, [...args], { cwd: '/', env: { ...env }, stdio, detached: true, shell: false });
    if (child.pid === undefined) await once(child, 'spawn');
    return ok(child);
  } catch (error) {
    return err({ message: `could not be started (${errorCode(error) || 'unknown error'})`, stderr: '' });
  }
}

function superviseProgram(child: Started, run: ProgramRun, stop?: AbortSignal): Promise<Result<Buffer, RunFailure>> {
  return new Promise((resolve) => {
    const output = collect(child.stdout, run.maxBytes, () => end(`wrote more than ${run.maxBytes} bytes`));
    const errors = collectLast(child.stderr, KEPT_STDERR_BYTES);
    let ended = false;
    const settle = (result: Result<Buffer, RunFailure>): void => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      stop?.removeEventListener('abort', onStop);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve(result);
    };
    const fail = (message: string): void => settle(err({ message, stderr: errors.text() }));
    const end = (message: string): void => {
      killGroup(child.pid);
      fail(message);
    };
    const onStop = (): void => end('was stopped, because svc stops');
    const timer = setTimeout(() => end(`did not end within ${run.timeoutMs / 1000} seconds`), run.timeoutMs);
    stop?.addEventListener('abort', onStop);
    const onEnd = (code: number | null, signal: string | null): void => {
      if (code === 0) return settle(ok(output.bytes()));
      fail(signal === null ? `ended with status ${code}` : `was ended by ${signal}`);
    };
    child.once('exit', (code, signal) => void setTimeout(() => onEnd(code, signal), DRAIN_MS).unref());
    child.once('close', onEnd);
    if (stop?.aborted === true) onStop();
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function collect(stream: Readable, maxBytes: number, onTooMuch: () => void): { bytes(): Buffer } {
  const chunks: Buffer[] = [];
  let length = 0;
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxBytes) onTooMuch();
    else chunks.push(chunk);
  });
  return { bytes: () => Buffer.concat(chunks) };
}

function collectLast(stream: Readable, bytes: number): { text(): string } {
  let kept = Buffer.alloc(0);
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-bytes);
  });
  return { text: () => kept.toString('utf8') };
}
