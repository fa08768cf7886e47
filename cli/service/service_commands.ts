import { resolve } from 'node:path';
import { DEFAULT_CONTROL_PORT, DEFAULT_PROXY_PORT } from '../../shared/model/settings.ts';
import { programFile } from '../../machine/program_file.ts';
import { readUpstreamProxy, upstreamProxyVariables } from '../../shared/net/upstream_proxy.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { backgroundArgs, carriedVariables } from '../up/background.ts';
import { homeOf, prepareHome } from '../up/home.ts';
import { findServiceManager, isInstalled, type ServiceManager } from './service_manager.ts';
import { findUnwritable, type ServicePlan } from './service_unit.ts';
import { UpLock } from '../up/up_lock.ts';
import { parsePort } from '../up/up_programs.ts';

interface InstallOptions {
  readonly controlPort: string;
  readonly proxyPort: string;
}

/** `svc service install|uninstall|status`. */
export function addServiceCommands(line: CommandLine): void {
  const service = line.program
    .command('service')
    .description('run svc as a service of your user: with systemd, or with launchd on macOS');
  const install = service
    .command('install')
    .description('write the service, start it now, and start it whenever you sign in')
    .option('--control-port <port>', 'port of the control plane', String(DEFAULT_CONTROL_PORT))
    .option('--proxy-port <port>', 'port of the sidecar', String(DEFAULT_PROXY_PORT));
  handle<InstallOptions>(line, install, installService);
  handle(line, service.command('uninstall').description('stop the service and remove it'), uninstallService);
  const status = service
    .command('status')
    .description('show whether the service is installed and runs; exit with 1 if not');
  handle(line, status, showService);
}

async function installService(call: Call<InstallOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  const manager = managerOf(call);
  const plan = planOf(context, home, {
    controlPort: fixedPort(options.controlPort, '--control-port'),
    proxyPort: fixedPort(options.proxyPort, '--proxy-port'),
  });
  const unwritable = findUnwritable(plan);
  if (unwritable !== null)
    throw new CliError(EXIT.usage, `${JSON.stringify(unwritable)} cannot be written into a service`);
  const running = UpLock.readRunning(home);
  if (running !== null && !(isInstalled(manager) && manager.isActive())) {
    throw new CliError(EXIT.failed, `svc already runs on ${home} (process ${running.supervisor.pid})`, [
      'Stop it first: "svc down --keep-sessions". Live sessions continue under the service.',
    ]);
  }
  for (const text of prepareHome(home, process.getuid?.())) print.note(`svc: ${text}`);
  for (const name of settingsLeftOut(context)) {
    print.warn(`${name} is set here, but not for the service: a service's variables are no place for a secret`);
  }
  manager.install(plan);
  print.line({ path: manager.path, home }, `installed and started: ${manager.path}`);
}

async function uninstallService(call: Call): Promise<undefined> {
  const manager = managerOf(call);
  const wasInstalled = isInstalled(manager);
  if (wasInstalled) manager.uninstall();
  const { path } = manager;
  call.print.line(
    { path, removed: wasInstalled },
    wasInstalled ? `stopped and removed: ${path}` : `not installed: ${path}`,
  );
}

async function showService(call: Call): Promise<number> {
  const manager = managerOf(call);
  const installed = isInstalled(manager);
  const active = installed && manager.isActive();
  const { path } = manager;
  const text = installed ? `${active ? 'runs' : 'is installed, but does not run'}: ${path}` : `not installed: ${path}`;
  call.print.line({ path, installed, active }, text);
  return active ? EXIT.ok : EXIT.failed;
}

/** The manager of the service of this state directory. */
export function managerOf({ context, options }: Call): ServiceManager {
  return findServiceManager(context, serviceName(context, homeOf(context, options)));
}

/** The file of the installed service of this state directory; null without one, and on a system that has no service manager. */
export function findInstalledService(call: Call): string | null {
  try {
    const manager = managerOf(call);
    return isInstalled(manager) ? manager.path : null;
  } catch (error) {
    if (error instanceof CliError) return null;
    throw error;
  }
}

/** One service for each state directory. */
function serviceName(context: CliContext, home: string): string {
  return home === resolve(context.userHome, '.svc') ? 'svc' : `svc-${sha256Hex(home).slice(0, 8)}`;
}

function planOf(
  context: CliContext,
  home: string,
  { controlPort, proxyPort }: { readonly controlPort: number; readonly proxyPort: number },
): ServicePlan {
  const node = [process.execPath, ...process.execArgv, programFile('cli/main')];
  const rest = { upstreamCa: [], resolve: [], denyPrivateUpstreams: false, registryUrl: null };
  const args =
    readSignIn(home) === null
      ? backgroundArgs({ home, port: proxyPort, controlPort, ...rest })
      : ['sidecar', `--home=${home}`, `--proxy-port=${proxyPort}`];
  return {
    name: serviceName(context, home),
    home,
    command: [...node, ...args],
    environment: { ...carriedVariables(context), ...proxyVariables(context) },
  };
}

/** Settings of this shell that the service does not get; `--home` is in its command line. */
function settingsLeftOut({ env }: CliContext): readonly string[] {
  const carried = Object.keys(proxyVariables({ env }));
  const set = Object.keys(env).filter((name) => name.startsWith('SVC_') && name !== 'SVC_HOME' && env[name] !== '');
  const { source, hasPassword } = proxyOf({ env });
  return [...new Set(hasPassword ? [...set, source] : set)].filter((name) => !carried.includes(name));
}

/** The settings of the upstream proxy; none if it has a password. */
function proxyVariables({ env }: Pick<CliContext, 'env'>): Readonly<Record<string, string>> {
  return proxyOf({ env }).hasPassword ? {} : upstreamProxyVariables(env);
}

function proxyOf({ env }: Pick<CliContext, 'env'>): { readonly source: string; readonly hasPassword: boolean } {
  const proxy = readUpstreamProxy(env);
  if (!proxy.ok) throw new CliError(EXIT.usage, proxy.error);
  if (proxy.value === null) return { source: '', hasPassword: false };
  return { source: proxy.value.source, hasPassword: proxy.value.authorization !== null };
}

/** Sessions keep the port of their proxy, so it has to be the same after each start. */
function fixedPort(text: string, flag: string): number {
  const port = parsePort(text, flag);
  if (port !== 0) return port;
  throw new CliError(EXIT.usage, `${flag} is 0: a service needs a fixed port, which its sessions find again`);
}
