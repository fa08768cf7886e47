import { copyFileSync, existsSync, realpathSync, rmSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { secretsNamedBy } from '../../sandbox/bubblewrap/environment_secrets.ts';
import { MACHINE_FILES } from '../../sandbox/bubblewrap/file_view.ts';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { planSandbox, type SandboxPlan, type SandboxRequest } from '../../sandbox/bubblewrap/plan_sandbox.ts';
import { readGitIdentity } from '../../sandbox/bubblewrap/git_identity.ts';
import { insideUrl, ownFiles, SANDBOX_CA, SANDBOX_PORT, startSandbox } from '../../sandbox/bubblewrap/run_sandbox.ts';
import { CA_FILE, makeSandboxFolder } from '../../sandbox/bubblewrap/sandbox_folder.ts';
import { seccompFilter } from '../../sandbox/bubblewrap/seccomp_filter.ts';
import type { ChildEnd, SignalSource } from '../../sandbox/engine/run_child.ts';
import type { LaunchProblem } from '../../sandbox/launch/launch_error.ts';
import type { SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { Egress } from '../../shared/model/egress.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { mountPolicyOf } from '../launch/mount_checks.ts';
import { homeOf } from '../up/home.ts';

/** The sandbox that a run is to have. */
export interface WantedSandbox {
  readonly egress: Egress;
  /** Shown besides the working directory; absolute. */
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  /** The agent whose own login is not hidden. */
  readonly agent: string | null;
}

/** The field of `POST /v1/sandbox-proxy/sessions`. */
export interface HostSandboxField {
  readonly mode: 'bubblewrap' | 'sandbox-exec';
  readonly egress: Egress;
  readonly folder: string;
}

/** A sandbox that waits for its session. */
export interface HostSandbox {
  readonly field: HostSandboxField;
  /** The session as it is seen from inside. */
  enter(session: SessionAccess): SessionAccess;
  run(env: Readonly<Record<string, string>>, signals: SignalSource): Promise<ChildEnd>;
  /** Ends it, whether or not its command was started. */
  close(): Promise<void>;
}

/** Starts the sandbox of a command; refuses with the reason and the nearest way if this machine can make none. */
export function openHostSandbox(
  call: Call,
  wanted: WantedSandbox,
  { command, args }: { readonly command: string; readonly args: readonly string[] },
): HostSandbox {
  const { context, options, print } = call;
  const bubblewrap = valueOrNotStarted(findBubblewrap(machineFacts(context.env['PATH'] ?? '')));
  const folder = makeSandboxFolder(homeOf(context, options));
  try {
    const plan = valueOrNotStarted(planFor(call, wanted, { command, folder: folder.path }));
    for (const warning of plan.warnings) print.warn(warning);
    const filter = seccompFilter(bubblewrap.machine);
    const gitConfig = readGitIdentity(context.env);
    const started = startSandbox({ bwrap: bubblewrap.program, plan, filter, command, args, gitConfig });
    return {
      field: { mode: 'bubblewrap', egress: wanted.egress, folder: folder.name },
      enter: (session) => {
        copyFileSync(session.caBundlePath, join(folder.path, CA_FILE));
        const metadataHost = `127.0.0.1:${SANDBOX_PORT}`;
        return { ...session, proxyUrl: insideUrl(session.proxyUrl), caBundlePath: SANDBOX_CA, metadataHost };
      },
      run: async (env, signals) => {
        if (!(await started.isReady)) throw notMadeError(probeBubblewrap(bubblewrap));
        const end = await started.run(insideEnvironment(env), context.interactive, signals);
        for (const path of started.listUncovered()) print.warn(uncoveredWarning(path));
        return end;
      },
      close: async () => {
        await started.abandon();
        rmSync(folder.path, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder.path, { recursive: true, force: true });
    throw error;
  }
}

function uncoveredWarning(path: string): string {
  return `another program replaced ${path} while the sandbox ran, so the sandbox no longer covered it: look at what it says before you use it`;
}

function notMadeError(probed: Result<void, LaunchProblem>): CliError {
  if (!probed.ok) return new CliError(EXIT.notStarted, probed.error.message, probed.error.fixes);
  return new CliError(EXIT.notStarted, 'bubblewrap did not make the sandbox: its own message is above', [
    'If that names a path that was changed, start it again: something else works in that folder.',
    'Without the sandbox: svc run --no-sandbox',
  ]);
}

type Visible = Omit<WantedSandbox, 'egress'>;

/** The command, and the folder with the session's socket; null for a sandbox without a session. */
interface CommandPlace {
  readonly command: string;
  readonly folder: string | null;
}

/** What is visible to the command. */
export function planFor(call: Call, wanted: Visible, place: CommandPlace): Result<SandboxPlan, LaunchProblem> {
  return planSandbox(requestFor(call, wanted, place), MACHINE_FILES);
}

export function requestFor(
  { context, options }: Call,
  { readable, writable, agent }: Visible,
  { command, folder }: CommandPlace,
): SandboxRequest {
  const { env, root, userHome, workingDirectory } = context;
  const policy = mountPolicyOf(context, options, env['DOCKER_HOST'] ?? null, workingDirectory);
  return {
    workingDirectory,
    home: userHome,
    readable,
    writable,
    agent,
    programs: [...programFoldersOf(command, env['PATH'] ?? '', userHome), join(root, 'bin', 'svc')],
    guarded: [...policy.guarded, ...secretsNamedBy(env, agent)],
    mountTable: policy.mountTable ?? null,
    own: folder === null ? [] : ownFiles(folder),
  };
}

/** The folders of PATH, and where the programs in them are that a run needs: a link there leads to a package. */
function programFoldersOf(command: string, path: string, home: string): readonly string[] {
  const folders = path.split(delimiter).filter((folder) => folder.startsWith('/'));
  const named = command.includes('/') ? [command] : [];
  const files = [command, 'node'].flatMap((name) =>
    folders
      .map((folder) => join(folder, name))
      .filter(existsSync)
      .slice(0, 1),
  );
  return [...folders, ...[...named, ...files].flatMap((file) => packageFolderOf(file, home))];
}

const MODULES = '/node_modules/';

/**
 * The folder that a program's own file is in; of a package of npm, all packages beside it. Of a script that lies in the home or in a
 * folder of documents there, only itself.
 */
function packageFolderOf(file: string, home: string): readonly string[] {
  try {
    const real = realpathSync(file);
    const at = real.indexOf(MODULES);
    if (at >= 0) return [real.slice(0, at + MODULES.length - 1)];
    const folder = dirname(real);
    const isPersonal = folder === home || (dirname(folder) === home && !/^(\.|bin$)/.test(basename(folder)));
    return [isPersonal ? real : folder];
  } catch {
    return [];
  }
}

/** Variables that name sockets and files of the person's desktop, which are not there. */
const LEADS_OUT =
  /^(SSH_AUTH_SOCK|SSH_AGENT_PID|SSH_ASKPASS|GIT_ASKPASS|GPG_AGENT_INFO|DBUS_.*|XDG_RUNTIME_DIR|DOCKER_.*|CONTAINER_HOST|BUILDKIT_HOST|KUBECONFIG|KRB5CCNAME|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SESSION_MANAGER|GNOME_KEYRING_.*|VSCODE_.*(IPC|SOCK).*|TMUX|TMUX_PANE|STY|LISTEN_.*|NOTIFY_SOCKET|JOURNAL_STREAM)$/;
const TEMPORARY = /^(TMPDIR|TMP|TEMP)$/;

export function insideEnvironment(env: Readonly<Record<string, string>>, temporary = '/tmp'): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => !LEADS_OUT.test(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, TEMPORARY.test(name) ? temporary : value]));
}

export function valueOrNotStarted<T>(result: Result<T, LaunchProblem>): T {
  if (result.ok) return result.value;
  throw new CliError(EXIT.notStarted, result.error.message, result.error.fixes);
}
