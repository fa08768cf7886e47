import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type ChildEnd, exitStatusOf, runChild, type SignalSource } from '../../sandbox/engine/run_child.ts';
import { mayHoldSentinel, sessionEnvironment, type SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { RelayAccess } from '../../sandbox/relay/relay_environment.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { type AllowList, type Egress, EGRESS_MODES } from '../../shared/model/egress.ts';
import type { HostSandbox } from '../sandbox/host_sandbox.ts';
import { homeOf } from '../up/home.ts';
import { HTTPS_PORT, portOfHost } from '../../shared/net/host_port.ts';
import { parseAllowedHost, parsePlainHost } from '../../shared/resolve/admitted_host.ts';
import { allowListFor, type ListPlace, otherPortsFor } from './hosts/allowed_hosts.ts';
import { plainHttpFor } from './hosts/plain_http_option.ts';
import { keptNoProxy } from './hosts/kept_no_proxy.ts';
import { chooseSecrets, type UseOptions } from './chosen_secrets.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import { mayHaveHints } from './hinted_reasons.ts';
import { parseMcpServer } from '../mcp/mcp_server_option.ts';
import { parseSessionLength } from '../terminal/relative_time.ts';
import {
  screenEnvironment,
  tellOfWithheld,
  type CredentialVariable,
  type ScreenedEnvironment,
} from './screen_environment.ts';
import { warnOfServersOutside } from './servers_outside.ts';
import { readScopes, type ScopeOptions } from './scope_option.ts';
import type { MetadataEndpoint } from './metadata_endpoint.ts';
import { openSession, type OpenSession, policyVersion } from './session_access.ts';
import { becomeCommand, canBecome } from './waiter.ts';
import { type CommandEnd, recordOf, writeRecord } from './run_record.ts';
import { AGENT_TITLES } from '../agents/agent_names.ts';
import { nearMatch } from '../../shared/model/near_match.ts';

export interface RunOptions extends UseOptions, ScopeOptions {
  readonly name?: string;
  readonly ttl?: string;
  readonly relay?: boolean;
  readonly mcp?: readonly string[];
  readonly keepEnv?: readonly string[];
  readonly allowOnly?: readonly string[];
  readonly plainHttp?: readonly string[];
  readonly allow?: readonly string[];
  /** Only with a sandbox anything but open. */
  readonly egress?: string;
  readonly sandbox?: boolean;
  /** Paths that the sandbox shows. */
  readonly sandboxRead?: readonly string[];
  readonly sandboxWrite?: readonly string[];
  readonly login?: string;
  readonly quiet?: boolean;
  /** The profile that was named instead of a command. */
  readonly agent?: string;
}

/** A command for a session, and what it changes in the session's environment. */
export interface RunInSession {
  readonly command: string;
  readonly args: readonly string[];
  /** The session's name, unless `--name` gives one. */
  readonly name?: string;
  /** Unbound hosts to which it is known to send its placeholder. */
  readonly expectedHosts?: readonly string[];
  /** The secrets to use where a host is bound to several; without it, those of `--use` and of the folder. */
  readonly secrets?: readonly ChosenSecret[];
  /** The login that the session captures. */
  readonly login?: { readonly id: string; readonly placeholder: string };
  /** The last line counts the session's requests. */
  readonly isCounted?: boolean;
  /** Called when the command has ended and the session is still there. */
  readonly beforeEnd?: (sessionId: string) => Promise<void>;
  /** Whether the command has a sandbox, and what of an agent is visible in it; without it, the options decide. */
  readonly sandbox?: RunSandbox;
  readonly environment?: (environment: Record<string, string>, session: SessionAccess) => Record<string, string>;
}

const NO_RELAY: RelayAccess = { variables: {}, close: () => Promise.resolve() };

/** What an agent needs in a sandbox besides its folder; absolute paths. */
export interface RunSandbox {
  readonly isWanted: boolean;
  /** The name of the agent, whose own login is not hidden. */
  readonly agent?: string;
  /** A person gave the agent svc's MCP gateway, so its session may use every server. */
  readonly hasGateway?: boolean;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
}

/** Runs a command in a session of its own; gives its exit status, and the session if the command was started. */
export async function runInSession(
  call: Call<RunOptions>,
  signals: SignalSource,
  wanted: RunInSession,
): Promise<{ readonly status: number; readonly sessionId: string | null }> {
  const typed = typedOf(call);
  const egress = egressOf(call, wanted);
  const reach = { egress, allowList: allowListOf(call, egress, wanted.expectedHosts) };
  const plainHttp = plainHttpOf(call);
  const otherPorts = otherPortsOf(call, egress);
  // First, because it starts while everything else is asked for.
  const box = await openBox(call, wanted, egress);
  try {
    const secrets = wanted.secrets ?? (await chooseSecrets(call).catch(rethrowNotStarted));
    // Last, so that what was stored while a person was asked is included.
    const [screened, minPolicyVersion] = await askControlPlane(call).catch(rethrowNotStarted);
    const exempt = await exemptHosts(call, wanted, { ...reach, isBoxed: box !== null }).catch(rethrowNotStarted);
    const ready = {
      typed,
      screened,
      minPolicyVersion,
      allowList: reach.allowList,
      plainHttp,
      otherPorts,
      secrets,
      exempt,
      box,
    };
    return await runReady(call, signals, wanted, ready);
  } finally {
    await box?.close();
  }
}

interface ReadyRun {
  readonly typed: TypedOptions;
  readonly screened: ScreenedEnvironment;
  readonly minPolicyVersion: number | null;
  readonly allowList: AllowList | undefined;
  readonly plainHttp: AllowList | undefined;
  readonly otherPorts: AllowList | undefined;
  readonly secrets: readonly ChosenSecret[];
  readonly exempt: readonly string[];
  readonly box: HostSandbox | null;
}

async function runReady(
  call: Call<RunOptions>,
  signals: SignalSource,
  wanted: RunInSession,
  ready: ReadyRun,
): Promise<{ readonly status: number; readonly sessionId: string | null }> {
  const { screened, box } = ready;
  const { session, end } = await open(call, {
    ...ready,
    kept: screened.kept,
    byDefault: wanted.name,
    login: wanted.login,
    hasGateway: wanted.sandbox?.hasGateway === true,
  });
  const [relay, metadata] = await openListeners(call, session, box).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  const seen =
    box === null ? { ...session, ...(metadata !== null && { metadataHost: metadata.host }) } : box.enter(session);
  const environment = { ...sessionEnvironment(screened.env, seen, ready.exempt), ...relay.variables };
  const env = wanted.environment?.(environment, seen) ?? environment;
  for (const { env: name } of session.sentinels.filter((sentinel) => !mayHoldSentinel(sentinel.env))) {
    call.print.warn(`the placeholder cannot be handed out in ${JSON.stringify(name)}: choose another --sentinel-env`);
  }
  const placeholders = session.sentinels.map((sentinel) => sentinel.env).filter(mayHoldSentinel);
  tellOfWithheld(call, screened, placeholders);
  const hints = {
    sessionId: session.sessionId,
    hadPlaceholders: session.sentinels.length > 0,
    expectedHosts: wanted.expectedHosts,
    isCounted: wanted.isCounted === true,
  };
  const needsUs = relay !== NO_RELAY || metadata !== null || box !== null || wanted.beforeEnd !== undefined;
  const ended = await runTheCommand(call, signals, { ...wanted, env, box, atEnd: needsUs ? null : hints }).catch(
    async (error: unknown) => {
      await end();
      throw error;
    },
  );
  await Promise.all([relay.close(), metadata?.close()]);
  let reasons: readonly string[] | null = null;
  try {
    await wanted.beforeEnd?.(session.sessionId);
  } finally {
    reasons = await end();
  }
  if (mayHaveHints(reasons)) {
    // Loaded on use, because most sessions have none.
    const { printEndHints } = await import('./end_hints.ts');
    await printEndHints(call, hints);
  }
  if (ended.kind === 'not_started') tellNotStarted(call, wanted.command, ended);
  return { status: exitStatusOf(ended), sessionId: ended.kind === 'not_started' ? null : session.sessionId };
}

interface CommandInSession extends Pick<RunInSession, 'command' | 'args'> {
  readonly env: Readonly<Record<string, string>>;
  readonly box: HostSandbox | null;
  /** What is left to do at its end; null if this process has more to do until then. */
  readonly atEnd: CommandEnd | null;
}

/** Runs the command until it ends, or becomes the command, if a shell waits for its end. */
async function runTheCommand(
  call: Call<RunOptions>,
  signals: SignalSource,
  { command, args, env, box, atEnd }: CommandInSession,
): Promise<ChildEnd> {
  const { workingDirectory: cwd, interactive: terminal, waiter } = call.context;
  const mayBecome = waiter !== undefined && atEnd !== null && canBecome(command, env['PATH'], cwd);
  if (mayBecome && writeRecord(waiter.record, recordOf(call, atEnd))) becomeCommand({ command, args, env, waiter });
  return box === null ? runChild({ command, args, env, cwd, terminal }, signals) : box.run(env, signals);
}

function tellNotStarted(
  { context, print }: Call<RunOptions>,
  command: string,
  { code, message }: Extract<ChildEnd, { readonly kind: 'not_started' }>,
): void {
  const why = code === 'ENOENT' ? 'not found' : message;
  context.stderr.write(`svc run: ${JSON.stringify(command)}: ${why}\n`);
  const agent = code === 'ENOENT' ? nearMatch(command, Object.keys(AGENT_TITLES)) : null;
  if (agent !== null) print.note(`     Did you mean the agent ${agent}? svc ${agent}`);
}

/** The sandbox of the run, which has started; null for a run without one. */
async function openBox(call: Call<RunOptions>, wanted: RunInSession, egress: Egress): Promise<HostSandbox | null> {
  if (!isBoxed(call, wanted)) return null;
  const { options, context } = call;
  if (options.relay === true) {
    throw new CliError(EXIT.notStarted, '--relay listens outside of the sandbox, which reaches nothing there', [
      'For Java and Chromium in a sandbox: svc launch --relay',
    ]);
  }
  // Loaded on use, so that a run without a sandbox starts faster.
  const typed = (paths: readonly string[] = []): readonly string[] =>
    paths.map((path) => requirePath(resolve(context.workingDirectory, path)));
  const readable = [...typed(options.sandboxRead), ...(wanted.sandbox?.readable ?? [])];
  const writable = [...typed(options.sandboxWrite), ...(wanted.sandbox?.writable ?? [])];
  const agent = wanted.sandbox?.agent ?? null;
  const visible = { egress, readable, writable, agent };
  if (process.platform === 'darwin') {
    const { openMacSandbox } = await import('../sandbox/mac_sandbox.ts');
    return openMacSandbox(call, visible, wanted);
  }
  const { openHostSandbox } = await import('../sandbox/host_sandbox.ts');
  return openHostSandbox(call, visible, wanted);
}

function isBoxed({ options }: Call<RunOptions>, { sandbox }: RunInSession): boolean {
  return sandbox?.isWanted ?? options.sandbox === true;
}

function requirePath(path: string): string {
  if (existsSync(path)) return path;
  throw new CliError(EXIT.notStarted, `${path} does not exist, so the sandbox cannot show it`);
}

/** What the sandbox lets out; open without one. */
function egressOf(call: Call<RunOptions>, wanted: RunInSession): Egress {
  const { egress: text = 'open', allowOnly, sandboxRead = [], sandboxWrite = [] } = call.options;
  const egress = EGRESS_MODES.find((each) => each === text);
  if (egress === undefined) {
    const message = `--egress is ${JSON.stringify(text)}: use open, sealed or sealed,public`;
    throw new CliError(EXIT.notStarted, message);
  }
  if (isBoxed(call, wanted)) return egress === 'open' && allowOnly !== undefined ? 'sealed' : egress;
  if (sandboxRead.length + sandboxWrite.length > 0) {
    throw new CliError(EXIT.notStarted, '--sandbox-read and --sandbox-write need --sandbox');
  }
  if (egress === 'open') return egress;
  throw new CliError(EXIT.notStarted, `--egress=${egress} needs a sandbox`, [
    `Use: svc run --sandbox --egress=${egress} -- COMMAND`,
    'In a container: svc launch --egress=sealed -- COMMAND',
    'A rule for programs that use the proxy, which others can bypass: svc run --allow-only HOST -- COMMAND',
  ]);
}

interface NewRun {
  readonly typed: TypedOptions;
  readonly minPolicyVersion: number | null;
  readonly kept: readonly CredentialVariable[];
  readonly byDefault: string | undefined;
  readonly allowList: AllowList | undefined;
  readonly plainHttp: AllowList | undefined;
  readonly otherPorts: AllowList | undefined;
  readonly secrets: readonly ChosenSecret[];
  readonly login: RunInSession['login'];
  readonly hasGateway: boolean;
  readonly box: HostSandbox | null;
}

/** The hosts that the session is limited to, with those of the folder and the agent; undefined: it reaches every host. */
function allowListOf(
  call: Call<RunOptions>,
  egress: Egress,
  agentsHosts: readonly string[] = [],
): AllowList | undefined {
  const { allowOnly } = call.options;
  const typed = [
    ...parseTyped('--allow-only', allowOnly ?? []),
    ...(egress === 'open' ? [] : parseTyped('--allow', call.options.allow ?? [])),
  ];
  if (egress === 'sealed,public') {
    const named = typed.filter((host) => !host.includes('*'));
    return named.length === 0 ? undefined : { hosts: [], named };
  }
  if (egress === 'open' && allowOnly === undefined) return undefined;
  try {
    return allowListFor({ ...placeOf(call), more: agentsHosts }, typed);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The user's NO_PROXY for the command: nothing in a login, because a request past the sidecar brings the program real tokens. */
function exemptHosts(
  call: Call<RunOptions>,
  { login, expectedHosts = [] }: RunInSession,
  { allowList, isBoxed: boxed }: { readonly allowList: AllowList | undefined; readonly isBoxed: boolean },
): Promise<readonly string[]> {
  // In a sandbox nothing can be reached past the proxy.
  if (login !== undefined || allowList !== undefined || boxed) return Promise.resolve([]);
  return keptNoProxy(call, expectedHosts);
}

/** The hosts of `--plain-http` and the folder. */
function plainHttpOf(call: Call<RunOptions>): AllowList | undefined {
  const typed = parseTyped('--plain-http', call.options.plainHttp ?? [], parsePlainHost);
  try {
    return plainHttpFor(placeOf(call), typed);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The hosts of `--allow` and the folder that are at other ports than 443; in a sealed sandbox they are in its list. */
function otherPortsOf(call: Call<RunOptions>, egress: Egress): AllowList | undefined {
  if (egress === 'sealed') return undefined;
  const typed = parseTyped('--allow', call.options.allow ?? []).filter(
    (host) => egress === 'open' || portOfHost(host) !== HTTPS_PORT,
  );
  const onHttps = typed.find((host) => portOfHost(host) === HTTPS_PORT);
  if (onHttps !== undefined) {
    throw new CliError(
      EXIT.notStarted,
      `--allow ${onHttps}: svc run reaches every host on port 443; name another port`,
      [
        `Another port: svc run --allow ${onHttps}:8443 -- COMMAND`,
        `Only some hosts: svc run --allow-only ${onHttps} -- COMMAND`,
      ],
    );
  }
  try {
    return otherPortsFor(placeOf(call), typed);
  } catch (error) {
    throw notStarted(error);
  }
}

function placeOf({ context, options }: Call<RunOptions>): ListPlace {
  return { home: homeOf(context, options), folder: context.workingDirectory };
}

function parseTyped(option: string, texts: readonly string[], parse = parseAllowedHost): readonly string[] {
  return texts.map((text) => {
    const host = parse(text);
    if (host.ok) return host.value;
    throw new CliError(EXIT.notStarted, `${option} ${host.error}`);
  });
}

/** Options that are read before anything is asked for. */
interface TypedOptions {
  readonly ttlSeconds: number | null;
  readonly servers: readonly string[];
}

function typedOf({ context, options }: Call<RunOptions>): TypedOptions {
  const ttl = options.ttl === undefined ? null : parseSessionLength(options.ttl);
  if (ttl !== null && !ttl.ok) throw new CliError(EXIT.notStarted, `--ttl ${ttl.error}`);
  const unset = options.keepEnv?.find((name) => context.env[name] === undefined);
  if (unset !== undefined) {
    throw new CliError(EXIT.notStarted, `--keep-env ${JSON.stringify(unset.split('=', 1)[0])} is not a set variable`);
  }
  return { ttlSeconds: ttl?.value ?? null, servers: (options.mcp ?? []).map(parseServer) };
}

/** Opens the session; failures before the command starts have their own exit code. */
async function open(
  call: Call<RunOptions>,
  {
    typed,
    minPolicyVersion,
    kept,
    byDefault,
    allowList,
    plainHttp,
    otherPorts,
    secrets,
    login,
    hasGateway,
    box,
  }: NewRun,
): Promise<OpenSession> {
  // Those that are named for this run are all that it may use.
  const mcpServers = hasGateway && typed.servers.length === 0 ? null : typed.servers;
  if (box !== null) warnOfServersOutside(call, { egress: box.field.egress, mcpServers }, 'sandbox');
  const name = call.options.name ?? byDefault;
  try {
    return await openSession(call, {
      minPolicyVersion,
      ...(name !== undefined && { name }),
      ...(typed.ttlSeconds !== null && { ttlSeconds: typed.ttlSeconds }),
      ...(mcpServers?.length !== 0 && { mcpServers }),
      ...(kept.length > 0 && { keptEnv: kept }),
      ...(allowList !== undefined && { allowList }),
      ...(plainHttp !== undefined && { plainHttp }),
      ...(otherPorts !== undefined && { otherPorts }),
      secrets,
      scopes: await readScopes(call.options),
      ...(login !== undefined && { login }),
      ...(box !== null && { hostSandbox: box.field }),
    });
  } catch (error) {
    throw notStarted(error);
  }
}

/**
 * The person's environment without credentials, apart from those of `--keep-env`, and the version of the policy. Both are asked for at
 * once; when one fails, the other is not waited for.
 */
async function askControlPlane(call: Call<RunOptions>): Promise<readonly [ScreenedEnvironment, number | null]> {
  const failed = new AbortController();
  try {
    return await Promise.all([
      screenEnvironment(call, call.options.keepEnv ?? [], failed.signal),
      policyVersion(call, failed.signal),
    ]);
  } catch (error) {
    failed.abort();
    throw error;
  }
}

function rethrowNotStarted(error: unknown): never {
  throw notStarted(error);
}

function notStarted(error: unknown): unknown {
  return error instanceof CliError ? new CliError(EXIT.notStarted, error.message, error.fixes) : error;
}

function parseServer(text: string): string {
  const parsed = parseMcpServer(text);
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.notStarted, `--mcp ${parsed.error}`);
}

/** What listens for the session beside the sidecar: a sandbox has its own. */
async function openListeners(
  call: Call<RunOptions>,
  session: SessionAccess,
  box: HostSandbox | null,
): Promise<[RelayAccess, MetadataEndpoint | null]> {
  const relay = await openRelayOf(call, session);
  try {
    return [relay, box === null ? await openMetadataOf(session) : null];
  } catch (error) {
    await relay.close();
    throw error;
  }
}

/** The session's relay, if requested. */
async function openRelayOf(call: Call<RunOptions>, session: SessionAccess): Promise<RelayAccess> {
  if (call.options.relay !== true) return NO_RELAY;
  // Loaded on use, so that a run without a relay starts faster.
  const { openRelay } = await import('../../sandbox/relay/relay_environment.ts');
  const opened = await openRelay(session, call.context.env, process.getuid?.() ?? null);
  if (opened.ok) return opened.value;
  throw new CliError(EXIT.notStarted, `--relay: ${opened.error.message}`, ['Run the command without --relay.']);
}

/** The listener for Google's libraries, if the session has tokens for them; null without one. */
async function openMetadataOf({ proxyUrl, sdkEndpoints = [] }: SessionAccess): Promise<MetadataEndpoint | null> {
  if (!sdkEndpoints.includes('google')) return null;
  // Loaded on use, so that a run without it starts faster.
  const { openMetadataEndpoint } = await import('./metadata_endpoint.ts');
  const { origin, password } = new URL(proxyUrl);
  return openMetadataEndpoint({ origin, token: decodeURIComponent(password) });
}
