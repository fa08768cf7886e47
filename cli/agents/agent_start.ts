import { DEFAULT_CONTROL_PORT, DEFAULT_PROXY_PORT } from '../../shared/model/settings.ts';
import { findRunning } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { backgroundArgs, bringUp, environmentOfSvc } from '../up/background.ts';
import { homeOf } from '../up/home.ts';
import { findSavedPort } from '../launch/launcher_processes.ts';
import { unlockedCall } from '../vault/vault_unlock.ts';
import { requireFreePort } from '../up/up_programs.ts';

/**
 * Starts svc in the background if it is down. The ports are those of an earlier run whose sessions still have their agents, which
 * hold the proxy's address; else those of `svc up`, or free ones if another program has them.
 */
export async function ensureStarted(call: Call): Promise<void> {
  const home = homeOf(call.context, call.options);
  if (findRunning(home) !== null) return;
  const signIn = readSignIn(home);
  if (signIn !== null) {
    throw new CliError(EXIT.unreachable, `the sidecar for ${signIn.control_url} is not running on ${home}`, [
      'Start it: svc sidecar',
    ]);
  }
  const ports = await usualPorts(home);
  // A program in the background cannot ask for the passphrase of the vault.
  const env = environmentOfSvc((await unlockedCall(call)).context);
  try {
    await bringUp(call, home, argsFor(home, ports), env);
  } catch (error) {
    // Another program may have taken a port since, for example another person's svc.
    const now = await usualPorts(home);
    if (!(error instanceof CliError) || (now.control === ports.control && now.proxy === ports.proxy)) throw error;
    await bringUp(call, home, argsFor(home, now), env);
  }
  call.print.note('svc: started in the background; "svc down" stops it');
}

interface Ports {
  readonly control: number;
  readonly proxy: number;
}

function argsFor(home: string, { control, proxy }: Ports): readonly string[] {
  const rest = { upstreamCa: [], resolve: [], denyPrivateUpstreams: false, registryUrl: null };
  return backgroundArgs({ home, port: proxy, controlPort: control, ...rest });
}

async function usualPorts(home: string): Promise<Ports> {
  const saved = findSavedPort(home) ?? DEFAULT_PROXY_PORT;
  const [control, proxy] = await Promise.all([freePort(DEFAULT_CONTROL_PORT), freePort(saved)]);
  return { control, proxy };
}

async function freePort(port: number): Promise<number> {
  try {
    await requireFreePort(port, '');
    return port;
  } catch (error) {
    if (error instanceof CliError) return 0;
    throw error;
  }
}
