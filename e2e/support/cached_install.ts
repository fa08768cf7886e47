import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cacheFolder } from './cached_root.ts';
import { ROOT, runOk, systemPath } from './program.ts';

interface LockedInstall {
  /** Names the folder; other installs of this name are of an old lock file, and go. */
  readonly name: string;
  /** The folder with `package.json` and `package-lock.json`. */
  readonly from: string;
  /** Package scripts to run, as paths in `node_modules`: npm runs none. */
  readonly scripts?: readonly string[];
}

/**
 * The folder of the packages of a lock file, installed once and shared by all runs on a machine if possible. Null if they are
 * missing and the tests may not install.
 */
export async function cachedInstall(install: LockedInstall): Promise<string | null> {
  const { name, from, scripts = [] } = install;
  const folder = folderOfInstall(install);
  if (existsSync(folder)) return folder;
  if (process.env['CI'] !== 'true' && process.env['SVC_TEST_INSTALL'] !== '1') return null;
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(from, file), join(fresh, file));
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await runOk('npm', args, { cwd: fresh, env: { PATH: systemPath() } });
    for (const script of scripts) await runOk('node', [join(fresh, 'node_modules', script)], { cwd: fresh });
    if (!existsSync(folder)) renameSync(fresh, folder);
    removeOthers(folder, name);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return folder;
}

/** Where the packages of a lock file are, once they are installed. */
export function folderOfInstall({ name, from }: Pick<LockedInstall, 'name' | 'from'>): string {
  const lock = createHash('sha256')
    .update(readFileSync(join(from, 'package-lock.json')))
    .digest('hex');
  return join(cacheFolder() ?? join(ROOT, 'node_modules', '.cache'), `${name}-${lock.slice(0, 16)}`);
}

function removeOthers(folder: string, name: string): void {
  const isInstall = new RegExp(`^${name}-[0-9a-f]{16}$`);
  for (const other of readdirSync(dirname(folder))) {
    if (isInstall.test(other) && other !== basename(folder)) {
      rmSync(join(dirname(folder), other), { recursive: true, force: true });
    }
  }
}
