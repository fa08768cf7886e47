import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { npmEnvironment } from '../../machine/npm_environment.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** How a program ended, and what it printed. */
export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs npm in a folder: the person's, or the one whose main file is named. */
export type Npm = (args: readonly string[], folder: string, main?: string) => Promise<Ended>;

/** The first npm that is told by `--allow-git=none` to fetch nothing from git; an older one ignores the flag. */
const OLDEST = [11, 10] as const;
/** What is used instead of an older one, whose files are compared with this hash before anything of them runs. */
const OWN = {
  version: '11.19.1',
  sha512: 'ztsxKxt/kkIaAs+2i0GU6I+DRmUdrNasxTZKJe9TCdSjKxlhah/4r/hl5ygMD6XAg1qZ9c2TNomR4qgOydp10g==',
} as const;

/**
 * An npm that can be told to run nothing of what it fetches. An older one is only asked to fetch a newer one, which has no
 * dependencies to fetch and uses the older one's global settings.
 */
export async function trustedNpm(npm: Npm, folder: string, note: (text: string) => void): Promise<Npm> {
  const said = await npm(['--version'], folder);
  if (said.code !== 0) {
    throw toolError('an image for an agent is made with npm, and npm did not start', said, [
      'With an image of your own that has the agent: svc launch --image IMAGE NAME',
    ]);
  }
  // npm may print warnings before and after it.
  const version = said.output.split('\n').find((line) => VERSION.test(line)) ?? 'of unknown version';
  if (isNewEnough(version)) return npm;
  note(`npm ${version} cannot be told to run nothing of a package from git: fetching npm ${OWN.version}`);
  const main = await fetchOwn(npm, folder);
  const { output } = await npm(['config', 'get', 'globalconfig'], folder);
  const settings = output.split('\n').find((line) => isAbsolute(line) && existsSync(line));
  const kept = settings === undefined ? [] : [`--globalconfig=${settings}`];
  return (args, at) => npm([...args, ...kept], at, main);
}

const VERSION = /^(\d{1,5})\.(\d{1,5})\.\d/;

function isNewEnough(version: string): boolean {
  const [, major = '0', minor = '0'] = VERSION.exec(version) ?? [];
  return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
}

/** The main file of svc's npm. */
async function fetchOwn(npm: Npm, parent: string): Promise<string> {
  const folder = join(parent, 'npm');
  mkdirSync(folder);
  const packed = await npm(['pack', `npm@${OWN.version}`, '--ignore-scripts', '--loglevel=error'], folder);
  const archive = join(folder, `npm-${OWN.version}.tgz`);
  if (packed.code !== 0 || !existsSync(archive)) {
    throw toolError(`npm ${OWN.version} could not be fetched`, packed, [
      `Or install it: npm install --global npm@${OWN.version}`,
    ]);
  }
  if (createHash('sha512').update(readFileSync(archive)).digest('base64') !== OWN.sha512) {
    throw new CliError(EXIT.failed, `what the registry gives as npm ${OWN.version} is another program: not used`);
  }
  const unpacked = spawnSync('tar', ['-xzf', archive, '-C', folder], { encoding: 'utf8' });
  if (unpacked.status !== 0) {
    throw toolError(`npm ${OWN.version} could not be unpacked`, { code: 1, output: unpacked.stderr });
  }
  return join(folder, 'package', 'bin', 'npm-cli.js');
}

const PROGRESS_MS = 30_000;

/** The person's npm; `progress` gets a line now and then while it works. */
export function npmOf(
  env: CliContext['env'],
  progress: (text: string) => void,
  stop: () => AbortSignal = () => new AbortController().signal,
): Npm {
  return async (args, cwd, main) => {
    // What is fetched is root's in the image, and the agent has to read it whatever the person's umask is.
    const program = main === undefined ? ['npm'] : [process.execPath, main];
    const child = spawn('sh', ['-c', 'umask 022; exec "$@"', 'sh', ...program, ...args], {
      cwd,
      env: npmEnvironment(env),
      stdio: 'pipe',
    });
    let seconds = 0;
    const timer = setInterval(() => {
      seconds += PROGRESS_MS / 1000;
      progress(`npm is still fetching after ${seconds} s; Ctrl-C stops it`);
    }, PROGRESS_MS);
    try {
      return await endOf(child, stop());
    } finally {
      clearInterval(timer);
    }
  };
}

const MOST_KEPT_CHARACTERS = 64 * 1024;

/** The end of a program, which is told to end if its command is stopped. */
export function endOf(child: ReturnType<typeof spawn>, stop: AbortSignal): Promise<Ended> {
  let output = '';
  const end = (): void => void child.kill('SIGTERM');
  if (stop.aborted) end();
  else stop.addEventListener('abort', end, { once: true });
  child.stdin?.end();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (output = (output + chunk.toString('utf8')).slice(-MOST_KEPT_CHARACTERS)));
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      stop.removeEventListener('abort', end);
      resolve({ code: code ?? EXIT.failed, output });
    });
  });
}

const MOST_SHOWN_LINES = 8;

/** An error with the last lines that a program printed. */
export function toolError(message: string, { output }: Ended, fixes: readonly string[] = []): CliError {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  return new CliError(EXIT.failed, message, [...lines.slice(-MOST_SHOWN_LINES).map(toPrintable), ...fixes]);
}
