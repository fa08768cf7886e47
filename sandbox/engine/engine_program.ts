import { execFile } from 'node:child_process';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Failure } from '../../shared/model/failure.ts';

interface ProgramOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `missing`: there is no such program; `timeout`: it was killed after the time limit. */
export type ProgramFailureReason = 'missing' | 'timeout' | 'failed';

interface ProgramOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Null: no time limit. */
  readonly timeoutMs: number | null;
}

const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;

/** Runs a program without a shell and without input, and returns its output. Never rejects. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<Result<ProgramOutput, Failure<ProgramFailureReason>>> {
  const { env, timeoutMs } = options;
  const settings = { env, timeout: timeoutMs ?? 0, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES } as const;
  return new Promise((resolve) => {
    const child = execFile(program, args, settings, (error, stdout, stderr) => {
      if (error === null) resolve(ok({ exitCode: 0, stdout, stderr }));
      else if (typeof error.code === 'number') resolve(ok({ exitCode: error.code, stdout, stderr }));
      else resolve(err(failureOf(error)));
    });
    child.stdin?.end();
  });
}

function failureOf(
  error: Error & { readonly code?: unknown; readonly killed?: boolean },
): Failure<ProgramFailureReason> {
  const { message } = error;
  if (error.code === 'ENOENT') return { reason: 'missing', message };
  return { reason: error.killed === true && error.code === null ? 'timeout' : 'failed', message };
}
