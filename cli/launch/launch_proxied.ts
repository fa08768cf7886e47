import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import type { ImageFacts } from '../../sandbox/contract/image_contract_facts.ts';
import { launchContainer, type ContainerLaunch, type LaunchEnd } from '../../sandbox/launch/launch_container.ts';
import { LaunchError, type LaunchProblem } from '../../sandbox/launch/launch_error.ts';
import type { SandboxSessions } from '../../sandbox/launch/launch_ports.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { AllowList } from '../../shared/model/egress.ts';
import { identify } from '../../machine/process_identity.ts';
import type { Call } from '../command_line.ts';
import { homeOf } from '../up/home.ts';
import { keptNoProxy } from './hosts/kept_no_proxy.ts';
import { checkLaunchImage } from './image/launch_image.ts';
import { engineUserAt } from '../../sandbox/engine/engine_user.ts';
import { launchMounts, launchVariables, launchWorkdir, warnOfOwner } from './launch_inputs.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import { readLimits } from './limit_options.ts';
import { readScopes } from './scope_option.ts';
import { chooseSecrets } from './chosen_secrets.ts';
import type { LaunchOptions, LaunchRequest } from './launch_options.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import { HTTPS_PORT, portOfHost } from '../../shared/net/host_port.ts';
import { allowListFor, otherPortsFor } from './hosts/allowed_hosts.ts';
import { plainHttpFor } from './hosts/plain_http_option.ts';
import { printEndHints } from './end_hints.ts';
import { callPorts, wantsTty } from './call_ports.ts';
import { warnOfServersOutside } from './servers_outside.ts';

/** Launches with the proxy: preflight, then session and container. */
export async function runProxied(
  call: Call<LaunchOptions>,
  request: LaunchRequest,
  sessions: SandboxSessions,
  signals: SignalSource,
): Promise<number> {
  return (await launchProxied(call, request, { sessions, signals })).exitCode ?? 0;
}

/** What an agent's profile changes in the container. */
export type ContainerChanges = Partial<Pick<ContainerLaunch, 'volumes' | 'command' | 'env' | 'environment'>>;

interface ProxiedLaunch {
  readonly sessions: SandboxSessions;
  readonly signals: SignalSource;
  /** Hosts that a sealed session reaches in addition, such as an agent's own. */
  readonly hosts?: readonly string[];
  /** The secrets to use where a host is bound to several; without it, those of `--use` and of the folder. */
  readonly secrets?: readonly ChosenSecret[];
  /** Called when engine and image are checked, before anything starts. */
  readonly changes?: (launch: ContainerLaunch, found: Preflight) => Promise<ContainerChanges>;
}

/** The same; also says which session it was. */
export async function launchProxied(
  call: Call<LaunchOptions>,
  request: LaunchRequest,
  { sessions, signals, hosts = [], changes, ...given }: ProxiedLaunch,
): Promise<LaunchEnd> {
  // Before anything is asked for.
  const scopes = await readScopes(call.options);
  const limits = await readLimits(call);
  const secrets = given.secrets ?? (await chooseSecrets(call));
  const found = await preflight(call, request, sessions);
  const launch = await containerLaunch(call, request, { ...found, hosts, secrets, scopes, limits });
  const changed = { ...launch, ...(await changes?.(launch, found)) };
  const end = await launchContainer({ ...callPorts(call, signals), runtime: found.runtime, sessions }, changed);
  if (end.exitCode === null) tellDetached(call, request, end);
  else {
    const { sessionId } = end;
    await printEndHints(call, { sessionId, expectedHosts: hosts });
  }
  return end;
}

export interface Preflight {
  readonly runtime: ContainerRuntime;
  readonly image: Pick<ImageFacts, 'imageId' | 'agentUser' | 'entry' | 'uid' | 'home'>;
}

/** Checks that engine and image support the proxy. If not, this is recorded and nothing starts. */
async function preflight(call: Call, request: LaunchRequest, sessions: SandboxSessions): Promise<Preflight> {
  const runtime = await openEngine(call.context.env, request.engine);
  if (!runtime.ok) throw await preflightFailed(request, sessions, runtime.error);
  const home = homeOf(call.context, call.options);
  const image = await checkLaunchImage(runtime.value, request.image ?? '', home, (text) => call.print.warn(text));
  if (!image.ok) throw await preflightFailed(request, sessions, image.error);
  return { runtime: runtime.value, image: image.value };
}

async function preflightFailed(
  request: LaunchRequest,
  sessions: SandboxSessions,
  problem: LaunchProblem,
): Promise<LaunchError> {
  await sessions.recordDisabled('preflight_failed', request.sandbox, request.image);
  return new LaunchError(problem);
}

/** What was chosen for the session before its engine was asked. */
interface ChosenAtLaunch extends Required<Pick<ProxiedLaunch, 'hosts' | 'secrets'>> {
  readonly scopes: readonly SecretScope[];
  readonly limits: RequestLimits;
}

async function containerLaunch(
  call: Call,
  request: LaunchRequest,
  { runtime, image, hosts, secrets, scopes, limits }: Preflight & ChosenAtLaunch,
): Promise<ContainerLaunch> {
  const mounts = launchMounts(call, request, runtime.endpoint);
  // Elsewhere the engine is in a virtual machine, which gives the files of a mount to whoever reads them.
  if (process.platform === 'linux') warnOfOwner(call, mounts, image, engineUserAt(runtime.endpoint));
  warnOfServersOutside(call, request, 'container');
  const { detach, relay, command, name, ttlSeconds, egress, allow, plainHttp, unsealed, mcpServers } = request;
  const place = { home: homeOf(call.context, call.options), folder: call.context.workingDirectory, more: hosts };
  return {
    home: place.home,
    session: {
      name,
      ttlSeconds,
      egress,
      allowList: egress === 'sealed' ? allowListFor(place, allow) : namedOnly(allow),
      plainHttp: plainHttpFor(place, plainHttp),
      otherPorts: egress === 'sealed' ? undefined : otherPortsFor(place, allow),
      secrets,
      scopes,
      limits,
      unsealed,
      mcpServers,
      owner: identify(process.pid),
      image: request.image ?? '',
      imageId: image.imageId,
      runtime: { program: runtime.program, endpoint: runtime.endpoint },
      detached: detach,
    },
    agentUser: image.agentUser,
    entry: image.entry,
    mounts,
    workdir: launchWorkdir(request, mounts),
    env: await launchVariables(call, request.envNames),
    command,
    relay,
    exempt: egress === 'open' ? await keptNoProxy(call, hosts) : [],
    tty: wantsTty(call, request),
  };
}

/** With `sealed,public` a list limits nothing: it names the hosts that may lead to private addresses. */
function namedOnly(allow: readonly string[]): AllowList | null {
  const named = allow.filter((host) => portOfHost(host) === HTTPS_PORT);
  return named.length === 0 ? null : { hosts: [], named: [...new Set(named)] };
}

function tellDetached(call: Call, request: LaunchRequest, end: LaunchEnd): void {
  const { sessionId, containerId } = end;
  call.print.data({ session_id: sessionId, container_id: containerId, name: request.name }, () => `${sessionId}\n`);
  if (call.print.person) {
    call.print.note(
      `svc sessions logs ${sessionId}\nsvc sessions show ${sessionId}    # also what it was refused\nsvc sessions stop ${sessionId}`,
    );
  }
}
