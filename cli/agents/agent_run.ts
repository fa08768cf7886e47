import { existsSync, readFileSync, statSync } from 'node:fs';
import { parseJson } from '../../shared/model/json.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { SessionAccess } from '../../sandbox/launch/session_environment.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { chooseSecrets } from '../launch/chosen_secrets.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import { isOnPath } from '../launch/client_trust.ts';
import { runInSession } from '../launch/run_in_session.ts';
import type { RunOptions } from '../launch/run_options.ts';
import { ACCOUNT } from './agent_names.ts';
import { agentPath, prepareAgentFiles } from './agent_files.ts';
import { requireLogin, readStoredIfReachable, findReadyLogins, type ReadyLogin } from './agent_login.ts';
import type { AgentProfile } from './agent_profile.ts';
import { agentSandbox } from './agent_sandbox.ts';
import { LOGIN_FORMATS } from './login_formats.ts';
import { findProfile } from './agent_profiles.ts';
import { askForLogin, placesOf } from './agent_setup.ts';
import { ensureStarted } from './agent_start.ts';
import { printSummary } from './run_summary.ts';

/** `svc NAME` and `svc run NAME`: runs an agent with what it needs; the exit status is the agent's. */
export async function runAgent(
  call: Call<RunOptions>,
  signals: SignalSource,
  name: string,
  args: readonly string[],
): Promise<number> {
  const { profile } = findProfile(placesOf(call), name);
  if (!isOnPath(profile.command, call.context.env['PATH'] ?? '')) {
    throw new CliError(EXIT.notFound, `${profile.title} is not installed: ${profile.command} is not on PATH`, [
      `Install it: ${profile.install}`,
    ]);
  }
  const taken = call.options.keepEnv?.find((each) => removedVariables(profile).has(each));
  if (taken !== undefined) {
    throw new CliError(
      EXIT.notStarted,
      `--keep-env ${taken}: ${profile.title} would use it instead of its placeholder`,
      [`To run it with that variable: svc run --keep-env ${taken} -- ${profile.command}`],
    );
  }
  const { logins, secrets } = await prepare(call, profile);
  const sandbox = agentSandbox(call, profile);
  const { status, sessionId } = await runInSession(call, signals, {
    command: profile.command,
    args,
    name: profile.name,
    expectedHosts: profile.hosts,
    secrets,
    sandbox,
    isCounted: true,
    environment: (environment, session) =>
      agentEnvironment(environment, profile, logins ?? listHandedOut(profile, session, call.options.login ?? null)),
  });
  if (sessionId !== null) await printSummary(call, sessionId);
  return status;
}

/** Everything before the session. Its failures have the exit code of a command that svc could not start. */
async function prepare(
  call: Call<RunOptions>,
  profile: AgentProfile,
): Promise<{ readonly logins: readonly ReadyLogin[] | null; readonly secrets: readonly ChosenSecret[] }> {
  try {
    const name = call.options.login ?? null;
    const wanted = name === null || name === ACCOUNT ? name : requireLogin(profile, name).name;
    await ensureStarted(call);
    const secrets = await chooseSecrets(call, profile);
    const logins = await loginsToUse(call, profile, { wanted, secrets });
    for (const { login, placeholder } of logins ?? []) {
      for (const { path, why } of await prepareAgentFiles(call.context, profile, login.name, placeholder)) {
        call.print.warn(`${path} ${why}, so it was not changed: ${profile.title} may ask about its placeholder`);
      }
    }
    warnOfCredentialFiles(call, profile, logins ?? []);
    return { logins, secrets };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(EXIT.notStarted, error.message, error.fixes);
  }
}

/** The logins for this run, asked for if there is none; null if the control plane is away, and the sidecar's policy decides. */
export async function loginsToUse(
  call: Call<object>,
  profile: AgentProfile,
  { wanted, secrets }: { readonly wanted: string | null; readonly secrets: readonly ChosenSecret[] },
): Promise<readonly ReadyLogin[] | null> {
  if (profile.logins.length === 0) return [];
  const stored = await readStoredIfReachable(() => controlClient(call.context, call.options));
  if (stored === null) return null;
  const ready = findReadyLogins(profile, stored, secrets)
    .filter(({ login }) => wanted === null || login.name === wanted)
    .filter((each) => each.login.name !== ACCOUNT || isInFile(call, profile, each));
  if (wanted === ACCOUNT && ready.length === 0) throw noAccountError(profile);
  if (ready.length > 0) return profile.several ? ready : ready.slice(0, 1);
  const asked =
    wanted === null ? profile : { ...profile, logins: profile.logins.filter(({ name }) => name === wanted) };
  return [await askForLogin(call, asked, stored)];
}

/** Whether the agent's file has the placeholders of its own login. After its own logout it has not. */
function isInFile({ context }: Call<object>, { account }: AgentProfile, login: ReadyLogin): boolean {
  const path = account === undefined ? '' : agentPath(context, account.file);
  return existsSync(path) && !holdsOther(path, [login]);
}

function noAccountError({ name, title, account }: AgentProfile): CliError {
  if (account === undefined) return new CliError(EXIT.usage, `svc does not know the own login of ${title}`);
  return new CliError(EXIT.failed, `the own login of ${title} is not in svc, or its file has no placeholders`, [
    `Log in with ${title} itself (${account.get}), then: svc login ${name} --import`,
  ]);
}

/** The logins whose placeholders are in the session's variables, or the one that is wanted. */
export function listHandedOut(
  profile: AgentProfile,
  session: Pick<SessionAccess, 'sentinels'>,
  wanted: string | null,
): readonly ReadyLogin[] {
  const logins = profile.logins.filter(({ name }) => wanted === null || name === wanted);
  const found = logins.flatMap((login) =>
    session.sentinels
      .filter(({ env }) => env === login.variable)
      .map(({ value }) => ({ login, placeholder: value, reference: '' })),
  );
  return profile.several ? found : found.slice(0, 1);
}

/**
 * The environment of the agent: a placeholder for each login that it uses. The variables of its other logins are taken away,
 * because a credential that the user has there would be the agent's to read.
 */
export function agentEnvironment(
  session: Readonly<Record<string, string>>,
  profile: AgentProfile,
  logins: readonly ReadyLogin[],
): Record<string, string> {
  const removed = removedVariables(profile);
  const kept = Object.entries(session).filter(([name]) => !removed.has(name));
  const placeholders = logins.flatMap(({ login: { variable, also }, placeholder }) =>
    [...(variable === null ? [] : [variable]), ...also].map((name) => [name, placeholder] as const),
  );
  return { ...profile.variables, ...Object.fromEntries(kept), ...Object.fromEntries(placeholders) };
}

export function removedVariables({ clears, logins }: AgentProfile): ReadonlySet<string> {
  return new Set([...clears, ...logins.flatMap(({ variable, also }) => [variable, ...also])]);
}

/** A login of the agent's own is a credential that the agent can read, and it may use it instead of the placeholder. */
function warnOfCredentialFiles(call: Call, profile: AgentProfile, logins: readonly ReadyLogin[]): void {
  for (const file of profile.credential_files) {
    const path = agentPath(call.context, file);
    if (!holdsOther(path, logins, file.tokens) || hasOwnPlaceholders(path, profile)) continue;
    call.print.warn(`${path} holds a login of ${profile.title} itself: the agent can read it and may use it`);
  }
}

/** Whether the agent's own login in the file is one of placeholders, which the agent may read. */
function hasOwnPlaceholders(path: string, { account }: AgentProfile): boolean {
  if (account === undefined) return false;
  const json = parseJson(readFileSync(path, 'utf8'));
  if (typeof json !== 'object' || json === null) return false;
  return LOGIN_FORMATS[account.file.format].hasPlaceholders({ ...json });
}

/** Whether there is a file that does not have one of these placeholders, which svc has then not written. */
function holdsOther(path: string, logins: readonly ReadyLogin[], tokens?: readonly string[]): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return false;
    if (!stats.isFile() || stats.size > MOST_READ_BYTES) return true;
    const text = readFileSync(path, 'utf8');
    const mayHold = tokens === undefined || tokens.some((token) => text.includes(token));
    return mayHold && !logins.some(({ placeholder }) => text.includes(placeholder));
  } catch {
    // The agent runs as the same user, so it cannot read the file either.
    return false;
  }
}

/** A file that svc writes is far smaller. */
const MOST_READ_BYTES = 64 * 1024;
