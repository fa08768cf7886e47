import { spawn } from 'node:child_process';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';

interface InstallerRun {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Why a package manager did not do its work. The message is the rest of a sentence. */
interface InstallerFailure {
  readonly reason: 'missing' | 'not_started' | 'stopped' | 'failed';
  readonly message: string;
  /** The end of what it printed. */
  readonly output: string;
}

const MAX_OUTPUT_CHARACTERS = 64 * 1024;
const KILL_MS = 2_000;

/** Runs a package manager in a folder, and ends it with everything that it started once the signal is aborted. */
export function runInstaller(
  program: string,
  args: readonly string[],
  { folder, env, signal }: InstallerRun,
): Promise<Result<string, InstallerFailure>> {
  const failed = (reason: InstallerFailure['reason'], message: string, output = '') => err({ reason, message, output });
  if (signal.aborted) return Promise.resolve(failed('stopped', STOPPED));
  // Its own process group: what it starts ends with it.
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString('utf8')).slice(-MAX_OUTPUT_CHARACTERS)));
  }
  let killing: NodeJS.Timeout | undefined;
  const end = (): void => {
    signalGroup(child.pid, 'SIGTERM');
    killing = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), KILL_MS).unref();
  };
  signal.addEventListener('abort', end, { once: true });
  return new Promise((resolve) => {
    child.once('error', (error) => {
      const code = errorCode(error);
      if (code === 'ENOENT') resolve(failed('missing', `${program} is not there`));
      else resolve(failed('not_started', `${program} could not be started (${code || 'unknown error'})`));
    });
    child.once('close', (code, killed) => {
      signal.removeEventListener('abort', end);
      // The number of the group may belong to others from now on.
      clearTimeout(killing);
      if (code === 0) resolve(ok(output));
      else if (signal.aborted) resolve(failed('stopped', STOPPED));
      else resolve(failed('failed', `${program} ended with ${code ?? killed ?? 'an unknown status'}`, output));
    });
  });
}

const STOPPED = 'it took too long, or was stopped';

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}
