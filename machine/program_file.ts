import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The programs that svc starts as processes of their own. tools/package/ bundles each. */
export const PROGRAMS = [
  'cli/main',
  'gateway/gateway_program',
  'sidecar/main',
  'worker/entries/db',
  'worker/entries/keys',
  'worker/entries/node',
  'worker/entries/owner',
  'worker/entries/vault',
  'worker/entries/vault_move',
] as const;
export type ProgramName = (typeof PROGRAMS)[number];

/** TypeScript in a checkout, bundled JavaScript in a package. */
const EXTENSION = extname(import.meta.url);

/** The absolute path of a program. */
export function programFile(name: ProgramName): string {
  return fileURLToPath(new URL(`../${name}${EXTENSION}`, import.meta.url));
}

/** A module that a checkout's control worker loads first; null in a package, which has nothing for it to speed up. */
export function controlWorkerPreload(): string | null {
  return EXTENSION === '.ts' ? fileURLToPath(new URL('../worker/entries/quick_imports.ts', import.meta.url)) : null;
}
