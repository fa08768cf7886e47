import { mkdirSync } from 'node:fs';
import { delimiter } from 'node:path';
import { commandDangers, refusalOf } from '../../shared/mcp/command_dangers.ts';
import { scriptsCommand } from '../../shared/mcp/npm_command.ts';
import { type InstallSpec, readPackageCommand } from '../../shared/mcp/package_command.ts';
import { isContainerCommand } from '../../shared/mcp/server_isolation.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { runProgram } from '../../sandbox/engine/engine_program.ts';
import {
  type ContainerMarks,
  markContainer,
  wrapInContainer,
  type ProgramCommand,
  RUN_LABEL,
} from './container_command.ts';
import { engineRuntime } from '../../sandbox/engine/docker_runtime.ts';
import { engineCommand, environmentAt } from '../../sandbox/engine/engine_cli.ts';
import { serverDirectories } from '../../machine/server_directories.ts';
import { launchEnvironment } from './launch_environment.ts';
import type { FilledLaunch } from './fill_launch.ts';
import type { ProcessRecords } from '../../machine/process_records.ts';
import type { PackageStore } from '../packages/package_store.ts';
import { type InstalledCommand, noContainerFailure, type SealedLaunchOptions, startSealed } from './sealed_launch.ts';
import { ServerProcess } from './server_process.ts';
import { type StartSlot, StartSlots } from './start_slots.ts';
import type { StderrRing } from './stderr_ring.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';

/** Settings for the local servers of one gateway. */
interface LocalLaunchOptions extends SealedLaunchOptions {
  readonly records: ProcessRecords;
  readonly packages: Pick<PackageStore, 'find' | 'install' | 'keepStarted' | 'goBack'>;
}

/** One start of a server. */
interface LocalStart {
  readonly server: McpServer;
  readonly stderr: StderrRing;
  readonly isSealed?: boolean;
  /** The id of the image that its own `docker run` may start. */
  readonly image?: string | null;
  /** The slot that the start takes; by default none. */
  readonly slot?: StartSlot | null;
  readonly signal: AbortSignal;
}

/** Starts the program of a local server, without a shell and with a minimal environment. */
export class LocalLaunch {
  readonly #options: LocalLaunchOptions;
  readonly #installs = new StartSlots(MOST_INSTALLS);
  #runs = 0;

  constructor(options: LocalLaunchOptions) {
    this.#options = options;
  }

  async start(
    { server, stderr, signal, slot = null, isSealed = false, image = null }: LocalStart,
    filled: FilledLaunch,
  ): Promise<Result<ServerProcess, Failure<ServerFailureReason>>> {
    const { values } = filled;
    const danger =
      refusalOf(commandDangers(server.command, server.env)) ??
      refusalOf(commandDangers([...values.command], values.env));
    if (danger !== null) {
      const message = `command ${filled.mask.now.maskText(danger.message)}`;
      return err({ reason: 'command_refused', message });
    }
    const { gatewayMark, mcpHome, env } = this.#options;
    const number = (this.#runs += 1);
    const runId = `${gatewayMark}.${number}`;
    const directories = serverDirectories(mcpHome, server.id);
    for (const path of [directories.home, directories.temporary]) mkdirSync(path, { recursive: true, mode: 0o700 });
    const environment = launchEnvironment({ gateway: env, directories, own: values.env, runId });
    const installed = mayInstall(server, isSealed)
      ? await this.#installed(values.command, { stderr, slot, signal })
      : ok(notInstalled(values.command));
    if (!installed.ok) return installed;
    if (isSealed) {
      const run = { runId, number, watch: this.#watch(runId, server.id) };
      return startSealed(this.#options, { server, stderr, ...run, installed: installed.value, directories }, filled);
    }
    const wanted = { server, image, command: installed.value.command, envNames: Object.keys(values.env), runId };
    const command = await this.#command(wanted);
    if (!command.ok) return command;
    const { programs } = installed.value;
    // Last on the PATH: no dependency's program takes the place of one of the system.
    if (programs !== null) environment['PATH'] += `${delimiter}${programs}`;
    const started = await ServerProcess.start(
      {
        ...command.value.command,
        env: this.#environmentOf(command.value, environment),
        directory: directories.home,
        runId,
        watch: this.#watch(runId, server.id),
        ...(command.value.endpoint === null ? {} : { afterwards: () => this.#endContainer(command.value, runId) }),
      },
      stderr,
    );
    return started.ok ? started : err({ reason: 'spawn_failed', message: started.error });
  }

  /** What may have made a start fail: install scripts of its package that nobody agreed to. Null if there are none. */
  explainFailure(
    { server, isSealed = false }: Pick<LocalStart, 'server' | 'isSealed'>,
    { values }: FilledLaunch,
  ): string | null {
    const wanted = mayInstall(server, isSealed) ? readPackageCommand(values.command) : null;
    const found = wanted === null ? null : this.#options.packages.find(wanted.spec);
    const missed = found === null ? [] : found.withScripts.filter((name) => !found.ranScripts.includes(name));
    if (missed.length === 0) return null;
    const command = scriptsCommand(server.name, missed);
    return `install scripts of its package were not run (${missed.join(', ')}); if it needs them: ${command}`;
  }

  /** The release of its package that has not started yet on this machine, if there is one to go back to. */
  findTrial(
    { server, isSealed = false }: Pick<LocalStart, 'server' | 'isSealed'>,
    { values }: FilledLaunch,
  ): Trial | null {
    const wanted = mayInstall(server, isSealed) ? readPackageCommand(values.command) : null;
    const found = wanted === null ? null : this.#options.packages.find(wanted.spec);
    if (wanted === null || found === null || found.previousRelease === null) return null;
    return { spec: wanted.spec, folder: found.folder };
  }

  async keepStarted({ spec, folder }: Trial): Promise<void> {
    // It is kept at the next start: a full disk must not end a server that runs.
    await this.#options.packages.keepStarted(spec, folder).catch(() => undefined);
  }

  /** Uses the release before again; null if that is not possible. The text is for a person. */
  async goBack({ spec, folder }: Trial, why: string): Promise<string | null> {
    const back = await this.#options.packages.goBack(spec, folder, why).catch(() => null);
    if (back === null) return null;
    return `${spec.name}@${back.release} did not start, so ${back.used} is used again: ${back.why}`;
  }

  /** The command with its package replaced by the installed program. A missing or damaged package is installed first. */
  async #installed(
    command: readonly string[],
    { stderr, slot, signal }: Pick<LocalStart, 'stderr' | 'signal'> & { readonly slot: StartSlot | null },
  ): Promise<Result<InstalledCommand, Failure<ServerFailureReason>>> {
    const wanted = readPackageCommand(command);
    if (wanted === null) return ok(notInstalled(command));
    const { packages } = this.#options;
    const tell = (text: string): void => stderr.write(Buffer.from(`svc: ${text}\n`));
    const there = packages.find(wanted.spec);
    const install = () => this.#installs.run(() => packages.install(wanted.spec, { signal, tell }));
    // A download may take minutes: meanwhile, servers that are installed start.
    const fetch = () => (slot === null ? install() : slot.leave(install));
    const found = there === null ? await fetch() : ok(there);
    if (!found.ok) return err({ reason: 'install_failed', message: found.error });
    const { folder, start } = found.value;
    return ok({
      command: [...start.command, ...wanted.args],
      inContainer: [...start.inContainer, ...wanted.args],
      image: start.image,
      programs: start.programs,
      folder,
      needs: start.needs,
    });
  }

  async #command({
    server,
    image,
    command,
    envNames,
    runId,
  }: WantedCommand): Promise<Result<LaunchCommand, Failure<ServerFailureReason>>> {
    const [program = '', ...args] = command;
    const runsContainer = isContainerCommand(command);
    if (server.isolation === 'process' && !runsContainer) return ok({ command: { program, args }, endpoint: null });
    const engine = await this.#options.findEngine();
    if (!engine.ok) return err(noContainerFailure(engine.error));
    const endpoint = engine.value;
    const marks = { gatewayMark: this.#options.gatewayMark, runId, endpoint };
    this.#options.guard.watchEngine(endpoint);
    if (runsContainer) return this.#ownContainer({ server, image, command }, marks);
    const placed = wrapInContainer(command, envNames, this.#options.images, marks);
    return placed.ok ? ok({ command: placed.value, endpoint }) : err(noContainerFailure(placed.error));
  }

  /** Its own `docker run`, of exactly the image that was consented to: the tag may name another one by now. */
  async #ownContainer(
    { server, image, command }: Pick<WantedCommand, 'server' | 'image' | 'command'>,
    marks: ContainerMarks,
  ): Promise<Result<LaunchCommand, Failure<ServerFailureReason>>> {
    if (image === null) return err(imageFailure(server, 'nobody on this machine has consented to its image'));
    const { endpoint } = marks;
    const found = await engineRuntime(this.#options.env, endpoint).inspectImage(image);
    if (!found.ok && found.error.reason === 'image_missing') {
      return err(imageFailure(server, `the engine does not have the image that was consented to any more (${image})`));
    }
    if (!found.ok) return err(noContainerFailure(found.error.message));
    const placed = markContainer(command, image, marks);
    return placed.ok
      ? ok({ command: placed.value, endpoint })
      : err({ reason: 'command_refused', message: placed.error });
  }

  /** A container's client has what its engine needs; a process has only its own. */
  #environmentOf({ endpoint }: LaunchCommand, environment: Readonly<Record<string, string>>): Record<string, string> {
    return endpoint === null ? { ...environment } : environmentAt(endpoint, this.#options.env, environment);
  }

  #watch(runId: string, serverId: string): { add(pid: number): void; remove(pid: number): void } {
    const { guard, records } = this.#options;
    return {
      add: (pid) => {
        guard.add(pid);
        records.add(pid, runId, serverId);
      },
      remove: (pid) => {
        guard.remove(pid);
        records.remove(pid);
      },
    };
  }

  /** Kills the container explicitly: the engine's client passes signals on, but not if it was killed. */
  async #endContainer({ endpoint }: LaunchCommand, runId: string): Promise<void> {
    if (endpoint === null) return;
    const own = { PATH: this.#options.env['PATH'] ?? '/usr/bin:/bin', HOME: '/nonexistent' };
    const env = environmentAt(endpoint, this.#options.env, own);
    const engine = (...words: string[]) => {
      const { program, args } = engineCommand(endpoint, words);
      return runProgram(program, args, { env, timeoutMs: ENGINE_MS });
    };
    const listed = await engine('ps', '--quiet', '--filter', `label=${RUN_LABEL}=${runId}`);
    const ids = listed.ok ? listed.value.stdout.split('\n').filter((id) => /^[0-9a-f]{12,64}$/.test(id)) : [];
    if (ids.length > 0) await engine('kill', ...ids);
  }
}

/** A container with an open network fetches its package itself. */
function mayInstall(server: McpServer, isSealed: boolean): boolean {
  return server.isolation === 'process' || isSealed;
}

const ENGINE_MS = 10_000;
const MOST_INSTALLS = 4;

/** A newer release of a package, before its first start. */
interface Trial {
  readonly spec: InstallSpec;
  readonly folder: string;
}

function notInstalled(command: readonly string[]): InstalledCommand {
  return { command, inContainer: command, image: null, programs: null, folder: null, needs: [] };
}

interface WantedCommand extends Pick<LocalStart, 'server'> {
  readonly image: string | null;
  readonly command: readonly string[];
  readonly envNames: readonly string[];
  readonly runId: string;
}

interface LaunchCommand {
  readonly command: ProgramCommand;
  /** Null if no container is started. */
  readonly endpoint: string | null;
}

function imageFailure({ name }: McpServer, why: string): Failure<ServerFailureReason> {
  return { reason: 'consent_needed', message: `${why}: svc mcp consent ${name}` };
}
