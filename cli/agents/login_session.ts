import { z } from 'zod';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { PendingLogin } from '../../shared/wire/pending_logins.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { runInSession } from '../launch/run_in_session.ts';
import type { RunInSession } from '../launch/run_options.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { discardLogin } from './account_login.ts';

/** The part of the sidecar's answer about a session that says what became of its login. */
const loginSession = z.object({
  login: z.object({
    state: z.enum(['waiting', 'withheld', 'held', 'not_stored', 'contested']),
    who: z.string().nullable(),
  }),
});
export type SessionOfLogin = z.output<typeof loginSession>['login'];

/** Refuses a call that nobody can answer, because a person has to see whose account it is. */
export function requirePerson({ context, options }: Call<{ readonly yes?: boolean }>, command: string): void {
  if (context.interactive || options.yes === true) return;
  throw new CliError(EXIT.usage, 'nobody can be asked here whose account it is: nothing was changed', [
    `To store it without a question: ${command} --yes`,
  ]);
}

interface LoginRun extends Pick<RunInSession, 'command' | 'args' | 'environment'> {
  /** The name of the program in svc. */
  readonly program: string;
  readonly expectedHosts: readonly string[];
  readonly login: PendingLogin;
  readonly placeholder: string;
}

/** Runs a program's own login in a session that captures its tokens, and gives what became of them. */
export async function runLogin(
  call: Call<object>,
  signals: SignalSource,
  { program, login: { id }, placeholder, ...run }: LoginRun,
): Promise<SessionOfLogin> {
  const { home, control, json }: GlobalOptions = call.options;
  const options: GlobalOptions = {
    ...(home !== undefined && { home }),
    ...(control !== undefined && { control }),
    ...(json !== undefined && { json }),
  };
  let session: SessionOfLogin = { state: 'waiting', who: null };
  try {
    await runInSession({ ...call, options }, signals, {
      ...run,
      name: `login-${program}`,
      // No choice of a folder: the session is for the login only.
      secrets: [],
      login: { id, placeholder },
      async beforeEnd(sessionId) {
        const sidecar = sidecarClient(call.context, call.options);
        session = (await sidecar.call('GET', `/v1/sandbox-proxy/sessions/${sessionId}`, loginSession)).login;
      },
    });
  } catch (error) {
    // The exit status of `svc run` for a session that could not be opened says nothing here.
    throw error instanceof CliError ? new CliError(EXIT.failed, error.message, error.fixes) : error;
  }
  return session;
}

/** Does the work of a login; if it fails, deletes the login with its tokens. */
export async function discardOnFailure(
  { print }: Pick<Call, 'print'>,
  client: HttpClient,
  login: PendingLogin,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    await discardLogin(client, login).catch(() =>
      print.warn(`the login could not be deleted: nothing uses it, and it ends at ${login.expires_at}`),
    );
    throw error;
  }
}
