import { spawn } from 'node:child_process';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import { npmEnvironment } from '../../machine/npm_environment.ts';

/** Runs npm in a folder. The error is the rest of a sentence, with the reason that npm gives. */
export type Npm = (args: readonly string[], folder: string, signal: AbortSignal) => Promise<Result<void, string>>;

/**
 * What every run of npm is told, also against a person's settings. No script runs and no repository is fetched: older
 * versions of npm run a program that a repository's settings name, so git is named as a program that does not exist.
 */
const FIXED = [
  '--ignore-scripts',
  '--allow-git=none',
  '--git=/nonexistent/git',
  '--allow-file=none',
  '--allow-directory=none',
  '--omit=dev',
  '--install-strategy=hoisted',
  '--install-links=true',
  '--package-lock=true',
  '--omit-lockfile-registry-resolved=false',
  '--bin-links=true',
  '--global=false',
  '--dry-run=false',
  '--audit=false',
  '--fund=false',
  '--update-notifier=false',
  '--loglevel=error',
  '--logs-max=0',
] as const;

/** While npm decides the dependencies, it fetches none by a URL. Later the checked lock file says what it fetches. */
const FOR_PLANS = ['--allow-remote=none'] as const;

/** `npm rebuild NAME@VERSION...`: the only run of npm that starts scripts, of the packages that it names. */
const FOR_SCRIPTS = ['--ignore-scripts=false'] as const;

/** What only a registry is told. A script gets none of it. */
const FOR_REGISTRIES = /^(?:NPM_TOKEN|NODE_AUTH_TOKEN|npm_config_.*)$/i;

const MAX_OUTPUT_CHARACTERS = 64 * 1024;
const MAX_LINES = 3;
const MAX_CHARACTERS = 500;
const KILL_MS = 2_000;

/** The npm on the PATH, with the person's settings for their registry. */
export function npmOnPath(env: Readonly<Record<string, string | undefined>>): Npm {
  return (args, folder, signal) => {
    if (env['PATH'] === undefined || signal.aborted) return Promise.resolve(err(NO_NPM));
    // Its own process group: what npm starts ends with it.
    const child = spawn('npm', [...args, ...FIXED, ...optionsFor(args[0])], {
      cwd: folder,
      env: environmentFor(args[0], env),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
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
        resolve(err(code === 'ENOENT' ? NO_NPM : `npm could not be started (${code || 'unknown error'})`));
      });
      child.once('close', (code, killed) => {
        signal.removeEventListener('abort', end);
        // The number of the group may belong to others from now on.
        clearTimeout(killing);
        if (code === 0) resolve(ok(undefined));
        else resolve(err(signal.aborted ? 'it took too long, or was stopped' : reasonOf(output, code ?? killed)));
      });
    });
  };
}

function optionsFor(command: string | undefined): readonly string[] {
  if (command === 'rebuild') return FOR_SCRIPTS;
  return command === 'install' ? FOR_PLANS : [];
}

function environmentFor(
  command: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const given = Object.entries(npmEnvironment(env));
  return Object.fromEntries(command === 'rebuild' ? given.filter(([name]) => !FOR_REGISTRIES.test(name)) : given);
}

const NO_NPM = 'npm is not on the PATH; install Node.js with npm';

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

/** The first lines that npm prints about the error; the path of its log helps nobody. */
function reasonOf(output: string, how: number | string | null): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, '').trim())
    .filter((line) => line !== '' && !/^npm warn|A complete log of this run|^Log files were not written/.test(line));
  const said = lines.slice(0, MAX_LINES).join('; ');
  return toShownLine(said === '' ? `npm ended with ${how ?? 'an unknown status'}` : said, MAX_CHARACTERS);
}
