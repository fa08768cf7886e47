import { join } from 'node:path';
import { parseControlUrl } from '../../shared/model/settings.ts';
import { settingsOf, type CliContext, type GlobalOptions } from './context.ts';
import { CliError, EXIT } from './exit_codes.ts';
import { homeOf, readTokenFile } from './home.ts';
import { httpClient, type HttpClient } from './http_client.ts';
import { isAlive } from '../session/process_identity.ts';
import { readRunFile, type RunFile } from './run_file.ts';

const START = 'Start it with `npm start` or `svc up` (the same --home), and look into its logs: $SVC_HOME/logs.';

/** What runs on this state directory, or null: a process that is gone counts as nothing. */
export function runningOn(home: string): RunFile | null {
  const found = readRunFile(home);
  return found !== null && isAlive(found.sidecar_pid) ? found : null;
}

/** The control plane's origin: `--control`, else `SVC_CONTROL_URL`, else what runs on the state directory. */
export function controlUrlOf(context: CliContext, options: GlobalOptions): string {
  const chosen = options.control ?? settingsOf(context).controlUrl;
  if (chosen !== undefined) {
    const parsed = parseControlUrl(chosen);
    if (parsed.ok) return parsed.value;
    throw new CliError(EXIT.usage, `--control ${parsed.error}`);
  }
  const home = homeOf(context, options);
  const found = readRunFile(home);
  if (found === null || (found.control_pid !== null && !isAlive(found.control_pid))) throw notRunning(home);
  return found.control_url;
}

function notRunning(home: string): CliError {
  return new CliError(EXIT.unreachable, `svc is not running on ${home}`, [START]);
}

/** The control API as the local owner. Its key is for a control plane on this machine only. */
export function controlClient(context: CliContext, options: GlobalOptions): HttpClient {
  const origin = controlUrlOf(context, options);
  if (origin.startsWith('https:')) {
    throw new CliError(
      EXIT.failed,
      `no sign-in for ${origin}: this version signs in to a control plane on this machine only`,
      ['Start one with `svc up`, or leave SVC_CONTROL_URL and --control out.'],
    );
  }
  const home = homeOf(context, options);
  const token = readTokenFile(join(home, 'local.key'));
  if (token === null) throw notRunning(home);
  return httpClient({ origin, token, name: 'the control plane', fetch: context.fetch, startFix: START });
}

/** The local API of the sidecar on this state directory. */
export function daemonClient(context: CliContext, options: GlobalOptions): HttpClient {
  const home = homeOf(context, options);
  const found = runningOn(home);
  const token = found === null ? null : readTokenFile(join(home, 'sidecar', 'host.token'));
  if (found === null || token === null) throw notRunning(home);
  return httpClient({ origin: found.proxy_url, token, name: 'the sidecar', fetch: context.fetch, startFix: START });
}
