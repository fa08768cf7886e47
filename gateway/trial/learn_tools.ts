import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tool } from '@modelcontextprotocol/client';
import { hasReference } from '../../shared/mcp/references.ts';
import { toolText } from '../../shared/mcp/tools/tool_definition.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { startArguments } from '../../sandbox/engine/docker_arguments.ts';
import { engineCommand, environmentAt, isReadByEngine } from '../../sandbox/engine/engine_cli.ts';
import { seccompFilter } from '../../sandbox/bubblewrap/seccomp_filter.ts';
import type { PackageStart } from '../packages/package_installer.ts';
import type { DownstreamEvents } from '../fronts/downstream.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';
import { countForReport } from '../routing/tool_reviews.ts';
import { ServerLists } from '../routing/server_lists.ts';
import { confinedSpec } from '../servers/confined_container.ts';
import { SANDBOX_PATH, sandboxCommand } from '../servers/confined_sandbox.ts';
import { CONTAINER_HOME, CONTAINER_VARIABLES, RUN_LABEL } from '../servers/container_command.ts';
import { launchEnvironment } from '../servers/launch_environment.ts';
import { Launcher } from '../servers/launcher.ts';
import { ServerProcess } from '../servers/server_process.ts';
import { StderrRing } from '../servers/stderr_ring.ts';
import { emptyFoldersOf, findTrialPlace, type TrialPlace } from './trial_place.ts';

/** One start of a server whose package is installed. */
export interface TrialStart {
  readonly server: McpServer;
  /** The installed program. */
  readonly program: PackageStart;
  /** The arguments of the server. */
  readonly args: readonly string[];
  readonly packageFolder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The version of this program, sent to the server. */
  readonly version: string;
  readonly signal: AbortSignal;
}

export interface LearnedTools {
  /** As many as one report may have. */
  readonly tools: readonly Tool[];
  readonly place: TrialPlace['kind'];
}

export type LearnTools = (start: TrialStart) => Promise<Result<LearnedTools, string>>;

/** A server that waits for the network must not hold an install up for long. */
const LIMITS = { ...DEFAULT_GATEWAY_LIMITS, startMs: 30_000, requestMs: 30_000, stopMs: 500 };
const SILENT: DownstreamEvents = {
  input: () => Promise.reject(new Error('nobody can be asked')),
  listChanged: () => undefined,
  resourceUpdated: () => undefined,
  log: () => undefined,
  elicitationComplete: () => undefined,
};
const UNWATCHED = { add: () => undefined, remove: () => undefined };

/**
 * Starts a server once without network, files and secrets, and asks for its tools (decision 0099). The error is for a person, and
 * the rest of a sentence: a server may need what it does not get here.
 */
export const learnTools: LearnTools = async (start) => {
  const { server, program, args, env, version, signal } = start;
  const found = await findTrialPlace(server.command[0] ?? '', program.image, env);
  if (!found.ok) return found;
  const place = found.value;
  const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-trial-'));
  try {
    const launcher = new Launcher({
      ports: {
        release: () => Promise.resolve(ok({ values: new Map(), endsAt: null, bearer: null })),
        clock: { now: () => Date.now() },
      },
      local: localOf({ ...start, place, folder }),
      limits: LIMITS,
      version,
      isLocal: true,
      extraRoots: [],
    });
    const stderr = new StderrRing();
    const bare = { ...server, command: [...program.command, ...args], env: plainVariables(server) };
    const launched = await launcher.launch({ server: bare, events: SILENT, stderr, isLegacy: false, signal });
    if (!launched.ok) return err(launched.error.message);
    try {
      const lists = new ServerLists(launched.value, LIMITS, () => Date.now());
      const listed = (await lists.list('tools')).filter((tool) => toolText(tool) !== null);
      if (listed.length === 0) return err('it listed no tools there');
      return ok({ tools: listed.slice(0, countForReport(listed)), place: place.kind });
    } catch (error) {
      return err(`it did not list its tools there: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      await launched.value.close().catch(() => undefined);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

interface PlacedStart extends Omit<TrialStart, 'server'> {
  readonly place: TrialPlace;
  /** For what the sandbox itself needs. */
  readonly folder: string;
}

/** What the launcher starts instead of the server as it is configured. */
function localOf(start: PlacedStart): ConstructorParameters<typeof Launcher>[0]['local'] {
  const { place } = start;
  let runs = 0;
  return {
    async start({ stderr }, { values }) {
      const runId = `trial.${process.pid}.${(runs += 1)}`;
      const own = values.env;
      const started =
        place.kind === 'container'
          ? await startContainer(place, start, { runId, own, stderr })
          : await startSandbox(place, start, { runId, own, stderr });
      return started.ok
        ? started
        : err<Failure<ServerFailureReason>>({ reason: 'spawn_failed', message: started.error });
    },
    explainFailure: () => null,
    findTrial: () => null,
    keepStarted: () => Promise.resolve(),
    goBack: () => Promise.resolve(null),
  };
}

interface Run {
  readonly runId: string;
  readonly own: Readonly<Record<string, string>>;
  readonly stderr: StderrRing;
}

async function startContainer(
  { runtime, image }: Extract<TrialPlace, { kind: 'container' }>,
  { program, args, packageFolder, env, folder }: PlacedStart,
  { runId, own, stderr }: Run,
): Promise<Result<ServerProcess, string>> {
  const command = [...program.inContainer, ...args];
  const variables = Object.fromEntries(Object.entries(own).filter(([name]) => !isReadByEngine(name)));
  const spec = { labels: { [RUN_LABEL]: runId }, env: { ...variables, ...CONTAINER_VARIABLES }, mounts: [] };
  const created = await runtime.create(confinedSpec({ image, command, packageFolder }, spec, emptyFoldersOf(command)));
  if (!created.ok) return err(created.error.message);
  const id = created.value;
  const end = async (): Promise<void> => void (await runtime.remove(id));
  const started = await ServerProcess.start(
    {
      ...engineCommand(runtime.endpoint, startArguments(id, { stdin: true })),
      env: environmentAt(runtime.endpoint, env, { PATH: env['PATH'] ?? '/usr/bin:/bin', HOME: folder }),
      directory: folder,
      runId,
      watch: UNWATCHED,
      afterwards: end,
    },
    stderr,
  );
  if (started.ok) started.value.child.stdin.write('\n');
  else await end();
  return started;
}

function startSandbox(
  { bubblewrap }: Extract<TrialPlace, { kind: 'sandbox' }>,
  { program, args, packageFolder, env, folder }: PlacedStart,
  { runId, own, stderr }: Run,
): Promise<Result<ServerProcess, string>> {
  const command = [...program.command, ...args];
  const filter = join(folder, 'filter');
  writeFileSync(filter, seccompFilter(bubblewrap.machine));
  const { LANG, LC_ALL, TZ } = env;
  const directories = { home: CONTAINER_HOME, temporary: '/tmp' };
  const environment = launchEnvironment({ gateway: { LANG, LC_ALL, TZ }, directories, own, runId });
  const run = { command, packageFolder, needs: program.needs, node: process.execPath, filter };
  const placed = sandboxCommand(bubblewrap, { ...run, emptyFolders: emptyFoldersOf(command) });
  const start = { ...placed, env: { ...environment, PATH: SANDBOX_PATH }, directory: folder, runId, watch: UNWATCHED };
  return ServerProcess.start(start, stderr);
}

/** The variables of its configuration without those that hold a credential. */
function plainVariables({ env }: McpServer): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => !hasReference(value)));
}
