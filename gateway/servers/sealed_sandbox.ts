import { copyFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bubblewrap, openBubblewrap, withVersion } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { OWN_FOLDER } from '../../sandbox/bubblewrap/plan_sandbox.ts';
import {
  CARRY_PROGRAM,
  insideUrl,
  SANDBOX_CA,
  SANDBOX_PORT,
  SESSION_FOLDER,
} from '../../sandbox/bubblewrap/run_sandbox.ts';
import { CA_FILE, makeSandboxFolder, PROXY_SOCKET } from '../../sandbox/bubblewrap/sandbox_folder.ts';
import { seccompFilter } from '../../sandbox/bubblewrap/seccomp_filter.ts';
import { isAtOrBelow } from '../../sandbox/launch/mount_table.ts';
import { isPackageRunner } from '../../shared/mcp/dangers/package_runners.ts';
import { describeFetchAtStart } from '../../shared/mcp/fetch_at_start.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ServerSession, ServerSessions } from '../gateway_ports.ts';
import { SANDBOX_NODE, SANDBOX_PATH, SANDBOX_SYSTEM, sandboxCommand, SYSTEM_PROGRAMS } from './confined_sandbox.ts';
import { CONTAINER_HOME, type ProgramCommand } from './container_command.ts';
import { launchEnvironment } from './launch_environment.ts';
import { proxiedEnvironment } from './proxied_environment.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export type FindServerSandbox = typeof findServerSandbox;

/**
 * bubblewrap, if a server with this command can run in a sandbox of it with a closed network (decision 0177), or why not. A package
 * has to be installed by svc: `hasPackage` says that it is or will be. A program of the system does as well, and Node.
 */
export function findServerSandbox(
  command: readonly string[],
  hasPackage: boolean,
  env: Environment,
): Result<Bubblewrap, string> {
  const problem = hasPackage ? null : whyNoProgram(command);
  if (problem !== null) return err(problem);
  const found = openBubblewrap(env['PATH'] ?? '');
  return found.ok ? ok(withVersion(found.value)) : err(found.error.message);
}

/** Why a command that is started as it is has no program in a sandbox; null if it has one. */
function whyNoProgram(command: readonly string[]): string | null {
  const [program = ''] = command;
  if (isPackageRunner(basename(program)) || describeFetchAtStart(command) !== null) {
    return `${program} fetches its package at the start, for which a sandbox has no room`;
  }
  if (program === 'node') return null;
  const paths = program.includes('/') ? [program] : SYSTEM_PROGRAMS.map((folder) => join(folder, program));
  return paths.some(isOfSystem) ? null : `a sandbox does not have ${JSON.stringify(program)}`;
}

/** Whether the sandbox has the file, also if it is a link. */
function isOfSystem(path: string): boolean {
  try {
    return [path, realpathSync(path)].every((file) => SANDBOX_SYSTEM.some((folder) => isAtOrBelow(file, folder)));
  } catch {
    return false;
  }
}

/** What one run of a server in a sandbox consists of. */
export interface SandboxedRun {
  readonly server: McpServer;
  readonly command: readonly string[];
  /** The folder of its installed package; null if the command needs none. */
  readonly packageFolder: string | null;
  /** What its package needs of the machine beside the system. */
  readonly needs: readonly string[];
  /** Its own variables, with credentials inserted. */
  readonly env: Readonly<Record<string, string>>;
  /** The gateway's environment. */
  readonly gateway: Environment;
  readonly runId: string;
  /** Tells the runs of this gateway apart. */
  readonly number: number;
  /** `$SVC_HOME`. */
  readonly home: string;
}

interface SealedSandbox {
  /** Starts it with our streams. The proxy is open by then. */
  readonly command: ProgramCommand;
  readonly env: Readonly<Record<string, string>>;
  /** Ends its session and removes its folder. */
  end(): Promise<void>;
}

const INIT_FILE = fileURLToPath(new URL('../../sandbox/bubblewrap/server_init.cjs', import.meta.url));
const INIT = `${OWN_FOLDER}/bubblewrap/server_init.cjs`;
const STARTER = [SANDBOX_NODE, INIT, String(SANDBOX_PORT), `${SESSION_FOLDER}/${PROXY_SOCKET}`];
const HOSTS = '127.0.0.1 localhost\n::1 localhost\n';

/** Creates the session of a run and what its sandbox needs. After a failure nothing is left. Errors are for a person. */
export async function createSealedSandbox(
  bubblewrap: Bubblewrap,
  sessions: Pick<ServerSessions, 'open' | 'end'>,
  run: SandboxedRun,
): Promise<Result<SealedSandbox, string>> {
  const made = tryToMakeFolder(run);
  if (!made.ok) return made;
  const folder = made.value;
  const remove = (): void => removeFolder(folder.path);
  const opened = await sessions.open(run.server, { kind: 'sandbox', folder: folder.name });
  if (!opened.ok) {
    remove();
    return opened;
  }
  const { sessionId, caBundlePath } = opened.value;
  const end = async (): Promise<void> => {
    try {
      await sessions.end(sessionId);
    } finally {
      remove();
    }
  };
  const fileIn = (name: string): string => join(folder.path, name);
  try {
    copyFileSync(caBundlePath, fileIn(CA_FILE));
    writeFileSync(fileIn('hosts'), HOSTS);
    writeFileSync(fileIn('filter'), seccompFilter(bubblewrap.machine));
  } catch (error) {
    await end();
    return err(messageOf(error));
  }
  const { command, packageFolder, needs } = run;
  const files = [
    { source: INIT_FILE, target: INIT },
    CARRY_PROGRAM,
    { source: folder.path, target: SESSION_FOLDER },
    { source: fileIn('hosts'), target: '/etc/hosts' },
  ];
  const program = { command, packageFolder, needs, files, node: process.execPath, filter: fileIn('filter') };
  return ok({
    command: sandboxCommand(bubblewrap, { ...program, starter: STARTER }),
    env: environmentOf(run, opened.value),
    end,
  });
}

function tryToMakeFolder({ home, number }: SandboxedRun): Result<ReturnType<typeof makeSandboxFolder>, string> {
  try {
    return ok(makeSandboxFolder(home, number));
  } catch (error) {
    return err(messageOf(error));
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What is left of it is removed when its launcher has ended (`makeSandboxFolder`). */
function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  } catch {
    // The sidecar may be putting a socket into it. A start or an end must not fail of it.
  }
}

function environmentOf({ env, gateway, runId }: SandboxedRun, session: ServerSession): Record<string, string> {
  const { LANG, LC_ALL, TZ } = gateway;
  const directories = { home: CONTAINER_HOME, temporary: '/tmp' };
  const own = launchEnvironment({ gateway: { LANG, LC_ALL, TZ }, directories, own: env, runId });
  const inside = { ...session, proxyUrl: insideUrl(session.proxyUrl), caBundlePath: SANDBOX_CA };
  const { PATH: _, ...proxied } = proxiedEnvironment(env, inside);
  return { ...own, ...proxied, HOME: CONTAINER_HOME, PATH: SANDBOX_PATH };
}
