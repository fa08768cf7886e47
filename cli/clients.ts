import { join } from 'node:path';
import { parseControlUrl } from '../shared/model/settings.ts';
import { settingsOf, type CliContext, type GlobalOptions } from './context.ts';
import { CliError, EXIT } from './exit_codes.ts';
import { homeOf, readTokenFile } from './up/home.ts';
import { httpClient, type HttpClient } from './terminal/http_client.ts';
import { isAlive } from '../machine/process_identity.ts';
import { readRunFile, type RunFile } from './up/run_file.ts';
import { readSignIn } from './sign_in/sign_in_file.ts';
import { accessToken, CONTROL_NAME, REACH_FIX } from './sign_in/sign_in_tokens.ts';

const START = 'Start it with `npm start` or `svc up` (the same --home), and look into its logs: `svc logs`.';

/** Reads what runs on this state directory; null if nothing does or the process is gone. */
export function findRunning(home: string): RunFile | null {
  const found = readRunFile(home);
  return found !== null && isAlive(found.sidecar_pid) ? found : null;
}

/**
 * The control plane's origin. In this order: `--control`, `SVC_CONTROL_URL`, the one that `svc up` runs on the state directory,
 * the one that `svc login` signed in to.
 */
export function controlUrlOf(context: CliContext, options: GlobalOptions): string {
  const chosen = options.control ?? settingsOf(context).controlUrl;
  if (chosen !== undefined) {
    const parsed = parseControlUrl(chosen);
    if (parsed.ok) return parsed.value;
    throw new CliError(EXIT.usage, `--control ${parsed.error}`);
  }
  const home = homeOf(context, options);
  const found = readRunFile(home);
  if (found !== null && found.control_pid !== null && isAlive(found.control_pid)) return found.control_url;
  const signIn = readSignIn(home);
  if (signIn !== null) return signIn.control_url;
  if (found === null || found.control_pid !== null) throw notRunningError(home);
  return found.control_url;
}

function notRunningError(home: string): CliError {
  return new CliError(EXIT.unreachable, `svc is not running on ${home}`, [START]);
}

/**
 * A client for the control API, as the signed-in user, else as the local owner. A sign-in's tokens are sent only to its own
 * origin, and the local key only to a control plane on this machine. What can do without it goes on for a service account.
 */
export function controlClient(context: CliContext, options: GlobalOptions): HttpClient {
  if (options.withoutUser === true) {
    throw new CliError(EXIT.unreachable, 'a service account cannot use the API of the control plane');
  }
  const origin = controlUrlOf(context, options);
  const home = homeOf(context, options);
  if (readSignIn(home)?.control_url === origin) {
    const token = (refused: string | null): Promise<string> => accessToken(context, home, origin, refused);
    return httpClient({ origin, token, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  }
  if (origin.startsWith('https:')) {
    throw new CliError(EXIT.failed, `not signed in to ${origin}`, [`svc login --control ${origin}`]);
  }
  const token = readTokenFile(join(home, 'local.key'));
  if (token === null) throw notRunningError(home);
  return httpClient({ origin, token, name: 'the control plane', fetch: context.fetch, startFix: START });
}

/** A client for the local API of the sidecar on this state directory. */
export function sidecarClient(context: CliContext, options: GlobalOptions): HttpClient {
  const home = homeOf(context, options);
  const found = findRunning(home);
  const token = found === null ? null : readTokenFile(join(home, 'sidecar', 'host.token'));
  if (found === null || token === null) throw notRunningError(home);
  return httpClient({ origin: found.proxy_url, token, name: 'the sidecar', fetch: context.fetch, startFix: START });
}
