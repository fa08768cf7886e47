import { dirname } from 'node:path';
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
import { createSealedContainer } from './sealed_container.ts';
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

/**
 * Starts a server whose only way out is the proxy: in a container where the machine has an engine, else in a sandbox of bubblewrap
 * (decisions 0080 and 0177). It never runs with less.
 */
export async function startSealed(
  options: SealedLaunchOptions,
  start: SealedStart,
  filled: FilledLaunch,
): Promise<Started> {
  const { sessions } = options;
  if (sessions === null) return err(noContainerFailure('this gateway has no proxy for it'));
  const { command } = filled.values;
  const { installed } = start;
  const image = installed.image === null ? imageFor(command[0] ?? '', options.images) : ok(installed.image);
  const engine = image.ok ? await options.findEngine() : image;
  if (image.ok && engine.ok) {
    return startInContainer({ ...options, sessions }, start, filled, { image: image.value, endpoint: engine.value });
  }
  const bubblewrap = findServerSandbox(installed.command, installed.folder !== null, options.env);
  if (!bubblewrap.ok) return err(noContainerFailure(`${engine.ok ? '' : `${engine.error}, and `}${bubblewrap.error}`));
  const { mcpHome, env: gateway } = options;
  const { server, stderr, runId, number, directories, watch } = start;
  const { folder: packageFolder, needs } = installed;
  const { env } = filled.values;
  const home = dirname(mcpHome);
  const run = { server, command: installed.command, packageFolder, needs, env, gateway, runId, number, home };
  const created = await createSealedSandbox(bubblewrap.value, sessions, run);
  if (!created.ok) return err(noContainerFailure(created.error));
  const sandbox = created.value;
  const placed = { ...sandbox.command, env: sandbox.env, directory: directories.home };
  const started = await ServerProcess.start({ ...placed, runId, watch, afterwards: () => sandbox.end() }, stderr);
  if (started.ok) return started;
  await sandbox.end();
  return err({ reason: 'spawn_failed', message: started.error });
}

async function startInContainer(
  { env, gatewayMark, guard, mcpHome, sessions }: SealedLaunchOptions & { readonly sessions: ServerSessions },
  { server, stderr, runId, installed, directories, watch }: SealedStart,
  { values }: FilledLaunch,
  { image, endpoint }: { readonly image: string; readonly endpoint: string },
): Promise<Started> {
  guard.watchEngine(endpoint);
  const created = await createSealedContainer(engineRuntime(env, endpoint), sessions, {
    server,
    image,
    command: installed.inContainer,
    packageFolder: installed.folder,
    env: values.env,
    marks: { gatewayMark, runId, endpoint },
    home: dirname(mcpHome),
  });
  if (!created.ok) return err(noContainerFailure(created.error));
  const container = created.value;
  const started = await ServerProcess.start(
    {
      ...container.command,
      // The values are in the container already: the program that attaches to it needs none.
      env: environmentAt(endpoint, env, {
        PATH: env['PATH'] ?? '/usr/bin:/bin',
        HOME: directories.home,
        [RUN_ID_VARIABLE]: runId,
      }),
      directory: directories.home,
      runId,
      watch,
      afterwards: () => container.end(),
    },
    stderr,
  );
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

export function noContainerFailure(why: string): Failure<ServerFailureReason> {
  const fix = 'start a Docker Engine on this machine, install podman or bubblewrap, or set its isolation to process';
  return { reason: 'container_unavailable', message: `the server must run in a container, but ${why}; ${fix}` };
}
