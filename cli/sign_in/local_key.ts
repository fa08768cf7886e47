import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTokenFile } from '../up/home.ts';

/** The key that authenticates the local owner, created once: `$SVC_HOME/local.key`, mode 0600. */
export function ensureLocalKey(home: string): string {
  const path = join(home, 'local.key');
  if (!existsSync(path)) makeKey(path);
  const key = readTokenFile(path);
  if (key === null) throw new Error(`${path} was deleted while it was read`);
  return key;
}

/** A hard link appears atomically, so that a partial key is never read and an existing key is never replaced. */
function makeKey(path: string): void {
  const own = `${path}.${process.pid}`;
  writeFileSync(own, `svc_local_${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  try {
    linkSync(own, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(own, { force: true });
  }
}
