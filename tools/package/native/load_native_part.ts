import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import parts from './native_parts.json' with { type: 'json' };

const requireHere = createRequire(import.meta.url);
const PART_BYTES = 256 * 1024;

/**
 * Loads the native part of the libSQL client, for the bundle. npm fetches that part from its registry, so the signature of a release
 * does not cover it: it is loaded only if its hash is the one in this file, which the signature covers. The file itself is named, so
 * nothing else of the fetched package runs.
 */
export function loadNativePart(target: string): unknown {
  const name = `@libsql/${target}`;
  const wanted = Object.entries(parts).find(([part]) => part === name)?.[1].sha256;
  if (wanted === undefined) throw new Error(`the database has no native part for ${target}`);
  const file = join(folderOf(name), 'index.node');
  checkNativePart(file, wanted);
  return requireHere(file);
}

/** Fails unless the file has that SHA-256, in hexadecimal digits. */
export function checkNativePart(file: string, wanted: string): void {
  const found = hashOf(file);
  if (found === wanted) return;
  throw new Error(
    `${file} is not the native part of the database that belongs to this release of svc (SHA-256 ${found}, expected ${wanted}): ` +
      'it was not loaded. Remove svc, and install it with a registry of npm that you trust',
  );
}

/** In parts that one buffer takes: to have room made for the whole file takes longer than to hash it. */
function hashOf(file: string): string {
  const hash = createHash('sha256');
  const part = Buffer.allocUnsafeSlow(PART_BYTES);
  const descriptor = openSync(file, 'r');
  try {
    for (let size = readSync(descriptor, part); size > 0; size = readSync(descriptor, part)) {
      hash.update(part.subarray(0, size));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest('hex');
}

function folderOf(name: string): string {
  try {
    return dirname(requireHere.resolve(`${name}/package.json`));
  } catch (cause) {
    throw new Error(
      `${name}, the database's native part for this machine, is missing: install svc again, without --omit=optional`,
      {
        cause,
      },
    );
  }
}
