import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { cacheFolder } from '../support/cached_root.ts';
import { ROOT, runOk, systemPath } from '../support/program.ts';

const packageFile = z.object({ dependencies: z.record(z.string(), z.string()) });
const HERE = import.meta.dirname;
const INSTALL_TIMEOUT_MS = 420_000;
/** The package scripts of these install their program; `--ignore-scripts` omits them. No other script is run. */
const PLACE_PROGRAMS = ['@anthropic-ai/claude-code/install.cjs', 'opencode-ai/postinstall.mjs'];

/** How a person installs the agents for the tests. */
export const INSTALL_COMMAND = 'SVC_TEST_INSTALL=1 npx vitest run e2e/agents';

/** The folder of this lock file's agents, shared by all runs on a machine if possible. */
function agentsFolder(): string {
  const lock = createHash('sha256')
    .update(readFileSync(join(HERE, 'package-lock.json')))
    .digest('hex');
  return join(cacheFolder() ?? join(ROOT, 'node_modules', '.cache'), `agents-${lock.slice(0, 16)}`);
}

/**
 * The folder with the agents' programs at the versions of the lock file. Installed once, if the tests may install. Null if they
 * are missing.
 */
export async function installAgents(): Promise<string | null> {
  const folder = agentsFolder();
  const programs = join(folder, 'node_modules', '.bin');
  if (existsSync(folder)) return programs;
  if (process.env['CI'] !== 'true' && process.env['SVC_TEST_INSTALL'] !== '1') return null;
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  try {
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(HERE, name), join(fresh, name));
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await runOk('npm', args, { cwd: fresh, env: { PATH: systemPath() }, timeoutMs: INSTALL_TIMEOUT_MS });
    for (const script of PLACE_PROGRAMS) await runOk('node', [join(fresh, 'node_modules', script)], { cwd: fresh });
    if (!existsSync(folder)) renameSync(fresh, folder);
    removeOthers(folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return programs;
}

/** Agents of an old lock file are large and no longer needed. */
function removeOthers(folder: string): void {
  for (const name of readdirSync(dirname(folder))) {
    if (/^agents-[0-9a-f]{16}$/.test(name) && name !== basename(folder)) {
      rmSync(join(dirname(folder), name), { recursive: true, force: true });
    }
  }
}

/** The version of each package that the lock file pins. */
export function pinnedVersion(name: string): string {
  const text = readFileSync(join(HERE, 'package.json'), 'utf8');
  return packageFile.parse(JSON.parse(text)).dependencies[name] ?? '';
}

const lockFile = z.object({ packages: z.record(z.string(), z.object({ integrity: z.string().optional() })) });

/** The hash of a package in the lock file. */
export function pinnedHash(name: string): string {
  const text = readFileSync(join(HERE, 'package-lock.json'), 'utf8');
  return lockFile.parse(JSON.parse(text)).packages[`node_modules/${name}`]?.integrity ?? '';
}
