import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { listGuardedPaths } from '../../sandbox/launch/guarded_paths.ts';
import type { MountPolicy } from '../../sandbox/launch/mount_policy.ts';
import { MountTable } from '../../sandbox/launch/mount_table.ts';
import { type CliContext, type GlobalOptions, settingsOf } from '../context.ts';
import { homeOf } from '../up/home.ts';

/** The mount policy of this machine. Relative sources are resolved against `workingDirectory`. */
export function mountPolicyOf(
  context: CliContext,
  options: GlobalOptions,
  endpoint: string | null,
  workingDirectory: string,
): MountPolicy {
  const state = statePaths(context, options).flatMap((path) => [path, ...linksIn(path)]);
  return {
    workingDirectory,
    guarded: listGuardedPaths([...new Set(state)], context.env, endpoint),
    realPath,
    mountTable: readMountTable(),
  };
}

/**
 * Paths with svc's state: the directory in use, the ones that the environment and the default name (another `svc up` may use
 * them), and an external database file.
 */
function statePaths(context: CliContext, options: GlobalOptions): readonly string[] {
  const { home, databaseUrl } = settingsOf(context);
  const file = databaseUrl?.startsWith('file:') === true ? databasePath(databaseUrl, context.workingDirectory) : null;
  return [
    homeOf(context, options),
    resolve(context.userHome, '.svc'),
    ...(home === undefined ? [] : [resolve(context.workingDirectory, home)]),
    ...(file === null ? [] : [file]),
  ];
}

/** The file that the control plane opens; null if nothing can open the URL. */
function databasePath(databaseUrl: string, workingDirectory: string): string | null {
  try {
    return fileURLToPath(new URL(databaseUrl, pathToFileURL(join(workingDirectory, '/'))));
  } catch {
    return null;
  }
}

/** The files of a state directory (docs/architecture/machine.md, State). */
const KEPT = [
  'control.db',
  'vault.key',
  'vault.key.change',
  'local.key',
  'sign_in.json',
  'sidecar',
  'sessions',
  'mcp',
  'borrow',
  'run.json',
  'logs',
];

/** The path with symbolic links resolved. */
function linksIn(home: string): readonly string[] {
  return KEPT.map((name) => join(home, name)).flatMap((path) => [
    ...linkOf(path),
    ...entriesOf(path).flatMap((name) => linkOf(join(path, name))),
  ]);
}

function linkOf(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? [realpathSync(path)] : [];
  } catch {
    return [];
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Null if the system has no such file. */
function readMountTable(): MountTable | null {
  try {
    return new MountTable(readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    return null;
  }
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
