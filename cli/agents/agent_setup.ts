import { isStandIn } from '../../shared/model/credential_shapes.ts';
import { parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { promptHidden, readSecret, requireSource, type SecretSource } from '../terminal/read_secret.ts';
import { homeOf } from '../up/home.ts';
import { loginOf, requireLogin, readStored, storeLogin, type ReadyLogin, type Stored } from './agent_login.ts';
import type { AgentLogin, AgentProfile } from './agent_profile.ts';
import { findProfile, loadProfiles, type ProfilePlaces } from './agent_profiles.ts';
import { ensureStarted } from './agent_start.ts';

/** The options of `svc login AGENT`. */
export type AgentLoginOptions = SecretSource & {
  readonly secret?: string;
  readonly as?: string;
  readonly value?: true;
  readonly import?: true;
  readonly device?: true;
  readonly yes?: true;
};

export function placesOf({ context, options }: Call): ProfilePlaces {
  return { root: context.root, home: homeOf(context, options), uid: process.getuid?.() };
}

/** `svc login AGENT`: stores and binds the credential of an agent, or replaces it. */
export async function logInAgent(call: Call<AgentLoginOptions>): Promise<undefined> {
  const { options, args, print } = call;
  const { profile } = findProfile(placesOf(call), args[0] ?? '');
  if (args.length > 1 || options.value !== undefined) throw exposedError(profile);
  if (options.import === true) {
    const { importLogin } = await import('./import_login.ts');
    await importLogin(call, profile);
    return;
  }
  if (options.device === true) throw new CliError(EXIT.usage, '--device is for --as account');
  if (profile.logins.length === 0) throw new CliError(EXIT.usage, `${profile.title} needs no credential`);
  const as = options.as === undefined ? undefined : requireLogin(profile, options.as);
  if (options.secret === undefined) requireSource(call.context, options);
  await ensureStarted(call);
  const client = controlClient(call.context, options);
  const ready =
    options.secret === undefined
      ? await storeValue(call, client, profile, await readCredential(call, profile))
      : await storeAt(call, client, profile, as);
  print.data(
    { agent: profile.name, login: ready.login.name, credential_ref: ready.reference, placeholder: ready.placeholder },
    () => `${profile.title}: ${ready.reference} (${ready.login.title}) for ${hostsOf(ready.login)}\n`,
  );
}

/** Asks for the credential of an agent that has none. */
export async function askForLogin(call: Call<object>, profile: AgentProfile, stored: Stored): Promise<ReadyLogin> {
  const { context, options } = call;
  if (!context.interactive) {
    throw new CliError(EXIT.failed, `no credential is stored for ${profile.title}`, [
      `Store one: svc login ${profile.name} --stdin (or --file FILE, or --secret PATH for one that is stored)`,
      `To run it without one: svc run -- ${profile.command}`,
    ]);
  }
  const client = controlClient(context, options);
  for (const login of profile.logins) {
    if (!stored.secrets.some((secret) => secret.ref === `vault://${login.secret}` && secret.owner === 'personal'))
      continue;
    const question = `vault://${login.secret} is stored. Use it for ${profile.title}, and send it to ${hostsOf(login)}?`;
    if (await askYes(context, question)) return storeLogin(call, client, profile, login, { path: login.secret });
  }
  const asking = { ...call, options: globalOptionsOf(options) };
  return storeValue(asking, client, profile, await readCredential(asking, profile));
}

/** Without the options of `svc run`. */
function globalOptionsOf({ home, control, json }: GlobalOptions): GlobalOptions {
  return {
    ...(home !== undefined && { home }),
    ...(control !== undefined && { control }),
    ...(json !== undefined && { json }),
  };
}

async function storeValue(
  call: Call<AgentLoginOptions>,
  client: HttpClient,
  profile: AgentProfile,
  value: string,
  at: { readonly path?: string; readonly mayBeSecond?: true } = {},
): Promise<ReadyLogin> {
  const { bindings } = await readStored(client);
  if (isStandIn(value) || bindings.some(({ sentinel }) => sentinel?.value === value)) {
    throw new CliError(EXIT.usage, 'this is a placeholder of svc, not a credential: nothing was stored');
  }
  const all = loadProfiles(placesOf(call), () => undefined).map((found) => found.profile);
  return storeLogin(call, client, profile, loginOf(profile, value, all, call.options.as), { value, ...at });
}

/** Uses the secret at a path that the person names: one that is stored, or a new one. It may be a second account. */
async function storeAt(
  call: Call<AgentLoginOptions>,
  client: HttpClient,
  profile: AgentProfile,
  as: AgentLogin | undefined,
): Promise<ReadyLogin> {
  const { secret = '', stdin, file } = call.options;
  const path = parseOwnVaultPath(secret.replace(/^vault:\/\//, ''));
  if (!path.ok) throw new CliError(EXIT.usage, `--secret ${path.error.message}`);
  const at = { path: path.value, mayBeSecond: true } as const;
  const { secrets } = await readStored(client);
  const isStored = secrets.some(({ ref, owner }) => ref === `vault://${path.value}` && owner === 'personal');
  if (stdin === true || file !== undefined || (!isStored && call.context.interactive)) {
    return storeValue(call, client, profile, await readCredential(call, profile), at);
  }
  const only = profile.logins.length === 1 ? profile.logins[0] : undefined;
  const login = as ?? only;
  if (login === undefined) {
    throw new CliError(
      EXIT.usage,
      `${profile.title} has several logins: say which one the secret is for`,
      profile.logins.map(({ name, title }) => `--as ${name}: ${title}`),
    );
  }
  if (!isStored) {
    throw new CliError(EXIT.failed, `vault://${path.value} is not stored`, [
      `Store it: svc login ${profile.name} --secret ${path.value} --stdin`,
    ]);
  }
  return storeLogin(call, client, profile, login, at);
}

async function readCredential(call: Call<AgentLoginOptions>, profile: AgentProfile): Promise<string> {
  const { context, options, print } = call;
  if (!context.interactive || options.file !== undefined) return (await readSecret(context, options)).trim();
  for (const line of promptLines(profile)) print.note(line);
  const value = (await promptHidden(context.stdin, context.stderr, 'Paste it (not shown): ')).trim();
  if (value === '') throw new CliError(EXIT.usage, 'the credential is empty: nothing was stored');
  return value;
}

function promptLines({ name, title, logins, account }: AgentProfile): readonly string[] {
  return [
    `${title} needs a credential:`,
    ...logins.map((login) => `  ${login.title} (${login.get}), sent only to ${hostsOf(login)}`),
    ...(account === undefined
      ? []
      : [
          `  or ${account.title}: press Ctrl-C, then svc login ${name} --as account (if ${title} is logged in already: --import)`,
        ]),
    `It is stored encrypted. ${title} gets a placeholder.`,
  ];
}

function hostsOf({ bindings }: Pick<ReadyLogin['login'], 'bindings'>): string {
  return bindings.map(({ host }) => host).join(', ');
}

function exposedError({ name }: AgentProfile): CliError {
  return new CliError(
    EXIT.usage,
    'a credential cannot be given on the command line: the process list and the shell history would show it',
    [
      `Type it at the prompt (svc login ${name}), pipe it (--stdin), or read it from a file (--file FILE).`,
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}
