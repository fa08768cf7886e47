import { type ChildEnd, exitStatusOf, runChild, type SignalSource } from '../../sandbox/engine/run_child.ts';
import { mayHoldSentinel, sessionEnvironment } from '../../sandbox/launch/session_environment.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import { AGENT_TITLES } from '../agents/agent_names.ts';
import type { Call } from '../command_line.ts';
import type { HostSandbox } from '../sandbox/host_sandbox.ts';
import { chooseSecrets } from './chosen_secrets.ts';
import { mayHaveHints } from './hinted_reasons.ts';
import { exemptHosts, reachOf, type RunReach } from './hosts/run_reach.ts';
import { openBox } from './open_box.ts';
import { NO_RELAY, openListeners } from './run_listeners.ts';
import {
  notStarted,
  rethrowNotStarted,
  type RunInSession,
  type RunOptions,
  type TypedOptions,
  typedOf,
} from './run_options.ts';
import { type CommandEnd, recordOf, writeRecord } from './run_record.ts';
import {
  type CredentialVariable,
  type ScreenedEnvironment,
  screenEnvironment,
  tellOfWithheld,
} from './screen_environment.ts';
import { warnOfServersOutside } from './servers_outside.ts';
import { openSession, type OpenSession, policyVersion } from './session_access.ts';
import { becomeCommand, canBecome } from './waiter.ts';

/** Runs a command in a session of its own; gives its exit status, and the session if the command was started. */
export async function runInSession(
  call: Call<RunOptions>,
  signals: SignalSource,
  wanted: RunInSession,
): Promise<{ readonly status: number; readonly sessionId: string | null }> {
  const typed = await typedOf(call);
  const reach = reachOf(call, wanted);
  // First, because it starts while everything else is asked for.
  const box = await openBox(call, wanted, reach.egress);
  try {
    const secrets = wanted.secrets ?? (await chooseSecrets(call).catch(rethrowNotStarted));
    // Last, so that what was stored while a person was asked is included.
    const [screened, minPolicyVersion] = await askControlPlane(call).catch(rethrowNotStarted);
    const exempt = await exemptHosts(call, wanted, reach).catch(rethrowNotStarted);
    const ready = { typed, reach, screened, minPolicyVersion, secrets, exempt, box };
    return await runReady(call, signals, wanted, ready);
  } finally {
    await box?.close();
  }
}

interface ReadyRun {
  readonly typed: TypedOptions;
  readonly reach: RunReach;
  readonly screened: ScreenedEnvironment;
  readonly minPolicyVersion: number | null;
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
  const { session, end } = await open(call, {
    ...ready,
    kept: ready.screened.kept,
    byDefault: wanted.name,
    login: wanted.login,
    hasGateway: wanted.sandbox?.hasGateway === true,
  });
  const hints = {
    sessionId: session.sessionId,
    hadPlaceholders: session.sentinels.length > 0,
    expectedHosts: wanted.expectedHosts,
    isCounted: wanted.isCounted === true,
  };
  let ended: ChildEnd;
  let reasons: readonly string[] | null = null;
  try {
    ended = await runWithListeners(call, signals, wanted, { ...ready, session, hints });
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

/** Runs the command with the listeners of its session, which are closed when it has ended or was not started. */
async function runWithListeners(
  call: Call<RunOptions>,
  signals: SignalSource,
  wanted: RunInSession,
  { session, screened, exempt, box, hints }: ReadyRun & Pick<OpenSession, 'session'> & { readonly hints: CommandEnd },
): Promise<ChildEnd> {
  const [relay, metadata] = await openListeners(call, session, box);
  try {
    const seen =
      box === null ? { ...session, ...(metadata !== null && { metadataHost: metadata.host }) } : box.enter(session);
    const environment = { ...sessionEnvironment(screened.env, seen, exempt), ...relay.variables };
    const env = wanted.environment?.(environment, seen) ?? environment;
    for (const { env: name } of session.sentinels.filter((sentinel) => !mayHoldSentinel(sentinel.env))) {
      call.print.warn(`the placeholder cannot be handed out in ${JSON.stringify(name)}: choose another --sentinel-env`);
    }
    tellOfWithheld(call, screened, session.sentinels.map((sentinel) => sentinel.env).filter(mayHoldSentinel));
    const needsUs = relay !== NO_RELAY || metadata !== null || box !== null || wanted.beforeEnd !== undefined;
    return await runTheCommand(call, signals, { ...wanted, env, box, atEnd: needsUs ? null : hints });
  } finally {
    await Promise.all([relay.close(), metadata?.close()]);
  }
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

interface NewRun {
  readonly typed: TypedOptions;
  readonly reach: RunReach;
  readonly minPolicyVersion: number | null;
  readonly kept: readonly CredentialVariable[];
  readonly byDefault: string | undefined;
  readonly secrets: readonly ChosenSecret[];
  readonly login: RunInSession['login'];
  readonly hasGateway: boolean;
  readonly box: HostSandbox | null;
}

/** Opens the session; failures before the command starts have their own exit code. */
async function open(
  call: Call<RunOptions>,
  { typed, reach, minPolicyVersion, kept, byDefault, secrets, login, hasGateway, box }: NewRun,
): Promise<OpenSession> {
  const { allowList, plainHttp, otherPorts } = reach;
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
      scopes: typed.scopes,
      limits: typed.limits,
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
