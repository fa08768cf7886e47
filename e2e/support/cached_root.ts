import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { runOk } from './program.ts';

interface RootArchive {
  readonly path: string;
  /** Removes it if it could not be kept. */
  release(): void;
}

/**
 * The archive of a root folder, from an earlier run where there is one of that name. The name says all that the content
 * depends on, so what is found can be used; where nothing may be kept, it is made each time.
 */
export async function cachedRoot(name: string, build: (root: string) => Promise<void>): Promise<RootArchive> {
  const cache = cacheFolder();
  const kept = cache === null ? null : join(cache, `${name}.tar`);
  if (kept !== null && statSync(kept, { throwIfNoEntry: false })?.isFile() === true) {
    return { path: kept, release: () => undefined };
  }
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-root-'));
  const root = join(folder, 'root');
  mkdirSync(root, { mode: 0o755 });
  await build(root);
  const path = join(folder, 'root.tar');
  await runOk('tar', ['--numeric-owner', '-C', root, '-cf', path, '.']);
  const release = (): void => rmSync(folder, { recursive: true, force: true });
  if (kept === null || !keep(path, kept)) return { path, release };
  release();
  return { path: kept, release: () => undefined };
}

/** A folder that only this user can write to, kept from run to run, or null. */
export function cacheFolder(): string | null {
  const folder = `/var/tmp/svc-e2e-${process.getuid?.() ?? 'any'}`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    return uid === process.getuid?.() && (mode & 0o077) === 0 ? folder : null;
  } catch {
    return null;
  }
}

/** Moves the archive to its place; archives of the same image that were made from another recipe go. */
function keep(from: string, to: string): boolean {
  try {
    renameSync(from, to);
  } catch {
    // The cache is on another file system: it is not needed.
    return false;
  }
  const folder = dirname(to);
  const own = basename(to);
  const image = own.slice(0, own.lastIndexOf('-') + 1);
  for (const name of readdirSync(folder)) {
    if (name !== own && name.startsWith(image)) rmSync(join(folder, name));
  }
  return true;
}
