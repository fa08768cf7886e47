import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTokenFile } from '../up/home.ts';

/** The key that signs the local owner in, made once: `$SVC_HOME/local.key`, mode 0600. */
export function ensureLocalKey(home: string): string {
  const path = join(home, 'local.key');
  if (!existsSync(path)) makeKey(path);
  const key = readTokenFile(path);
  if (key === null) throw new Error(`${path} vanished while it was read`);
  return key;
}

/** A link appears whole or not at all, so that a half-written key is never read and an existing one never replaced. */
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
