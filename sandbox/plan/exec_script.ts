import type { ContainerRuntime } from '../engine/container_runtime.ts';

/** The output of a short program. `code` is null if it was killed because it took too long. */
export interface QuietEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const MAX_SAID = 64 * 1024;

/**
 * The variables of the image are removed: they must not affect a program of ours that runs as root in a container where a
 * step has run.
 */
const NOTHING_LOADED = { LD_PRELOAD: '', LD_LIBRARY_PATH: '', LD_AUDIT: '', GLIBC_TUNABLES: '', ENV: '', BASH_ENV: '' };

/** Runs a shell script as root in a container, without input, and returns its output. Never rejects. */
export function execScript(
  runtime: Pick<ContainerRuntime, 'exec'>,
  containerId: string,
  script: string,
  options: {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly timeoutMs: number;
    readonly schedule: (ms: number, call: () => void) => () => void;
  },
): Promise<QuietEnd> {
  const child = runtime.exec(containerId, {
    command: ['/bin/sh', '-c', script, 'svc', ...(options.args ?? [])],
    env: { ...NOTHING_LOADED, ...options.env },
    user: '0',
    workdir: '/',
    tty: false,
    stdin: false,
    stdio: 'pipe',
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (chunk: Buffer) => {
      said[name] = (said[name] + chunk.toString('utf8')).slice(0, MAX_SAID);
    });
  }
  child.stdin?.on('error', () => undefined);
  child.stdin?.end();
  return new Promise((resolve) => {
    const cancel = options.schedule(options.timeoutMs, () => child.kill('SIGKILL'));
    const finish = (code: number | null): void => {
      cancel();
      resolve({ code, ...said });
    };
    child.once('error', (error) => {
      said.stderr += error.message;
      finish(null);
    });
    child.once('close', finish);
  });
}
