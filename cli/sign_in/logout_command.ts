import { controlClient, findRunning } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { httpClient } from '../terminal/http_client.ts';
import { retireSidecar } from '../up/own_sidecar.ts';
import { readSignIn, removeSignIn } from './sign_in_file.ts';
import { CONTROL_NAME, REACH_FIX, SignInOver } from './sign_in_tokens.ts';

/** `svc logout`. */
export function addLogoutCommand(line: CommandLine): void {
  const logout = line.program
    .command('logout')
    .description("sign out of the control plane that `svc login` signed in to, and revoke this machine's sidecar");
  handle(line, logout, logOut);
}

/** Local files are deleted only after the control plane has revoked the sign-in. */
async function logOut(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  const signIn = readSignIn(home);
  if (signIn === null) throw new CliError(EXIT.failed, `${home} has no sign-in`);
  if (findRunning(home) !== null) {
    throw new CliError(EXIT.failed, 'the sidecar is running: stop it first, so that it sends its last events', [
      'Run "svc down", or press Ctrl-C in the terminal where "svc sidecar" runs.',
    ]);
  }
  const { control_url: origin } = signIn;
  const isOver = await isSignInOver(call, origin);
  const user = isOver ? null : controlClient(context, { ...options, control: origin });
  const sidecarId = await retireSidecar(user, home, context.now());
  if (!isOver) await revoke(call, home, origin);
  removeSignIn(home);
  print.line({ control_url: origin, sidecar_id: sidecarId }, `signed out of ${origin}${restOf(isOver, sidecarId)}`);
}

function restOf(isOver: boolean, sidecarId: string | null): string {
  if (sidecarId === null) return '';
  if (!isOver) return `; its sidecar ${sidecarId} is revoked`;
  return `; the sign-in had already ended, so the sidecar ${sidecarId} could not be revoked there. Its keys on this machine are deleted`;
}

/** Whether the sign-in was ended elsewhere or has expired: then there is nothing to revoke. */
async function isSignInOver({ context, options }: Call, origin: string): Promise<boolean> {
  try {
    await controlClient(context, { ...options, control: origin }).send('GET', '/v1/me');
    return false;
  } catch (error) {
    if (error instanceof SignInOver) return true;
    throw error;
  }
}

async function revoke({ context }: Call, home: string, origin: string): Promise<void> {
  const latest = readSignIn(home);
  if (latest === null) return;
  const client = httpClient({ origin, token: null, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  await client.callEmpty('POST', '/auth/revoke', { body: { refresh_token: latest.refresh_token } });
}
