import { exitStatusOf, runChild, type SignalSource } from '../../sandbox/engine/run_child.ts';
import { mayHoldSentinel, sessionEnvironment, type SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { RelayAccess } from '../../sandbox/relay/relay_environment.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { AllowList } from '../../shared/model/egress.ts';
import { homeOf } from '../up/home.ts';
import { HTTPS_PORT, portOfHost } from '../../shared/net/host_port.ts';
import { parseAllowedHost, parsePlainHost } from '../../shared/resolve/admitted_host.ts';
import { allowListFor, type ListPlace, otherPortsFor } from './hosts/allowed_hosts.ts';
import { plainHttpFor } from './hosts/plain_http_option.ts';
import { keptNoProxy } from './hosts/kept_no_proxy.ts';
import { chooseSecrets, type UseOptions } from './chosen_secrets.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import { printEndHints } from './end_hints.ts';
import { parseMcpServer } from '../mcp/mcp_server_option.ts';
import { parseDuration } from '../terminal/relative_time.ts';
import {
  screenEnvironment,
  tellOfWithheld,
  type CredentialVariable,
  type ScreenedEnvironment,
} from './screen_environment.ts';
import { openSession, type OpenSession } from './session_access.ts';
import { AGENT_TITLES } from '../agents/agent_names.ts';
import { nearMatch } from '../../shared/model/near_match.ts';

export interface RunOptions extends UseOptions {
  readonly name?: string;
  readonly ttl?: string;
  readonly relay?: boolean;
  readonly mcp?: readonly string[];
  readonly keepEnv?: readonly string[];
  readonly allowOnly?: readonly string[];
  readonly plainHttp?: readonly string[];
  readonly allow?: readonly string[];
  /** Refused if it is sealed. */
  readonly egress?: string;
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
  /** Called when the command has ended and the session is still there. */
  readonly beforeEnd?: (sessionId: string) => Promise<void>;
  readonly environment?: (environment: Record<string, string>, session: SessionAccess) => Record<string, string>;
}

const NO_RELAY: RelayAccess = { variables: {}, close: () => Promise.resolve() };

/** Runs a command in a session of its own; gives its exit status, and the session if the command was started. */
export async function runInSession(
  call: Call<RunOptions>,
  signals: SignalSource,
  wanted: RunInSession,
): Promise<{ readonly status: number; readonly sessionId: string | null }> {
  const { command, args } = wanted;
  const screened = await screen(call);
  const allowList = allowListOf(call, wanted.expectedHosts);
  const plainHttp = plainHttpOf(call);
  const otherPorts = otherPortsOf(call);
  const secrets = wanted.secrets ?? (await chooseSecrets(call).catch(rethrowNotStarted));
  const exempt = await exemptHosts(call, wanted, allowList).catch(rethrowNotStarted);
  const { session, end } = await open(call, {
    kept: screened.kept,
    byDefault: wanted.name,
    allowList,
    plainHttp,
    otherPorts,
    secrets,
    login: wanted.login,
  });
  const relay = await openRelayOf(call, session).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  const environment = { ...sessionEnvironment(screened.env, session, exempt), ...relay.variables };
  const env = wanted.environment?.(environment, session) ?? environment;
  for (const { env: name } of session.sentinels.filter((sentinel) => !mayHoldSentinel(sentinel.env))) {
    call.print.warn(`the placeholder cannot be handed out in ${JSON.stringify(name)}: choose another --sentinel-env`);
  }
  const placeholders = session.sentinels.map((sentinel) => sentinel.env).filter(mayHoldSentinel);
  tellOfWithheld(call, screened, placeholders);
  const { workingDirectory: cwd, interactive: terminal } = call.context;
  const ended = await runChild({ command, args, env, cwd, terminal }, signals);
  await relay.close();
  try {
    await wanted.beforeEnd?.(session.sessionId);
  } finally {
    await end();
  }
  await printEndHints(call, {
    sessionId: session.sessionId,
    hadList: allowList !== undefined,
    hadPlaceholders: session.sentinels.length > 0,
    expectedHosts: wanted.expectedHosts,
  });
  if (ended.kind === 'not_started') {
    const why = ended.code === 'ENOENT' ? 'not found' : ended.message;
    call.context.stderr.write(`svc run: ${JSON.stringify(command)}: ${why}\n`);
    const agent = ended.code === 'ENOENT' ? nearMatch(command, Object.keys(AGENT_TITLES)) : null;
    if (agent !== null) call.print.note(`     Did you mean the agent ${agent}? svc ${agent}`);
  }
  return { status: exitStatusOf(ended), sessionId: ended.kind === 'not_started' ? null : session.sessionId };
}

interface NewRun {
  readonly kept: readonly CredentialVariable[];
  readonly byDefault: string | undefined;
  readonly allowList: AllowList | undefined;
  readonly plainHttp: AllowList | undefined;
  readonly otherPorts: AllowList | undefined;
  readonly secrets: readonly ChosenSecret[];
  readonly login: RunInSession['login'];
}

/** The hosts of `--allow-only`, the folder and the agent; undefined without the option: then every host can be reached. */
function allowListOf(call: Call<RunOptions>, agentsHosts: readonly string[] = []): AllowList | undefined {
  const { allowOnly, egress = 'open' } = call.options;
  if (egress !== 'open') {
    throw new CliError(EXIT.notStarted, `--egress=${egress} needs a sandbox, and svc run has none`, [
      'In a container: svc launch --egress=sealed -- COMMAND',
      'A rule for programs that use the proxy, which others can bypass: svc run --allow-only HOST -- COMMAND',
    ]);
  }
  if (allowOnly === undefined) return undefined;
  const typed = parseTyped('--allow-only', allowOnly);
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
  allowList: AllowList | undefined,
): Promise<readonly string[]> {
  if (login !== undefined || allowList !== undefined) return Promise.resolve([]);
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

/** The hosts of `--allow` and the folder that are at other ports than 443. */
function otherPortsOf(call: Call<RunOptions>): AllowList | undefined {
  const typed = parseTyped('--allow', call.options.allow ?? []);
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

/** Opens the session; failures before the command starts have their own exit code. */
async function open(
  call: Call<RunOptions>,
  { kept, byDefault, allowList, plainHttp, otherPorts, secrets, login }: NewRun,
): Promise<OpenSession> {
  const ttl = call.options.ttl === undefined ? null : parseDuration(call.options.ttl);
  if (ttl !== null && !ttl.ok) throw new CliError(EXIT.notStarted, `--ttl ${ttl.error}`);
  const mcpServers = (call.options.mcp ?? []).map(parseServer);
  const name = call.options.name ?? byDefault;
  try {
    return await openSession(call, {
      ...(name !== undefined && { name }),
      ...(ttl !== null && { ttlSeconds: ttl.value }),
      ...(mcpServers.length > 0 && { mcpServers }),
      ...(kept.length > 0 && { keptEnv: kept }),
      ...(allowList !== undefined && { allowList }),
      ...(plainHttp !== undefined && { plainHttp }),
      ...(otherPorts !== undefined && { otherPorts }),
      secrets,
      ...(login !== undefined && { login }),
    });
  } catch (error) {
    throw notStarted(error);
  }
}

/** The person's environment without credentials, apart from those of `--keep-env`. */
async function screen(call: Call<RunOptions>): Promise<ScreenedEnvironment> {
  const keep = call.options.keepEnv ?? [];
  const unset = keep.find((name) => call.context.env[name] === undefined);
  if (unset !== undefined) {
    throw new CliError(EXIT.notStarted, `--keep-env ${JSON.stringify(unset.split('=', 1)[0])} is not a set variable`);
  }
  try {
    return await screenEnvironment(call, keep);
  } catch (error) {
    throw notStarted(error);
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

/** The session's relay, if requested. */
async function openRelayOf(call: Call<RunOptions>, session: SessionAccess): Promise<RelayAccess> {
  if (call.options.relay !== true) return NO_RELAY;
  // Loaded on use, so that a run without a relay starts faster.
  const { openRelay } = await import('../../sandbox/relay/relay_environment.ts');
  const opened = await openRelay(session, call.context.env, process.getuid?.() ?? null);
  if (opened.ok) return opened.value;
  throw new CliError(EXIT.notStarted, `--relay: ${opened.error.message}`, ['Run the command without --relay.']);
}
