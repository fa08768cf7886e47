import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { z } from 'zod';
import { missingForContainers, withSystemFolders } from '../../tools/system_parts.mjs';
import { type Finished, run, type RunOptions, shellEnvironment } from './program.ts';
import { isRunning, kill } from './process.ts';
import { waitFor } from './wait_for.ts';

const SYSTEM_SOCKET = '/var/run/docker.sock';
const KEEPER = join(import.meta.dirname, 'docker_keeper.ts');

const engineState = z.object({
  endpoint: z.string(),
  /** The keeper process of a private engine; null for an existing engine. */
  keeperPid: z.number().nullable(),
});
type EngineState = z.infer<typeof engineState>;

/** The files that the keeper of a private engine needs in its folder. */
export const engineFiles = (folder: string) => ({
  state: join(folder, 'engine.json'),
  socket: join(folder, 'docker.sock'),
  log: join(folder, 'dockerd.log'),
  client: join(folder, 'bin', 'docker'),
});

/** A Docker engine of this machine, and the client program that speaks its version. */
export interface DockerEngine {
  readonly endpoint: string;
  readonly socket: string;
  /** The environment for programs that find the client and the engine themselves, as `svc` does. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder shared by the test files of one run. */
  readonly folder: string;
  /** Runs the client; it may fail. */
  run(args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** Runs the client and returns its standard output without the last line break; fails unless it succeeds. */
  docker(...args: string[]): Promise<string>;
}

/** Why containers cannot be tested here, with the command that fixes it; null if they can. */
export function containersMissing(): string | null {
  if (process.platform !== 'linux') return 'containers are tried on Linux only';
  if (process.getuid?.() !== 0) return 'containers are tried as root only: sudo npm test';
  const missing = missingForContainers().map(({ name, packages }) => `${name} (${packages.join(' ')})`);
  if (missing.length === 0) return null;
  return `not here: ${missing.join(', ')}; SVC_TEST_INSTALL=1 npm test as root on Debian installs these packages`;
}

/** Every program of that name on the PATH, in order, including the system's own folders. */
function findPrograms(name: string): string[] {
  const folders = withSystemFolders(process.env['PATH']).split(delimiter);
  return [...new Set(folders)].map((folder) => join(folder, name)).filter((path) => existsSync(path));
}

/** The first client on the PATH that the engine answers: a newer one may refuse an engine of an older version. */
export function clientFor(endpoint: string): string | null {
  const answers = (client: string): boolean =>
    spawnSync(client, ['--host', endpoint, 'info'], { stdio: 'ignore', timeout: 20_000 }).status === 0;
  return findPrograms('docker').find(answers) ?? null;
}

/**
 * The engine of this run of tests: the system's when one answers that has this machine's files (and SVC_TEST_ENGINE is not
 * `private`), else one of our own with all its state in `folder`. The first caller starts it; `closeEngine` ends it, and so does the end of `watchedPid`.
 */
export async function openEngine(folder: string, watchedPid: number): Promise<DockerEngine> {
  const files = engineFiles(folder);
  if (!existsSync(files.state)) await chooseEngine(folder, watchedPid);
  const { endpoint } = readState(files.state);
  const environment = {
    DOCKER_HOST: endpoint,
    // Clients keep settings and contexts in the user's home; these must not affect the tests.
    DOCKER_CONFIG: join(folder, 'client'),
    DOCKER_BUILDKIT: '0',
    PATH: [join(folder, 'bin'), shellEnvironment()['PATH'] ?? ''].join(delimiter),
  };
  const runClient: DockerEngine['run'] = (args, options = {}) =>
    run(files.client, args, { ...options, env: { ...environment, ...options.env } });
  const docker: DockerEngine['docker'] = async (...args) => {
    const done = await runClient(args);
    if (done.code !== 0) throw new Error(`docker ${args.join(' ')}: exit ${done.code}: ${done.stdout}${done.stderr}`);
    return done.stdout.replace(/\n$/, '');
  };
  return { endpoint, socket: endpoint.slice('unix://'.length), environment, folder, run: runClient, docker };
}

async function chooseEngine(folder: string, watchedPid: number): Promise<void> {
  const wanted = process.env['SVC_TEST_ENGINE'] === 'private' ? null : `unix://${SYSTEM_SOCKET}`;
  const there = wanted !== null && isSocket(SYSTEM_SOCKET) ? clientFor(wanted) : null;
  const usable = wanted !== null && there !== null && hasOurFiles(there, wanted);
  const files = engineFiles(folder);
  mkdirSync(join(folder, 'bin'), { recursive: true });
  mkdirSync(join(folder, 'client'), { recursive: true });
  if (usable) {
    symlinkSync(there, files.client);
    writeFileSync(files.state, JSON.stringify({ endpoint: wanted, keeperPid: null } satisfies EngineState));
    return;
  }
  await startPrivateEngine(folder, watchedPid);
}

/** False for a remote engine, or one whose socket is mounted into a container: it would not mount this machine's files. */
function hasOurFiles(client: string, endpoint: string): boolean {
  const args = ['--host', endpoint, 'info', '--format', '{{.DockerRootDir}}'];
  const { stdout } = spawnSync(client, args, { encoding: 'utf8', timeout: 20_000 });
  return existsSync(stdout.trim());
}

async function startPrivateEngine(folder: string, watchedPid: number): Promise<void> {
  const files = engineFiles(folder);
  const log = openSync(files.log, 'a');
  const keeper = spawn(process.execPath, [KEEPER, folder, String(watchedPid)], {
    detached: true,
    stdio: ['ignore', log, log],
    env: shellEnvironment(),
  });
  closeSync(log);
  keeper.unref();
  await waitFor(
    'the engine to answer',
    () => {
      if (keeper.exitCode !== null) throw new Error(`the engine did not start: ${readFileSync(files.log, 'utf8')}`);
      return existsSync(files.state);
    },
    180_000,
  );
}

function isSocket(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isSocket() === true;
}

function readState(file: string): EngineState {
  return engineState.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** Ends a private engine with everything it ran, mounted and routed; an existing engine is not changed. */
export async function closeEngine(folder: string): Promise<void> {
  const { state } = engineFiles(folder);
  if (!existsSync(state)) return;
  const { keeperPid } = readState(state);
  if (keeperPid === null) return;
  kill(keeperPid, 'SIGTERM');
  await waitFor('the engine to be gone', () => !isRunning(keeperPid));
}
