import { randomBytes } from 'node:crypto';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { PendingLogin } from '../../shared/wire/pending_logins.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isOnPath } from '../launch/client_trust.ts';
import { readPlace } from '../seal/credential_places.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';
import {
  accountBindings,
  accountOf,
  accountReference,
  bindAccount,
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
import { type Json, LOGIN_FORMATS } from './login_formats.ts';
import { discardOnFailure, requirePerson, runLogin, type SessionOfLogin } from './login_session.ts';
import { makePlaceholder } from './placeholder_shape.ts';

/**
 * `svc login AGENT --as account`: runs the agent's own login in a session in which its tokens go to the control plane, and the
 * agent gets placeholders. Nothing uses the tokens before a person has seen whose account it is.
 */
export async function captureLogin(call: Call<AgentLoginOptions>, signals: SignalSource): Promise<undefined> {
  const { context, options, print } = call;
  const { profile } = findProfile(placesOf(call), call.args[0] ?? '');
  const account = accountOf(profile);
  const args = argsOf(options, profile, account);
  requirePerson(call, `svc login ${profile.name} --as account`);
  if (!isOnPath(profile.command, context.env['PATH'] ?? '')) {
    throw new CliError(EXIT.notFound, `${profile.title} is not installed: ${profile.command} is not on PATH`, [
      `Install it: ${profile.install}`,
    ]);
  }
  await ensureStarted(call);
  const client = controlClient(context, options);
  const { login, isRevocable } = await openLogin(client, profile, account);
  const placeholder = makePlaceholder(account.placeholder, randomBytes);
  const before = await readText(call, account);
  print.note(`svc: log in with ${profile.title} now. Its tokens go to svc, and ${profile.title} gets placeholders.`);
  const run = {
    program: profile.name,
    command: profile.command,
    args,
    expectedHosts: [...profile.hosts, ...account.hosts],
    login,
    placeholder,
    environment: (environment: Record<string, string>) => agentEnvironment(environment, profile, []),
  };
  try {
    await discardOnFailure(call, client, login, async () => {
      const { state } = await runLogin(call, signals, run);
      if (state !== 'held') throw notLoggedIn(profile, state);
      await confirm(call, client, { profile, account, login, isRevocable });
      await underLock(homeOf(context, options), () => store(client, profile, account, login, placeholder));
    });
  } catch (error) {
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

function argsOf(options: AgentLoginOptions, profile: AgentProfile, { log_in }: AgentAccount): readonly string[] {
  const { title } = profile;
  const { stdin, file, secret, device } = options;
  if (stdin === true || file !== undefined) {
    throw new CliError(EXIT.usage, '--as account takes no credential: the agent asks for one itself');
  }
  if (secret !== undefined) throw oneAccountError(profile);
  if (device !== true) return log_in.args;
  if (log_in.device_args !== undefined) return log_in.device_args;
  throw new CliError(EXIT.usage, `${title} has no login with a code for another device`);
}

/** The agent's file holds one login (decision 0065). A second account is a key, or a setup token. */
function oneAccountError({ name, title, logins }: AgentProfile): CliError {
  return new CliError(EXIT.usage, `svc keeps one own login of ${title}: --secret is for keys and tokens`, [
    `To log in with another account instead: svc login ${name} --as account`,
    ...logins.map(
      (login) => `To add a second account by ${login.title}: svc login ${name} --as ${login.name} --secret PATH`,
    ),
  ]);
}

function notLoggedIn(
  { name, title, account }: AgentProfile,
  state: Exclude<SessionOfLogin['state'], 'held'>,
): CliError {
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

interface CapturedLogin {
  readonly profile: AgentProfile;
  readonly account: AgentAccount;
  readonly login: PendingLogin;
  readonly isRevocable: boolean;
}

/** Shows whose account it is, and asks. */
async function confirm(
  { context, options, print }: Call<AgentLoginOptions>,
  client: HttpClient,
  { profile, account, login, isRevocable }: CapturedLogin,
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
    !isRevocable || since !== null
      ? 'They may still be valid: end the login in the settings of the account.'
      : 'svc asks the provider to revoke them. What it answers: svc audit list --type control.connector.',
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

function membersOf(text: string | null): Json {
  const json = text === null ? null : parseJson(text);
  return typeof json === 'object' && json !== null ? { ...json } : {};
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
  const members = membersOf(text);
  const access = format.access(members);
  if (access === null || access === placeholder || format.hasPlaceholders(members)) return;
  const path = agentPath(call.context, account.file);
  call.print.warn(
    `${path} has tokens of a login that svc did not capture: ${title} uses them without svc. Move them into svc (svc login ${name} --import), or end the login in the settings of the account.`,
  );
}

/** The agent wrote its file itself, with what it got. */
async function checkFile(
  call: Call<object>,
  { title }: AgentProfile,
  account: AgentAccount,
  placeholder: string,
): Promise<void> {
  const path = agentPath(call.context, account.file);
  const members = membersOf(await readText(call, account));
  const format = LOGIN_FORMATS[account.file.format];
  if (!format.hasPlaceholders(members) || format.access(members) !== placeholder) {
    call.print.warn(`${path} does not have the placeholders of this login: ${title} may keep its login elsewhere`);
  }
  const further = format.furtherCredentials(members);
  if (further.length > 0) call.print.warn(`${path} holds a credential besides: ${further.join(', ')}`);
}
