import { relative, resolve } from 'node:path';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { ERROR_STATUS } from '../../shared/wire/errors.ts';
import type { ConnectorSummary, InstallReply } from '../../shared/wire/connectors/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isInside, readPlace } from '../seal/credential_places.ts';
import { rewriteFile } from '../seal/rewrite_file.ts';
import { changeUnderLock } from '../launch/hosts/allowed_hosts.ts';
import { homeOf } from '../up/home.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import {
  accountOf,
  accountReference,
  accountBindings,
  bindAccount,
  choosePlaceholder,
  findAccount,
  forgetAccount,
  installAccount,
  storeAccount,
  unbindAccount,
} from './account_login.ts';
import { ACCOUNT } from './agent_names.ts';
import { agentPath } from './agent_files.ts';
import { readStored } from './agent_login.ts';
import type { AgentAccount, AgentProfile } from './agent_profile.ts';
import { ensureStarted } from './agent_start.ts';
import { type FoundLogin, type Json, LOGIN_FORMATS } from './login_formats.ts';

/** An agent's file with its login. */
interface LoginFile {
  readonly path: string;
  readonly text: string;
  readonly json: Json;
}

interface ImportOptions {
  readonly yes?: true;
  readonly file?: string;
}

/**
 * `svc login AGENT --import`: moves the agent's own login into svc, and leaves placeholders in its file. A refresh token that
 * rotates has one holder: while the tokens are in both places no binding refers to them, so svc neither uses nor refreshes them.
 * They are taken back if the file cannot be written. The bindings come last.
 */
export async function importLogin(call: Call<ImportOptions>, profile: AgentProfile): Promise<undefined> {
  const { context, options, print } = call;
  const account = accountOf(profile);
  const file = await readLoginFile(call, profile, account);
  const isDone = LOGIN_FORMATS[account.file.format].hasPlaceholders(file.json);
  const found = isDone ? null : readLogin(file, profile, account);
  await ensureStarted(call);
  const client = controlClient(context, options);
  const stored = await findAccount(client, profile);
  if (found === null) await completeImport(call, client, profile, account, file, stored);
  else {
    for (const line of importLines(call, profile, account, file, found, stored)) print.note(line);
    await confirm(call, profile);
    await underLock(homeOf(context, options), async () => {
      const now = [(await readLoginFile(call, profile, account)).text, updatedAt(await findAccount(client, profile))];
      if (now[0] !== file.text || now[1] !== updatedAt(stored)) {
        throw new CliError(EXIT.failed, 'the login was changed meanwhile, in its file or in svc: nothing was changed', [
          `Run again: svc login ${profile.name} --import`,
        ]);
      }
      await moveLogin(call, client, { profile, account, file, found, stored });
    });
  }
  print.data(
    { agent: profile.name, login: ACCOUNT, credential_ref: accountReference(profile), file: file.path },
    () => `${profile.title}: ${accountReference(profile)} (${account.title}) for ${account.hosts.join(', ')}\n`,
  );
}

export function updatedAt(stored: ConnectorSummary | null): string | null {
  return stored?.credential.updated_at ?? null;
}

/** Two at once could each take back what the other has stored. */
export function underLock(home: string, work: () => Promise<void>): Promise<void> {
  const busy = new CliError(EXIT.failed, 'another login is being stored: nothing was changed');
  return changeUnderLock(home, 'import.lock', work, busy);
}

/** An import that ended before its bindings were made: the file has its placeholders, and svc the tokens. */
async function completeImport(
  { context, options }: Call<ImportOptions>,
  client: HttpClient,
  profile: AgentProfile,
  account: AgentAccount,
  file: LoginFile,
  stored: ConnectorSummary | null,
): Promise<void> {
  await underLock(homeOf(context, options), async () => {
    const known = accountBindings(profile, (await readStored(client)).bindings);
    const placeholder = LOGIN_FORMATS[account.file.format].access(file.json);
    const missing = account.hosts.filter((host) => !known.some((record) => record.host === host));
    const isOther = placeholder === null || known.some(({ sentinel }) => sentinel?.value !== placeholder);
    if (updatedAt(stored) === null || isOther || missing.length === 0) readLogin(file, profile, account);
    else await bindAccount(client, profile, missing, placeholder);
  });
}

async function readLoginFile(
  { context, options }: Call<ImportOptions>,
  { title }: AgentProfile,
  { file, get }: AgentAccount,
): Promise<LoginFile> {
  const path = agentPath(context, file);
  const named = options.file === undefined ? null : resolve(context.workingDirectory, options.file);
  if (named !== null && named !== resolve(path)) {
    throw new CliError(EXIT.usage, `the login of ${title} is in ${path}: --file names another file`);
  }
  const mover = moverOf(context.env, file);
  if (mover !== null && named === null && options.yes === true) {
    throw new CliError(EXIT.usage, `${mover} leads to ${path}: nothing was changed`, [
      `If that is your login, name the file: --file ${path}`,
    ]);
  }
  const place = await readPlace(path);
  if (place === null) {
    throw new CliError(EXIT.failed, `${title} has no login in ${path}`, [
      `Log in with ${title} first (${get}). On macOS it may keep its login in the keychain, which svc does not read.`,
    ]);
  }
  const isBelowHome = !relative(context.userHome, path).startsWith('..');
  if (!(await isInside(isBelowHome ? context.userHome : '/', resolve(path)))) {
    throw new CliError(EXIT.failed, `a folder of ${path} is a symbolic link: nothing was changed`);
  }
  if (place.kind === 'left') throw new CliError(EXIT.failed, `${path} ${place.why}: nothing was changed`);
  const json = parseJson(place.text);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new CliError(EXIT.failed, `${path} is no JSON object: nothing was changed`);
  }
  return { path, text: place.text, json: { ...json } };
}

function readLogin({ path, json }: LoginFile, profile: AgentProfile, account: AgentAccount): FoundLogin {
  const found = LOGIN_FORMATS[account.file.format].read(json, account.client_id);
  if (found.ok) return found.value;
  throw new CliError(EXIT.failed, `${path} ${found.error}: nothing was changed`, [
    `Log in with ${profile.title} itself (${account.get}), then: svc login ${profile.name} --import`,
  ]);
}

/** The variable that leads to another file than the usual one. */
function moverOf(env: CliContext['env'], { moved_by: name }: AgentAccount['file']): string | null {
  return name === undefined || (env[name] ?? '') === '' ? null : name;
}

function importLines(
  { context }: Call<object>,
  { title }: AgentProfile,
  account: AgentAccount,
  { path }: LoginFile,
  { who, plan, others, removed, mayMakeKeys }: FoundLogin,
  stored: ConnectorSummary | null,
): readonly string[] {
  const mover = moverOf(context.env, account.file);
  const since = updatedAt(stored);
  const shown = [who, plan === null ? null : `plan ${plan}`].flatMap((text) =>
    text === null ? [] : toPrintable(text),
  );
  return [
    `${path} holds a login of ${title}${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`,
    `  Its tokens are stored encrypted in svc, which refreshes them from then on. They go only to ${account.hosts.join(', ')} and ${new URL(account.token_url).host}.`,
    '  The file gets placeholders. Every session of svc can use the account of this login.',
    ...(mover === null ? [] : [`  ${mover} led to this file: check that the login in it is yours.`]),
    ...(who === null ? ['  The file does not say whose account it is.'] : []),
    ...(since === null ? [] : [`  It replaces the login that was stored in svc at ${since}, on every machine.`]),
    ...(mayMakeKeys ? ['  It may make lasting API keys; svc refuses such requests.'] : []),
    ...(removed.length === 0 ? [] : [`  Removed from the file, and not stored: ${removed.join(', ')}.`]),
    ...(others.length === 0
      ? []
      : [`  Stays in the file as it is: ${others.map((name) => toPrintable(name)).join(', ')}.`]),
    `  Quit ${title} first: one that runs still has the tokens, and would end the login by refreshing it.`,
    `  To go back, log in again with ${title} itself: ${account.get}`,
  ];
}

async function confirm({ context, options }: Call<ImportOptions>, { name }: AgentProfile): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive) {
    throw new CliError(EXIT.usage, 'nobody can be asked here: nothing was changed', [
      `To import it without a question: svc login ${name} --import --yes`,
    ]);
  }
  if (!(await askYes(context, 'Import it?'))) throw new CliError(EXIT.failed, 'nothing was changed');
}

/** What is moved where. */
interface Move {
  readonly profile: AgentProfile;
  readonly account: AgentAccount;
  readonly file: LoginFile;
  readonly found: FoundLogin;
  /** The connector before, which may keep an earlier login. */
  readonly stored: ConnectorSummary | null;
}

async function moveLogin({ context }: Call<object>, client: HttpClient, move: Move): Promise<void> {
  const { profile, account, file, found } = move;
  const known = accountBindings(profile, (await readStored(client)).bindings);
  const placeholder = choosePlaceholder(account, known);
  const connector = await installAccount(client, profile, account);
  await unbindAccount(client, known);
  try {
    await storeAccount(client, account, connector, found);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (!isRefusal(error)) throw await giveUp(client, move, connector, error.message);
    // Nothing was stored: an earlier login is as it was, and keeps its placeholder.
    const hosts = known.map(({ host }) => host);
    await bindAccount(client, profile, hosts, placeholder);
    throw error;
  }
  const written = LOGIN_FORMATS[account.file.format].write(file.json, placeholder, context.now());
  try {
    await rewriteFile(file.path, file.text, `${JSON.stringify(written, null, 2)}\n`);
  } catch (error) {
    throw await giveUp(client, move, connector, error instanceof Error ? error.message : String(error));
  }
  try {
    await bindAccount(client, profile, account.hosts, placeholder);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(error.exitCode, `${error.message}: the tokens are in svc, and ${file.path} has placeholders`, [
      `To bind the hosts, run again: svc login ${profile.name} --import`,
    ]);
  }
}

/** The control plane answered that it did not store anything. Any other error leaves that open. */
export function isRefusal({ apiCode }: CliError): boolean {
  const status = Object.entries(ERROR_STATUS).find(([code]) => code === apiCode)?.[1] ?? 0;
  return status >= 400 && status < 500;
}

/** Takes the tokens back out of svc. Returns the error, which says who has them now. */
async function giveUp(
  client: HttpClient,
  { profile, account, file, stored }: Move,
  connector: InstallReply,
  why: string,
): Promise<CliError> {
  if (await forgetAccount(client, connector)) {
    const earlier = updatedAt(stored) === null ? '' : '; the login that was stored before is gone';
    return new CliError(EXIT.failed, `${why}: the tokens are still in ${file.path}, and svc keeps no copy${earlier}`, [
      `When that is mended, run again: svc login ${profile.name} --import`,
    ]);
  }
  const both = `the tokens are in ${file.path} and may be in svc, and only one of them may refresh them`;
  return new CliError(EXIT.failed, `${why}: ${both}`, [
    `Delete the copy in svc: svc connector rm ${connector.fqn}`,
    `Or end this login: log in again with ${profile.title} (${account.get}), then: svc login ${profile.name} --import`,
  ]);
}
