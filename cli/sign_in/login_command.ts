import { hostname } from 'node:os';
import { deviceReply, type DeviceReply, type TokenPair, tokenPair } from '../../shared/wire/device.ts';
import { meReply } from '../../shared/wire/account.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { ACCOUNT, GH } from '../agents/agent_names.ts';
import type { AgentLoginOptions } from '../agents/agent_setup.ts';
import { controlClient, controlUrlOf } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { withSecretSource } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf, prepareHome } from '../up/home.ts';
import { httpClient, type HttpClient, type RawReply, errorOfReply } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { enrolThisMachine, ownSidecar } from '../up/own_sidecar.ts';
import { readSignIn, signInOf, writeSignIn } from './sign_in_file.ts';
import { refusalCode, replyJson } from './refusal_code.ts';
import { CONTROL_NAME, REACH_FIX } from './sign_in_tokens.ts';

interface LoginOptions {
  readonly name?: string;
  readonly sidecar: boolean;
}

/** `svc login`. */
export function addLoginCommand(line: CommandLine, signals: SignalSource): void {
  const login = line.program
    .command('login')
    .description(
      'sign in to a hosted control plane (--control URL) in your browser; or store the credential of an agent, or of gh',
    )
    .argument('[agent]', 'the agent whose credential is stored, such as claude; or gh, which then logs in')
    .option('--name <name>', "this machine's name in the control plane (default: its host name)")
    .option('--no-sidecar', 'sign in only the command line')
    .option(
      '--as <login>',
      'agents: which login: key, subscription ...; account: log in with the agent itself; gh: path in the vault',
    )
    .option('--device', 'agents: with --as account, by a code that you type in a browser elsewhere')
    .option(
      '--secret <path>',
      'agents: the path in the vault, of a secret that is stored already, or of a second account',
    )
    .option('--import', "agents: move the agent's own login into svc; its file gets placeholders")
    .option('--yes', 'agents: import, or store the login of --as account, without a question');
  handle<LoginOptions & AgentLoginOptions>(line, withSecretSource(login), async (call) => {
    if (call.args.length === 0) return logIn(call);
    if (call.args[0] === GH) {
      const { logInGh } = await import('../agents/gh_login.ts');
      return logInGh(call, signals);
    }
    if (call.options.as === ACCOUNT) {
      const { captureLogin } = await import('../agents/capture_login.ts');
      return captureLogin(call, signals);
    }
    const { logInAgent } = await import('../agents/agent_setup.ts');
    return logInAgent(call);
  });
}

async function logIn(call: Call<LoginOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const origin = controlUrlOf(context, options);
  const home = homeOf(context, options);
  for (const note of prepareHome(home, process.getuid?.())) print.warn(note);
  refuseOtherSignIn(home, origin);
  if (options.sidecar) await refuseOtherSidecar(home);
  const name = options.name ?? hostname();
  await signInHere(call, origin, name);
  const user = controlClient(context, { ...options, control: origin });
  const me = await user.call('GET', '/v1/me', meReply);
  const sidecarId = options.sidecar ? await enrolThisMachine(user, home, name) : null;
  const value = { control_url: origin, user_id: me.id, email: me.email, sidecar_id: sidecarId };
  const then = sidecarId === null ? '' : '; its sidecar is enrolled: start it with "svc sidecar"';
  print.line(value, `signed in to ${origin} as ${toPrintable(me.email ?? me.display_name)}${then}`);
}

/** Signs the command line in to a hosted control plane, in the browser, and stores the sign-in in the state directory. */
export async function signInHere(call: Call, origin: string, name: string = hostname()): Promise<void> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  refuseOtherSignIn(home, origin);
  const client = httpClient({ origin, token: null, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  const body = { client_name: `svc on ${name}` };
  const device = await client.call('POST', '/auth/device/code', deviceReply, { body });
  print.note(
    `Open ${toPrintable(device.verification_uri)} in your browser and enter the code:\n\n  ${toPrintable(device.user_code)}\n`,
  );
  const tokens = await waitForTokens(call, client, device);
  await writeSignIn(home, signInOf(origin, tokens, context.now()));
}

/** A state directory belongs to one control plane: its sidecar stores that control plane's policy and events. */
function refuseOtherSignIn(home: string, origin: string): void {
  const found = readSignIn(home);
  if (found === null || found.control_url === origin) return;
  throw new CliError(EXIT.failed, `${home} is signed in to ${found.control_url}`, [
    'Sign out first (svc logout), or use another state directory with --home DIR.',
  ]);
}

/** A sidecar that is enrolled with a local control plane is not moved to another one. */
async function refuseOtherSidecar(home: string): Promise<void> {
  if (readSignIn(home) !== null || (await ownSidecar(home)) === null) return;
  throw new CliError(EXIT.failed, `the sidecar in ${home} is already enrolled with a local control plane`, [
    'Use another state directory (--home DIR), or sign in only the command line (--no-sidecar).',
  ]);
}

/** Polls at the given interval until the sign-in is approved or denied. */
async function waitForTokens(call: Call, client: HttpClient, device: DeviceReply): Promise<TokenPair> {
  const { context } = call;
  const body = { device_code: device.device_code };
  const endMs = context.now() + device.expires_in * 1000;
  let intervalSeconds = Math.max(device.interval, 1);
  while (context.now() < endMs && !context.stop.aborted) {
    await context.pause(intervalSeconds * 1000, context.stop);
    const reply = await client.send('POST', '/auth/device/token', { body });
    if (reply.status === 200) return readTokens(reply);
    const code = refusalCode(reply);
    if (code === 'slow_down') intervalSeconds += 5;
    else if (code !== 'authorization_pending') throw errorOfReply(CONTROL_NAME, reply);
  }
  throw new CliError(
    EXIT.failed,
    context.stop.aborted ? 'the sign-in was cancelled' : 'nobody approved the sign-in in time',
    ['Try again: svc login'],
  );
}

function readTokens(reply: RawReply): TokenPair {
  const parsed = tokenPair.safeParse(replyJson(reply));
  if (parsed.success) return parsed.data;
  throw new CliError(EXIT.failed, `${CONTROL_NAME} answered in a format that this svc does not know`);
}
