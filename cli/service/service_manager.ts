import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { launchdLabel, launchdPlist, type ServicePlan, systemdUnit } from './service_unit.ts';

/** Where the manager's programs and files are found. */
type Place = Pick<CliContext, 'env' | 'userHome'>;

/** The user's own service manager. Its methods throw `CliError` with what the manager said. */
export interface ServiceManager {
  /** The file that describes the service. */
  readonly path: string;
  install(plan: ServicePlan): void;
  uninstall(): void;
  /** Whether it runs now. */
  isActive(): boolean;
}

const CALL_MS = 60_000;

/** Finds the service manager of this system for a service of this name; throws `CliError` if there is none. */
export function findServiceManager(context: Place, name: string, platform: string = process.platform): ServiceManager {
  if (platform === 'darwin') return launchd(context, name);
  if (platform === 'linux') return systemd(context, name);
  throw new CliError(EXIT.failed, `svc knows no service manager of this system (${platform})`, INSTEAD);
}

const INSTEAD = ['Start svc in the background with "svc up --detach", for example when you sign in.'];

function systemd(context: Place, name: string): ServiceManager {
  const named = context.env['XDG_CONFIG_HOME'] ?? '';
  // A relative path is ignored, as the XDG base directory specification wants it.
  const folder = isAbsolute(named) ? named : join(context.userHome, '.config');
  const path = join(folder, 'systemd', 'user', `${name}.service`);
  const systemctl = (...args: readonly string[]): string => call(context, 'systemctl', ['--user', ...args]);
  const requireManager = (): void => {
    try {
      systemctl('show-environment');
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      throw new CliError(EXIT.failed, `there is no systemd for this user: ${error.message}`, INSTEAD);
    }
  };
  return {
    path,
    install: (plan) => {
      requireManager();
      write(path, systemdUnit(plan));
      systemctl('daemon-reload');
      systemctl('enable', `${name}.service`);
      // Starts it too. One that runs already would otherwise keep its old ports.
      systemctl('restart', `${name}.service`);
    },
    uninstall: () => {
      requireManager();
      systemctl('disable', '--now', `${name}.service`);
      rmSync(path, { force: true });
      systemctl('daemon-reload');
    },
    isActive: () => succeeds(() => systemctl('is-active', '--quiet', `${name}.service`)),
  };
}

function launchd(context: Place, name: string): ServiceManager {
  const label = launchdLabel({ name });
  const path = join(context.userHome, 'Library', 'LaunchAgents', `${label}.plist`);
  const domain = `gui/${process.getuid?.() ?? 0}`;
  const launchctl = (...args: readonly string[]): string => call(context, 'launchctl', args);
  return {
    path,
    install: (plan) => {
      write(path, launchdPlist(plan));
      // One that is loaded already would make bootstrap fail, and keep its old ports.
      succeeds(() => launchctl('bootout', `${domain}/${label}`));
      launchctl('bootstrap', domain, path);
    },
    uninstall: () => {
      succeeds(() => launchctl('bootout', `${domain}/${label}`));
      rmSync(path, { force: true });
    },
    isActive: () => succeeds(() => launchctl('print', `${domain}/${label}`)),
  };
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o644 });
}

export function isInstalled({ path }: ServiceManager): boolean {
  return existsSync(path);
}

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof CliError) return false;
    throw error;
  }
}

/** Runs a program of the service manager; throws `CliError` with its last words. */
function call({ env }: Place, program: string, args: readonly string[]): string {
  try {
    const options = { env, timeout: CALL_MS, encoding: 'utf8' } as const;
    return execFileSync(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new CliError(EXIT.failed, `${program} is not installed`);
    throw new CliError(EXIT.failed, `${program} ${args.join(' ')}: ${lastWords(error)}`);
  }
}

function lastWords(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return said === '' ? 'it failed without a message' : (said.split('\n').at(-1) ?? said);
}
