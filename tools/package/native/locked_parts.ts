import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const LOCK = fileURLToPath(new URL('../../../package-lock.json', import.meta.url));

const client = z.object({ optionalDependencies: z.record(z.string(), z.string()) });
const part = z.object({ version: z.string(), integrity: z.string() });
const lockFile = z.object({ packages: z.record(z.string(), z.unknown()) });

/** The native parts of the libSQL client for all machines, as the lock file has them. */
export function lockedParts(): readonly (z.output<typeof part> & { readonly name: string })[] {
  const { packages } = lockFile.parse(JSON.parse(readFileSync(LOCK, 'utf8')));
  const { optionalDependencies } = client.parse(packages[join('node_modules', 'libsql')]);
  const names = Object.keys(optionalDependencies).toSorted();
  return names.map((name) => ({ name, ...part.parse(packages[join('node_modules', name)]) }));
}
