import { dirname } from 'node:path';
import type { Bubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { engineRuntime } from '../../sandbox/engine/docker_runtime.ts';
import { environmentAt } from '../../sandbox/engine/engine_cli.ts';
import type { ServerDirectories } from '../../machine/server_directories.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ServerFailureReason, ServerSessions } from '../gateway_ports.ts';
import { imageFor, type RuntimeImages } from './container_command.ts';
import type { FilledLaunch } from './fill_launch.ts';
import { RUN_ID_VARIABLE } from './launch_environment.ts';
import type { ProcessGuard } from './process_guard.ts';
import { createSealedContainer, type SealedContainer } from './sealed_container.ts';
import { createSealedSandbox, findServerSandbox } from './sealed_sandbox.ts';
import { ServerProcess } from './server_process.ts';
import type { StderrRing } from './stderr_ring.ts';

/** Settings for the servers of one gateway whose network is closed. */
export interface SealedLaunchOptions {
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  /** The gateway's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly gatewayMark: string;
  readonly guard: ProcessGuard;
  readonly images: RuntimeImages;
  /** The machine's engine (`engine_address.ts`), or why there is none. */
  readonly findEngine: () => Promise<Result<string, string>>;
  /** Null if there are none. */
  readonly sessions: ServerSessions | null;
}

/** A command whose package is installed, if it has one. */
export interface InstalledCommand {
  readonly command: readonly string[];
  readonly inContainer: readonly string[];
  /** Of its container; null for the one that belongs to the server's command. */
  readonly image: string | null;
  /** The directory of the programs that the package brings; null without a package. */
  readonly programs: string | null;
  /** The folder of the package. */
  readonly folder: string | null;
  /** What it needs of the machine beside the system and its package. */
  readonly needs: readonly string[];
}

interface SealedStart {
  readonly server: McpServer;
  readonly stderr: StderrRing;
  readonly runId: string;
  /** Tells the runs of this gateway apart. */
  readonly number: number;
  readonly installed: InstalledCommand;
  readonly directories: ServerDirectories;
  readonly watch: { add(pid: number): void; remove(pid: number): void };
}

type Started = Result<ServerProcess, Failure<ServerFailureReason>>;
type WithSessions = SealedLaunchOptions & { readonly sessions: ServerSessions };

/**
 * Starts a server whose only way out is the proxy: in a container where the machine can have one for it, else in a sandbox of
 * bubblewrap (decisions 0080 and 0177). It never runs with less.
 */
export async function startSealed(
  { sessions, ...options }: SealedLaunchOptions,
  start: SealedStart,
  filled: FilledLaunch,
): Promise<Started> {
  if (sessions === null) return err(noContainerFailure('this gateway has no proxy for it'));
  const made = await makeContainer({ ...options, sessions }, start, filled);
  if (made.ok) return startContainer(options, start, made.value);
  const { command, folder } = start.installed;
  const bubblewrap = findServerSandbox(command, folder !== null, options.env);
  if (!bubblewrap.ok) return err(noContainerFailure(`${made.error}, and ${bubblewrap.error}`));
  return startInSandbox({ ...options, sessions }, start, filled, bubblewrap.value);
}

interface MadeContainer {
  readonly container: SealedContainer;
  readonly endpoint: string;
}

/** Makes the container, which does not run yet. Errors are for a person. */
async function makeContainer(
  { env, findEngine, gatewayMark, guard, images, mcpHome, sessions }: WithSessions,
  { server, runId, installed }: SealedStart,
  { values }: FilledLaunch,
): Promise<Result<MadeContainer, string>> {
  const image = installed.image === null ? imageFor(values.command[0] ?? '', images) : ok(installed.image);
  if (!image.ok) return image;
  const engine = await findEngine();
  if (!engine.ok) return engine;
  const endpoint = engine.value;
  guard.watchEngine(endpoint);
  const made = await createSealedContainer(engineRuntime(env, endpoint), sessions, {
    server,
    image: image.value,
    command: installed.inContainer,
    packageFolder: installed.folder,
    env: values.env,
    marks: { gatewayMark, runId, endpoint },
    home: dirname(mcpHome),
  });
  return made.ok ? ok({ container: made.value, endpoint }) : made;
}

async function startContainer(
  { env }: Pick<SealedLaunchOptions, 'env'>,
  { stderr, runId, directories, watch }: SealedStart,
  { container, endpoint }: MadeContainer,
): Promise<Started> {
  // The values are in the container already: the program that attaches to it needs none.
  const own = { PATH: env['PATH'] ?? '/usr/bin:/bin', HOME: directories.home, [RUN_ID_VARIABLE]: runId };
  const placed = { ...container.command, env: environmentAt(endpoint, env, own), directory: directories.home };
  const started = await ServerProcess.start({ ...placed, runId, watch, afterwards: () => container.end() }, stderr);
  if (!started.ok) {
    await container.end();
    return err({ reason: 'spawn_failed', message: started.error });
  }
  let hasEnded = false;
  void started.value.ended.then(() => (hasEnded = true));
  const begun = await container.begin(started.value.child.stdin, () => hasEnded);
  if (begun.ok) return started;
  await started.value.stop(0);
  return err(noContainerFailure(begun.error));
}

async function startInSandbox(
  { env: gateway, mcpHome, sessions }: WithSessions,
  { server, stderr, runId, number, installed, directories, watch }: SealedStart,
  { values }: FilledLaunch,
  bubblewrap: Bubblewrap,
): Promise<Started> {
  const { command, folder: packageFolder, needs } = installed;
  const run = { command, packageFolder, needs, env: values.env, gateway, runId, number, home: dirname(mcpHome) };
  const made = await createSealedSandbox(bubblewrap, sessions, { server, ...run });
  if (!made.ok) return err(noContainerFailure(made.error));
  const sandbox = made.value;
  const placed = { ...sandbox.command, env: sandbox.env, directory: directories.home };
  const started = await ServerProcess.start({ ...placed, runId, watch, afterwards: () => sandbox.end() }, stderr);
  if (started.ok) return started;
  await sandbox.end();
  return err({ reason: 'spawn_failed', message: started.error });
}

export function noContainerFailure(why: string): Failure<ServerFailureReason> {
  const fix = 'start a Docker Engine on this machine, install podman or bubblewrap, or set its isolation to process';
  return { reason: 'container_unavailable', message: `the server must run in a container, but ${why}; ${fix}` };
}
