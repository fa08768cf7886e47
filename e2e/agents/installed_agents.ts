import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { cachedInstall } from '../support/cached_install.ts';

const packageFile = z.object({ dependencies: z.record(z.string(), z.string()) });
const HERE = import.meta.dirname;
/** The package scripts of these install their program; `--ignore-scripts` omits them. No other script is run. */
const PLACE_PROGRAMS = ['@anthropic-ai/claude-code/install.cjs', 'opencode-ai/postinstall.mjs'];

/** How a person installs the agents for the tests. */
export const INSTALL_COMMAND = 'SVC_TEST_INSTALL=1 npx vitest run e2e/agents';

/**
 * The folder with the agents' programs at the versions of the lock file. Installed once, if the tests may install. Null if they
 * are missing.
 */
export async function installAgents(): Promise<string | null> {
  const install = { name: 'agents', from: HERE, scripts: PLACE_PROGRAMS };
  const folder = await cachedInstall(install);
  return folder === null ? null : join(folder, 'node_modules', '.bin');
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
