import { readFileSync, realpathSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import type { EngineName } from '../../sandbox/engine/engine_address.ts';
import { engineProgramAt } from '../../sandbox/engine/engine_cli.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { WantedHome } from '../../sandbox/image/home/prepare_home.ts';
import type { ContainerLaunch } from '../../sandbox/launch/launch_container.ts';
import { LaunchError } from '../../sandbox/launch/launch_error.ts';
import { decideProxy } from '../../sandbox/launch/launch_mode.ts';
import { WORKSPACE } from '../../sandbox/launch/mount_policy.ts';
import { isAtOrBelow } from '../../sandbox/launch/mount_table.ts';
import type { Call } from '../command_line.ts';
import { settingsOf } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { plainJavaScript } from '../launch/image/image_context.ts';
import { chooseSecrets } from '../launch/chosen_secrets.ts';
import { launchRequest, type LaunchOptions, type LaunchRequest } from '../launch/launch_options.ts';
import { launchProxied, type ContainerChanges, type Preflight } from '../launch/launch_proxied.ts';
import { toNotStarted } from '../launch/launch_run.ts';
import { sandboxSessions } from '../launch/sandbox_sessions.ts';
import { homeOf } from '../up/home.ts';
import { accountInFile, readAccountFile } from './account_file.ts';
import { fillText } from './agent_files.ts';
import { ensureHome, homeVolumeOf, listHomes, rememberEngine, removeHomes, type HomeOwner } from './agent_homes.ts';
import { type AgentImage, DEFAULT_AGENT_BASE, findOrBuildImage, type ImageTools } from './agent_image.ts';
import { requireLogin, type ReadyLogin } from './agent_login.ts';
import { ACCOUNT } from './agent_names.ts';
import { endOf, npmOf } from './agent_npm.ts';
import type { AgentProfile } from './agent_profile.ts';
import { findProfile } from './agent_profiles.ts';
import { LOGIN_FORMATS } from './login_formats.ts';
import { agentEnvironment, listHandedOut, loginsToUse, removedVariables } from './agent_run.ts';
import { printSummary } from './run_summary.ts';
import { placesOf } from './agent_setup.ts';
import { ensureStarted } from './agent_start.ts';

/** `svc launch NAME`: runs an agent in a container, in an image made for it; the exit status is the agent's. */
export async function launchAgent(call: Call<LaunchOptions>, signals: SignalSource, name: string): Promise<number> {
  const { profile } = findProfile(placesOf(call), name);
  if (call.options.forget === true) return forgetHomes(call, profile);
  const request = launchRequest(call);
  requireProxy(request, profile);
  refuseRemoved(request, profile);
  refuseBuilding(call.options);
  try {
    return await launch(call, signals, { request, profile });
  } catch (error) {
    throw toNotStarted(error);
  }
}

/** The home and the placeholders are for a container behind the proxy. */
function requireProxy({ sandbox, proxy }: LaunchRequest, { name, command }: AgentProfile): void {
  if (decideProxy(sandbox, proxy).kind === 'proxied') return;
  const off = sandbox === 'none' ? `--sandbox=${sandbox}` : `--sandbox-proxy=${proxy}`;
  throw new CliError(
    EXIT.usage,
    `an agent is launched by its name only in a container with the proxy: ${off} has none`,
    [`Without a container: svc ${name}`, `Without the proxy: svc launch ${off} --image IMAGE -- ${command}`],
  );
}

function refuseRemoved({ envNames, unsealed }: LaunchRequest, profile: AgentProfile): void {
  const removed = removedVariables(profile);
  const taken = [...envNames, ...unsealed.map(({ env }) => env)].find((each) => removed.has(each));
  if (taken === undefined) return;
  const option = envNames.includes(taken) ? '--env' : '--unsealed';
  throw new CliError(EXIT.usage, `${option} ${taken}: ${profile.title} would use it instead of its placeholder`, [
    `To run it with that variable: svc launch ${option} ... --image IMAGE -- ${profile.command}`,
  ]);
}

/** An image of the person's own is used as it is. */
function refuseBuilding({ image, base, rebuild }: LaunchOptions): void {
  if (image === undefined || (base === undefined && rebuild !== true)) return;
  throw new CliError(
    EXIT.usage,
    `${base === undefined ? '--rebuild' : '--base'} is for the image that svc makes, and --image names another`,
  );
}

interface Wanted {
  readonly request: LaunchRequest;
  readonly profile: AgentProfile;
}

async function launch(call: Call<LaunchOptions>, signals: SignalSource, wanted: Wanted): Promise<number> {
  const { profile } = wanted;
  const { login } = call.options;
  const only = login === undefined || login === ACCOUNT ? (login ?? null) : requireLogin(profile, login).name;
  await ensureStarted(call);
  const ownImage = wanted.request.image;
  const made = ownImage === null ? await agentImage(call, profile, wanted.request.engine) : null;
  const image = made?.tag ?? ownImage;
  const secrets = await chooseSecrets(call, profile);
  const logins = await loginsToUse(call, profile, { wanted: only, secrets });
  const request = { ...wanted.request, image, name: wanted.request.name };
  const end = await launchProxied(call, request, {
    sessions: sandboxSessions(call),
    signals,
    hosts: profile.hosts,
    secrets,
    changes: (container, found) => changesFor(call, { profile, logins, ownImage, made }, { container, found }),
  });
  if (end.exitCode === null) return EXIT.ok;
  await printSummary(call, end.sessionId);
  warnOfKept(call, wanted);
  return end.exitCode;
}

/** What the agent was given in plaintext may be in its home, which lasts. */
function warnOfKept(call: Call<LaunchOptions>, { request: { unsealed }, profile: { name, title } }: Wanted): void {
  if (unsealed.length === 0 || call.options.quiet === true) return;
  const names = unsealed.map(({ env }) => env).join(', ');
  call.print.warn(
    `${title} could write ${names} into its home, which stays; to remove it: svc launch --forget ${name}`,
  );
}

async function agentImage(
  call: Call<LaunchOptions>,
  profile: AgentProfile,
  named: EngineName | null,
): Promise<AgentImage> {
  const { context, options } = call;
  const opened = await openEngine(context.env, named);
  if (!opened.ok) throw new LaunchError(opened.error);
  const base = options.base ?? settingsOf(context).agentBaseImage ?? DEFAULT_AGENT_BASE;
  const engine = { ...toolsOf(call, opened.value), runtime: opened.value };
  return findOrBuildImage(call, engine, {
    profile,
    base,
    rebuild: options.rebuild === true,
    stateHome: homeOf(context, options),
  });
}

/** The programs of this machine. */
function toolsOf({ context, print }: Call, { endpoint }: ContainerRuntime): ImageTools {
  const { env } = context;
  const uid = process.getuid?.() ?? 0;
  const buildkit = env['DOCKER_BUILDKIT'];
  const add = buildkit === undefined ? {} : { DOCKER_BUILDKIT: buildkit };
  return {
    uid: uid === 0 ? null : String(uid),
    docker: (args) => endOf(engineProgramAt(env, endpoint).spawn(args, { stdio: 'pipe', add }), context.stop),
    npm: npmOf(
      env,
      (text) => print.note(`svc: ${text}`),
      () => context.stop,
    ),
  };
}

interface AgentToLaunch {
  readonly profile: AgentProfile;
  readonly logins: readonly ReadyLogin[] | null;
  /** The image that the person named. */
  readonly ownImage: string | null;
  /** The image that svc made. */
  readonly made: AgentImage | null;
}

/** What the profile changes in a container: the home, its files, and the variables with the placeholders. */
async function changesFor(
  call: Call<LaunchOptions>,
  { profile, logins, ownImage, made }: AgentToLaunch,
  { container, found }: { readonly container: ContainerLaunch; readonly found: Preflight },
): Promise<ContainerChanges> {
  const { context, options } = call;
  const { image, runtime } = found;
  if (made !== null && image.imageId !== made.id) throw changedImageError(made);
  const stateHome = homeOf(context, options);
  const home = homeVolumeOf({
    ...projectOf(container, context.workingDirectory),
    stateId: await rememberEngine(stateHome, runtime.endpoint, context.now()),
    agent: profile.name,
    ownImage,
    uid: image.uid,
    target: image.home,
    mountPoints: mountPointsIn(container, image.home),
  });
  await ensureHome(context.env, stateHome, runtime.endpoint, home);
  const terminal = container.tty ? terminalVariables(context.env) : {};
  return {
    volumes: [{ volume: home.name, target: image.home }],
    command: [...prepareCommand(context.root), profile.command, ...container.command],
    env: { ...terminal, ...profile.container?.variables, ...container.env },
    environment: (environment, session) => {
      const used = logins ?? loginsOfSession(call, profile, session);
      const wanted = JSON.stringify(wantedHome(context, profile, used));
      return { ...agentEnvironment(environment, profile, used), [WANTED_HOME]: wanted };
    },
  };
}

/** The logins where the control plane is away, and the sidecar's policy decides. The agent's own comes first here too. */
function loginsOfSession(
  { context, options }: Call<LaunchOptions>,
  profile: AgentProfile,
  session: Parameters<typeof listHandedOut>[1],
): readonly ReadyLogin[] {
  const { login = null } = options;
  const own = login === null || login === ACCOUNT ? accountInFile(context, profile) : null;
  const found = [...(own === null ? [] : [own]), ...listHandedOut(profile, session, login)];
  return profile.several ? found : found.slice(0, 1);
}

function changedImageError({ tag }: AgentImage): CliError {
  return new CliError(EXIT.failed, `the image ${tag} was replaced a moment ago: nothing was started`, [
    'If you did not build it just now, find out who uses this engine.',
  ]);
}

/** What is mounted as the project. */
function projectOf({ mounts }: ContainerLaunch, otherwise: string): Pick<HomeOwner, 'folder' | 'project'> {
  const mounted = mounts.find(({ target }) => target === WORKSPACE);
  if (mounted === undefined) return { folder: otherwise, project: 'none' };
  return { folder: mounted.source, project: mounted.readOnly ? 'ro' : 'rw' };
}

/** The mount points directly in the home. One further below has a parent that an agent may rename, and is refused. */
function mountPointsIn({ mounts }: ContainerLaunch, home: string): readonly string[] {
  const inside = mounts.filter(({ target }) => isAtOrBelow(target, home));
  for (const { source, target } of inside) {
    if (target === home) {
      throw new CliError(EXIT.usage, `--mount: ${home} is the home of the agent, which svc keeps in a volume`, [
        `Mount ${source} at another place.`,
      ]);
    }
    if (posix.dirname(target) !== home) {
      throw new CliError(
        EXIT.usage,
        `--mount: ${target} is in a folder of the agent's home, which an agent can replace`,
        [`Mount ${source} directly in ${home}, or outside of it.`],
      );
    }
  }
  return inside.map(({ target }) => target);
}

/** The files of the profile, with placeholders in them. */
function wantedHome(context: Call['context'], profile: AgentProfile, logins: readonly ReadyLogin[]): WantedHome {
  const ofLogins = logins.flatMap(({ login, placeholder }) =>
    profile.files
      .filter((file) => file.login === login.name)
      .map(({ path, write, json }) => ({ path, write, json: fillText(json, placeholder, WORKSPACE) })),
  );
  const ofContainer = (profile.container?.files ?? []).map((file) => ({
    ...file,
    json: fillText(file.json, '', WORKSPACE),
  }));
  return {
    files: [...ofLogins, ...ofAccount(context, profile, logins), ...ofContainer],
    credentialFiles: profile.credential_files.map(({ path, tokens = null }) => ({ path, tokens })),
    placeholders: logins.map(({ placeholder }) => placeholder),
  };
}

/** The agent's own login, as the person's file has it: its tokens are in svc, and placeholders in the file. */
function ofAccount(
  context: Call['context'],
  { account }: AgentProfile,
  logins: readonly ReadyLogin[],
): WantedHome['files'] {
  const used = logins.find(({ login }) => login.name === ACCOUNT);
  const file = account === undefined ? null : readAccountFile(context, account);
  if (account === undefined || used === undefined || file === null) return [];
  const json = LOGIN_FORMATS[account.file.format].copy(file, used.placeholder, context.now());
  return [{ path: account.file.path, write: 'login', json }];
}

/** The variable with the files of the home. It is gone before the agent starts. */
const WANTED_HOME = 'SVC_AGENT_HOME';
const PREPARE_AND_RUN = `node --input-type=module -e "$1" </dev/null >&2 || echo "svc: warning: the home of the agent could not be prepared; it may ask questions" >&2; unset ${WANTED_HOME}; shift; exec "$@"`;
const CALL_PREPARE = `
for (const line of prepareHome(process.env.HOME, JSON.parse(process.env.${WANTED_HOME}))) console.error('svc: warning: ' + line);
`;

/** The words before the agent's command. They run in the container, as the agent's user, who may have put anything into the home. */
function prepareCommand(root: string): readonly string[] {
  const source = readFileSync(join(root, 'sandbox', 'image', 'home', 'prepare_home.ts'), 'utf8');
  return ['sh', '-c', PREPARE_AND_RUN, 'svc-agent', `${plainJavaScript(source)}${CALL_PREPARE}`];
}

/** How the terminal shows colours; the engine alone says `xterm`. */
function terminalVariables(env: Call['context']['env']): Record<string, string> {
  const found = ['TERM', 'COLORTERM'].map((name) => [name, env[name]] as const);
  return Object.fromEntries(found.filter((pair): pair is readonly [string, string] => pair[1] !== undefined));
}

/** `svc launch --forget NAME` */
async function forgetHomes(call: Call<LaunchOptions>, { name, title }: AgentProfile): Promise<number> {
  const { context, options, print } = call;
  const folder = realpathSync(context.workingDirectory);
  const homes = await listHomes(context.env, homeOf(context, options), (problem) => print.warn(problem));
  const own = homes.filter((home) => home.agent === name && home.folder === folder);
  await removeHomes(context.env, own);
  print.line(
    { removed: own.map((home) => home.name) },
    own.length === 0 ? `${title} has no home for ${folder}` : `removed the home of ${title} for ${folder}`,
  );
  return EXIT.ok;
}
