import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { PendingLogin } from '../../shared/wire/pending_logins.ts';
import { controlClient, sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isOnPath } from '../launch/client_trust.ts';
import { runInSession } from '../launch/run_in_session.ts';
import { readPlace } from '../seal/credential_places.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';
import {
  accountBindings,
  accountOf,
  accountReference,
  bindAccount,
  discardLogin,
  findAccount,
  installAccount,
  openLogin,
  showLogin,
  storeLoginTokens,
  unbindAccount,
} from './account_login.ts';
import { ACCOUNT } from './agent_names.ts';
import { agentPath } from './agent_files.ts';
import { readStored } from './agent_login.ts';
import type { AgentAccount, AgentProfile } from './agent_profile.ts';
import { agentEnvironment } from './agent_run.ts';
import { findProfile } from './agent_profiles.ts';
import { type AgentLoginOptions, placesOf } from './agent_setup.ts';
import { ensureStarted } from './agent_start.ts';
import { isRefusal, underLock, updatedAt } from './import_login.ts';
import { LOGIN_FORMATS } from './login_formats.ts';
import { makePlaceholder } from './placeholder_shape.ts';

/** The part of the sidecar's answer about a session that says what became of its login. */
const loginSession = z.object({
  login: z.object({ state: z.enum(['waiting', 'held', 'not_stored', 'withheld', 'contested']) }),
});
type LoginState = z.output<typeof loginSession>['login']['state'];

/**
 * `svc login AGENT --as account`: runs the agent's own login in a session in which its tokens go to the control plane, and the
 * agent gets placeholders. Nothing uses the tokens before a person has seen whose account it is.
 */
export async function captureLogin(call: Call<AgentLoginOptions>, signals: SignalSource): Promise<undefined> {
  const { context, options, print } = call;
  const { profile } = findProfile(placesOf(call), call.args[0] ?? '');
  const account = accountOf(profile);
  const args = argsOf(options, profile, account);
  if (!context.interactive && options.yes !== true) {
    throw new CliError(EXIT.usage, 'nobody can be asked here whose account it is: nothing was changed', [
      `To store it without a question: svc login ${profile.name} --as account --yes`,
    ]);
  }
  if (!isOnPath(profile.command, context.env['PATH'] ?? '')) {
    throw new CliError(EXIT.notFound, `${profile.title} is not installed: ${profile.command} is not on PATH`, [
      `Install it: ${profile.install}`,
    ]);
  }
  await ensureStarted(call);
  const client = controlClient(context, options);
  const login = await openLogin(client, profile, account);
  const placeholder = makePlaceholder(account.placeholder, randomBytes);
  const before = await readText(call, account);
  print.note(`svc: log in with ${profile.title} now. Its tokens go to svc, and ${profile.title} gets placeholders.`);
  try {
    const state = await runLogin(call, signals, { profile, args, login, placeholder }).catch((error: unknown) => {
      // The exit status of `svc run` for a session that could not be opened says nothing here.
      throw error instanceof CliError ? new CliError(EXIT.failed, error.message, error.fixes) : error;
    });
    if (state !== 'held') throw notLoggedIn(profile, state);
    await confirm(call, client, profile, account, login);
    await underLock(homeOf(context, options), () => store(client, profile, account, login, placeholder));
  } catch (error) {
    await discardLogin(client, login).catch(() =>
      print.warn(`the login could not be deleted: nothing uses it, and it ends at ${login.expires_at}`),
    );
    await warnOfTokens(call, profile, { account, placeholder, before });
    throw error;
  }
  await checkFile(call, profile, account, placeholder);
  await warnOfTokens(call, profile, { account, placeholder, before });
  print.data(
    { agent: profile.name, login: ACCOUNT, credential_ref: accountReference(profile) },
    () => `${profile.title}: ${accountReference(profile)} (${account.title}) for ${account.hosts.join(', ')}\n`,
  );
}

function argsOf(options: AgentLoginOptions, { title }: AgentProfile, { log_in }: AgentAccount): readonly string[] {
  const { stdin, file, secret, device } = options;
  if (stdin === true || file !== undefined || secret !== undefined) {
    throw new CliError(EXIT.usage, '--as account takes no credential: the agent asks for one itself');
  }
  if (device !== true) return log_in.args;
  if (log_in.device_args !== undefined) return log_in.device_args;
  throw new CliError(EXIT.usage, `${title} has no login with a code for another device`);
}

interface Run {
  readonly profile: AgentProfile;
  readonly args: readonly string[];
  readonly login: PendingLogin;
  readonly placeholder: string;
}

/** Runs the agent's login in its session. */
async function runLogin(
  call: Call<AgentLoginOptions>,
  signals: SignalSource,
  { profile, args, login, placeholder }: Run,
): Promise<LoginState> {
  const { home, control, json } = call.options;
  const global: GlobalOptions = {
    ...(home !== undefined && { home }),
    ...(control !== undefined && { control }),
    ...(json !== undefined && { json }),
  };
  let state: LoginState = 'waiting';
  await runInSession({ ...call, options: global }, signals, {
    command: profile.command,
    args,
    name: `login-${profile.name}`,
    expectedHosts: [...profile.hosts, ...accountOf(profile).hosts],
    // No choice of a folder: the session is for the login only.
    secrets: [],
    login: { id: login.id, placeholder },
    environment: (environment) => agentEnvironment(environment, profile, []),
    async beforeEnd(sessionId) {
      const sidecar = sidecarClient(call.context, call.options);
      const session = await sidecar.call('GET', `/v1/sandbox-proxy/sessions/${sessionId}`, loginSession);
      state = session.login.state;
    },
  });
  return state;
}

function notLoggedIn({ name, title, account }: AgentProfile, state: Exclude<LoginState, 'held'>): CliError {
  const again = `Try again: svc login ${name} --as account`;
  if (state === 'waiting') {
    return new CliError(EXIT.failed, `${title} did not log in through svc: nothing was stored`, [again]);
  }
  if (state === 'withheld') {
    const message = `a reply to the login of ${title} was withheld or lost: nothing was stored, and nobody has its tokens`;
    return new CliError(EXIT.failed, message, [
      'If the provider accepted the login, end it in the settings of the account.',
      again,
    ]);
  }
  if (state === 'not_stored') {
    return new CliError(EXIT.failed, `the tokens of ${title} could not be stored, and nobody has them now`, [again]);
  }
  return new CliError(
    EXIT.failed,
    'two programs asked for the tokens of a login in this session, so it is not certain whose they are: they were deleted',
    [
      again,
      `If you did not begin twice, log in without svc (${account?.get ?? title}) and look at the account's sessions.`,
    ],
  );
}

/** Shows whose account it is, and asks. */
async function confirm(
  { context, options, print }: Call<AgentLoginOptions>,
  client: HttpClient,
  profile: AgentProfile,
  account: AgentAccount,
  login: PendingLogin,
): Promise<void> {
  const { account: named } = await showLogin(client, login);
  const since = updatedAt(await findAccount(client, profile));
  const texts = [named?.who ?? null, (named?.plan ?? null) === null ? null : `plan ${named?.plan}`];
  const shown = texts.flatMap((text) => (text === null ? [] : [toPrintable(text)]));
  const lines = [
    `${profile.title} logged in${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`,
    ...((named?.who ?? null) === null ? ['  The provider did not say whose account it is.'] : []),
    `  Its tokens go only to ${account.hosts.join(', ')} and ${new URL(account.token_url).host}. Every session of svc can use the account.`,
    ...(named?.may_make_keys === true ? ['  It may make lasting API keys; svc refuses such requests.'] : []),
    ...(since === null
      ? []
      : [
          `  It replaces the login that was stored in svc at ${since}. Other machines need: svc login ${profile.name} --as account`,
        ]),
  ];
  for (const text of lines) print.note(text);
  if (options.yes === true || (await askYes(context, 'Is this your account, and should svc keep its login?'))) return;
  throw new CliError(EXIT.failed, 'nothing was stored: svc has deleted the tokens', [
    `They may still be valid: end the login in the settings of the account.`,
    `${profile.title} has placeholders that open nothing: log in again.`,
  ]);
}

/** The connector, then the tokens, then the bindings; the earlier login is bound again if the tokens are refused. */
async function store(
  client: HttpClient,
  profile: AgentProfile,
  account: AgentAccount,
  login: PendingLogin,
  placeholder: string,
): Promise<void> {
  const known = accountBindings(profile, (await readStored(client)).bindings);
  const connector = await installAccount(client, profile, account);
  await unbindAccount(client, known);
  try {
    await storeLoginTokens(client, login, connector);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (!isRefusal(error))
      throw halfStored(profile, error, 'the tokens of the new login may be in svc', known.length > 0);
    for (const { host, sentinel } of known) await bindAccount(client, profile, [host], sentinel?.value ?? placeholder);
    throw error;
  }
  try {
    await bindAccount(client, profile, account.hosts, placeholder);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw halfStored(profile, error, 'the tokens of the new login are in svc', known.length > 0);
  }
}

/** The error when it is not known what is stored, or no host is bound: nothing uses the tokens, and nobody else has them. */
function halfStored(
  profile: AgentProfile,
  { exitCode, message }: CliError,
  what: string,
  hadEarlier: boolean,
): CliError {
  const earlier = hadEarlier ? ', and the earlier login is not used any more' : '';
  return new CliError(exitCode, `${message}: ${what}, and no session uses them${earlier}`, [
    `Log in again: svc login ${profile.name} --as account`,
    `Or delete what is stored: svc connector rm login/${profile.name}`,
  ]);
}

/** The text of the agent's file; null if it has none. */
async function readText({ context }: Call<object>, { file }: AgentAccount): Promise<string | null> {
  const place = await readPlace(agentPath(context, file));
  return place?.kind === 'text' ? place.text : null;
}

/** The agent's file, before the agent was run. */
interface LookedAt {
  readonly account: AgentAccount;
  readonly placeholder: string;
  readonly before: string | null;
}

/** Whatever became of the login: the agent may have got tokens in a way that svc did not see. */
async function warnOfTokens(
  call: Call<object>,
  { name, title }: AgentProfile,
  { account, placeholder, before }: LookedAt,
): Promise<void> {
  const text = await readText(call, account);
  if (text === null || text === before) return;
  const format = LOGIN_FORMATS[account.file.format];
  const json = parseJson(text);
  const members = typeof json === 'object' && json !== null ? { ...json } : {};
  const access = format.access(members);
  if (access === null || access === placeholder || format.hasPlaceholders(members)) return;
  const path = agentPath(call.context, account.file);
  call.print.warn(
    `${path} has tokens of a login that svc did not capture: ${title} uses them without svc. Move them into svc (svc login ${name} --import), or end the login in the settings of the account.`,
  );
}

/** The agent wrote its file itself, with what it got. */
async function checkFile(
  { context, print }: Call<object>,
  { title }: AgentProfile,
  { file }: AgentAccount,
  placeholder: string,
): Promise<void> {
  const path = agentPath(context, file);
  const place = await readPlace(path);
  const json = place?.kind === 'text' ? parseJson(place.text) : null;
  const members = typeof json === 'object' && json !== null ? { ...json } : {};
  const format = LOGIN_FORMATS[file.format];
  if (!format.hasPlaceholders(members) || format.access(members) !== placeholder) {
    print.warn(`${path} does not have the placeholders of this login: ${title} may keep its login elsewhere`);
  }
  const further = format.furtherCredentials(members);
  if (further.length > 0) print.warn(`${path} holds a credential besides: ${further.join(', ')}`);
}
