import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { serviceOfShape } from '../../shared/model/credential_shapes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { pendingLogin, type PendingLogin } from '../../shared/wire/pending_logins.ts';
import type { SealedService } from '../../shared/wire/sealed_service.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { CliContext, GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isOnPath } from '../launch/client_trust.ts';
import { readPlace } from '../seal/credential_places.ts';
import { planService, type PlannedSeal, type SealOptions, warnOfLostDefault } from '../seal/seal_credential.ts';
import { carryOutSeal } from '../seal/seal_service.ts';
import { findService, loadServices } from '../seal/services.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';
import { ACCOUNT, GH } from './agent_names.ts';
import type { AgentLoginOptions } from './agent_setup.ts';
import { ensureStarted } from './agent_start.ts';
import { underLock } from './import_login.ts';
import { discardOnFailure, requirePerson, runLogin, type SessionOfLogin } from './login_session.ts';

/** gh's device login (its source: internal/authflow/flow.go). The token has no end and is not refreshed. */
const LOGIN = {
  program: GH,
  token_url: 'https://github.com/login/oauth/access_token',
  client_id: '178c6fc778ccc68e1d6a',
  grants: ['device_code'],
};
const API_HOST = 'api.github.com';
const ARGS = ['auth', 'login', '--hostname', 'github.com', '--web', '--git-protocol', 'https'];
/** Since 2.26 gh stores a token in the keyring of the system unless it is told not to. */
const TO_FILE = '--insecure-storage';
/** With one of these set, gh logs in to nothing. */
const TOKEN_VARIABLES = new Set(['GH_TOKEN', 'GITHUB_TOKEN']);
const HELP_LIMIT_MS = 20_000;
const AGAIN = `Try again: svc login ${GH}`;

/**
 * `svc login gh`: runs gh's own login in a session in which the token goes to the control plane and gh gets the placeholder of the
 * binding that `svc seal github` makes. A person sees whose account it is; then the token is stored as that one secret.
 */
export async function logInGh(given: Call<AgentLoginOptions>, signals: SignalSource): Promise<undefined> {
  const call = sealCall(given);
  const { context, options, print } = call;
  requirePerson(call, `svc login ${GH}`);
  if (!isOnPath(GH, context.env['PATH'] ?? '')) {
    throw new CliError(EXIT.notFound, 'gh is not installed: it is not on PATH', ['See https://cli.github.com']);
  }
  await ensureStarted(call);
  const client = controlClient(context, options);
  const service = findService(loadServices(context.root), 'github');
  const plan = await planService(call, client, service, {});
  const placeholder = placeholderOf(plan);
  warnOfLostDefault(call, plan);
  const login = await client.call('POST', '/v1/pending-logins', pendingLogin, { body: LOGIN });
  print.note('svc: log in with gh now. Its token goes to svc, and gh gets a placeholder.');
  await discardOnFailure(call, client, login, async () => {
    const session = await runLogin(call, signals, {
      program: GH,
      command: GH,
      args: [...ARGS, ...((await storesInKeyring(context)) ? [TO_FILE] : [])],
      expectedHosts: [API_HOST],
      login,
      placeholder,
      environment: loginEnvironment,
    });
    await confirm(call, nameOf(session), plan);
    await underLock(homeOf(context, options), () => store(call, client, { service, plan, login }));
  });
  await checkFile(call, placeholder);
  const ref = formatVaultReference(plan.path);
  print.data({ agent: GH, credential_ref: ref, hosts: plan.hosts }, () => `gh: ${ref} for ${plan.hosts.join(', ')}\n`);
  if (print.person) print.note('Try it: svc run -- gh api user');
}

/** The same call with the options of `svc seal github`. */
function sealCall(call: Call<AgentLoginOptions>): Call<SealOptions> {
  const { home, control, json, as: path, yes, ...rest } = call.options;
  if (call.args.length > 1 || rest.stdin === true || rest.file !== undefined || rest.secret !== undefined) {
    throw new CliError(EXIT.usage, 'svc login gh takes no credential: gh asks for one itself', [
      'To store a token that you have: svc seal github',
    ]);
  }
  if (rest.import === true) {
    throw new CliError(EXIT.usage, 'svc login gh imports nothing', ['To store the token that gh has: svc seal']);
  }
  const options: SealOptions & GlobalOptions = {
    owner: 'personal',
    ...(home !== undefined && { home }),
    ...(control !== undefined && { control }),
    ...(json !== undefined && { json }),
    ...(path !== undefined && path !== ACCOUNT && { as: path }),
    ...(yes !== undefined && { yes }),
  };
  return { ...call, options };
}

/** What gh sends to the API, and the binding there replaces. */
function placeholderOf({ steps }: PlannedSeal): string {
  for (const step of steps) {
    const { host, sentinel } = step.kind === 'keep' ? step.record : step.binding;
    if (host === API_HOST && sentinel !== undefined) return sentinel.value;
  }
  throw new CliError(
    EXIT.failed,
    `the binding of ${API_HOST} has no placeholder that gh could hold: nothing was changed`,
  );
}

/** gh asks nothing: the questions about git are not for svc's login, and svc reads the person's answer afterwards. */
function loginEnvironment(session: Record<string, string>): Record<string, string> {
  const kept = Object.entries(session).filter(([name]) => !TOKEN_VARIABLES.has(name));
  return { ...Object.fromEntries(kept), GH_PROMPT_DISABLED: '1' };
}

async function storesInKeyring({ env }: CliContext): Promise<boolean> {
  const options = { env, timeout: HELP_LIMIT_MS, maxBuffer: 1_048_576 };
  try {
    const { stdout } = await promisify(execFile)(GH, ['auth', 'login', '--help'], options);
    return stdout.includes(TO_FILE);
  } catch {
    throw new CliError(EXIT.failed, '"gh auth login --help" failed: nothing was changed', ['Run it to see why.']);
  }
}

/** Whose login it is, if the login is held. */
function nameOf({ state, who }: SessionOfLogin): string {
  if (state === 'held' && who !== null) return who;
  if (state === 'waiting') throw new CliError(EXIT.failed, 'gh did not log in: nothing was stored', [AGAIN]);
  if (state === 'withheld') {
    throw new CliError(
      EXIT.failed,
      'a reply to the login of gh was withheld or lost: nothing was stored, and nobody has its token',
      [AGAIN, 'If GitHub accepted the login, revoke GitHub CLI at https://github.com/settings/applications.'],
    );
  }
  if (state === 'not_stored') {
    throw new CliError(EXIT.failed, 'the token of gh could not be stored, and nobody has it now', [AGAIN]);
  }
  const why =
    state === 'held'
      ? 'GitHub did not say whose login it is: the token was deleted'
      : 'two programs asked for the token of a login in this session, so it is not certain whose it is: it was deleted';
  throw new CliError(EXIT.failed, why, [
    AGAIN,
    'If you did not begin twice, revoke GitHub CLI at https://github.com/settings/applications.',
  ]);
}

/** Shows whose account it is and where its token goes, and asks. */
async function confirm(
  { context, options, print }: Call<SealOptions>,
  name: string,
  { path, stored, hosts }: PlannedSeal,
): Promise<void> {
  const ref = formatVaultReference(path);
  const lines = [
    `gh logged in: ${toPrintable(name)}`,
    `  Its token goes only to ${hosts.join(', ')}. Every session of svc can use the account.`,
    ...(stored === null ? [] : [`  It replaces ${ref}, stored at ${stored.updated_at}, which cannot be brought back.`]),
  ];
  for (const line of lines) print.note(line);
  if (options.yes === true || (await askYes(context, `Is this your account, and should svc store its token?`))) return;
  throw new CliError(EXIT.failed, 'nothing was stored: svc has deleted the token', [
    'It may still be valid: revoke GitHub CLI at https://github.com/settings/applications.',
  ]);
}

interface Storing {
  readonly service: SealedService;
  readonly plan: PlannedSeal;
  readonly login: PendingLogin;
}

/** Stores what the person was shown, and nothing else. */
async function store(call: Call<SealOptions>, client: HttpClient, { service, plan, login }: Storing): Promise<void> {
  const { path, hosts, stored, steps } = await planService(call, client, service, {});
  const isSame = hosts.join() === plan.hosts.join() && stored?.updated_at === plan.stored?.updated_at;
  if (!isSame || steps.some((step, at) => step.kind !== plan.steps[at]?.kind)) {
    throw new CliError(EXIT.failed, 'bindings or secrets were changed meanwhile: nothing was stored', [AGAIN]);
  }
  await carryOutSeal(client, plan.steps, { path, loginId: login.id, description: `sealed for ${service.title}` });
}

/** gh wrote its file itself, with what it got. */
async function checkFile({ context, print }: Call<object>, placeholder: string): Promise<void> {
  const path = join(configFolder(context), 'hosts.yml');
  const place = await readPlace(path);
  const words = place?.kind === 'text' ? place.text.split(/["'\s]+/) : [];
  if (!words.includes(placeholder))
    print.warn(`${path} does not have the placeholder: gh may keep its login elsewhere`);
  if (words.some((word) => word !== placeholder && serviceOfShape(word) !== null)) {
    print.warn(`${path} holds another credential besides: svc seal finds it`);
  }
}

function configFolder({ env, userHome }: CliContext): string {
  const own = env['GH_CONFIG_DIR'] ?? '';
  const config = env['XDG_CONFIG_HOME'] ?? '';
  return own === '' ? join(config === '' ? join(userHome, '.config') : config, 'gh') : own;
}
