import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readPlace } from '../seal/credential_places.ts';
import { rewriteFile } from '../seal/rewrite_file.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import {
  ACCOUNT,
  accountOf,
  accountReference,
  forgetAccount,
  type PreparedAccount,
  prepareAccount,
  storeAccount,
} from './account_login.ts';
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

/**
 * `svc login AGENT --import`: moves the agent's own login into svc, and leaves placeholders in its file. A refresh token that
 * rotates has one holder: the tokens are stored first, when nothing can use them yet, and taken back if the file cannot be
 * written.
 */
export async function importLogin(call: Call<{ readonly yes?: true }>, profile: AgentProfile): Promise<undefined> {
  const { context, options, print } = call;
  const account = accountOf(profile);
  const file = await readLoginFile(call, profile, account);
  const found = readLogin(file, profile, account);
  await ensureStarted(call);
  const client = controlClient(context, options);
  const { bindings } = await readStored(client);
  for (const line of importLines(profile, account, file, found)) print.note(line);
  await confirm(call, profile);
  const prepared = await prepareAccount(client, profile, account, bindings);
  await storeOrForget(client, { profile, account, file, prepared }, found);
  await leavePlaceholders(call, client, { profile, account, file, prepared });
  print.data(
    { agent: profile.name, login: ACCOUNT, credential_ref: accountReference(profile), file: file.path },
    () => `${profile.title}: ${accountReference(profile)} (${account.title}) for ${account.hosts.join(', ')}\n`,
  );
}

async function readLoginFile(
  { context }: Call<object>,
  { title }: AgentProfile,
  { file, get }: AgentAccount,
): Promise<LoginFile> {
  const path = agentPath(context, file);
  const place = await readPlace(path);
  if (place === null) {
    throw new CliError(EXIT.failed, `${title} has no login in ${path}`, [
      `Log in with ${title} first (${get}). On macOS it may keep its login in the keychain, which svc does not read.`,
    ]);
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

function importLines(
  { title }: AgentProfile,
  account: AgentAccount,
  { path }: LoginFile,
  { who, plan, others, removed }: FoundLogin,
): readonly string[] {
  const shown = [who, plan === null ? null : `plan ${plan}`].flatMap((text) =>
    text === null ? [] : toPrintable(text),
  );
  return [
    `${path} holds a login of ${title}${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`,
    `  Its tokens are stored encrypted in svc, which refreshes them from then on. They go only to ${account.hosts.join(', ')} and ${new URL(account.token_url).host}.`,
    '  The file gets placeholders. No copy of the tokens is kept on this machine.',
    ...(removed.length === 0 ? [] : [`  Removed from the file, and not stored: ${removed.join(', ')}.`]),
    ...(others.length === 0
      ? []
      : [`  Stays in the file as it is: ${others.map((name) => toPrintable(name)).join(', ')}.`]),
    `  Quit ${title} first: one that runs still has the tokens, and would end the login by refreshing it.`,
    `  To go back, log in again with ${title} itself: ${account.get}`,
  ];
}

async function confirm({ context, options }: Call<{ readonly yes?: true }>, { name }: AgentProfile): Promise<void> {
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
  readonly prepared: PreparedAccount;
}

/** A call without an answer may have stored the tokens, so they are deleted again. */
async function storeOrForget(client: HttpClient, move: Move, found: FoundLogin): Promise<void> {
  try {
    await storeAccount(client, move.account, move.prepared, found);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw await giveUp(client, move, error.message);
  }
}

/** Takes the tokens back out of svc. Returns the error, which says who has them now. */
async function giveUp(client: HttpClient, { profile, account, file, prepared }: Move, why: string): Promise<CliError> {
  if (await forgetAccount(client, prepared)) {
    return new CliError(EXIT.failed, `${why}: the tokens are still in ${file.path}, and svc keeps no copy`, [
      `When that is mended, run again: svc login ${profile.name} --import`,
    ]);
  }
  const both = `the tokens are in ${file.path} and may be in svc, and only one of them may refresh them`;
  return new CliError(EXIT.failed, `${why}: ${both}`, [
    `Delete the copy in svc: svc connector rm ${prepared.connector.fqn}`,
    `Or end this login: log in again with ${profile.title} (${account.get}), then: svc login ${profile.name} --import`,
  ]);
}

/** Replaces the tokens in the file. If that fails, svc gives them up, because the agent may refresh them at any time. */
async function leavePlaceholders({ context }: Call<object>, client: HttpClient, move: Move): Promise<void> {
  const { account, file, prepared } = move;
  const written = LOGIN_FORMATS[account.file.format].write(file.json, prepared.placeholder, context.now());
  try {
    await rewriteFile(file.path, file.text, `${JSON.stringify(written, null, 2)}\n`);
  } catch (error) {
    throw await giveUp(client, move, error instanceof Error ? error.message : String(error));
  }
}
