import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { randomToken } from './encoding.ts';

/** The private files of `$SVC_HOME`, by name. */
export interface HomeFiles {
  /** The text of a file, or null when there is none. */
  read(name: string): Promise<string | null>;
  /** Makes a file that only its owner may read. Leaves one that is there as it is, also when two make it at once. */
  createOnce(name: string, text: string): Promise<void>;
}

export const LOCAL_KEY_FILE = 'local.key';
export const VAULT_KEY_FILE = 'vault.key';
const LOCAL_KEY = /^svc_local_[A-Za-z0-9_-]{43}$/;
const VAULT_KEY = /^[A-Za-z0-9_-]{43}$/;

/** The key that signs the local user in; made when there is none. Refuses with a sentence. */
export async function openLocalKey(files: HomeFiles): Promise<Result<Secret, string>> {
  if ((await files.read(LOCAL_KEY_FILE)) === null) {
    await files.createOnce(LOCAL_KEY_FILE, `svc_local_${randomToken()}\n`);
  }
  const key = parseLocalKey(((await files.read(LOCAL_KEY_FILE)) ?? '').trim());
  if (key !== null) return ok(key);
  return err(
    `${LOCAL_KEY_FILE} does not hold a local key (svc_local_ and 43 characters): delete it, and start again for a new one`,
  );
}

/** A local key; null when the text is none. */
export function parseLocalKey(text: string): Secret | null {
  return LOCAL_KEY.test(text) ? new Secret(text) : null;
}

/** The master key that was kept here; null when there is none. A damaged file is a refusal, never a reason for a new key. */
export async function readMasterKey(files: HomeFiles): Promise<Result<Secret | null, string>> {
  const text = await files.read(VAULT_KEY_FILE);
  if (text === null) return ok(null);
  if (VAULT_KEY.test(text.trim())) return ok(new Secret(text.trim()));
  return err(
    `${VAULT_KEY_FILE} does not hold a vault key (32 bytes as base64url): put the right file back from a backup`,
  );
}

/** Makes a master key and keeps it. */
export async function makeMasterKey(files: HomeFiles): Promise<Secret> {
  await files.createOnce(VAULT_KEY_FILE, `${randomToken()}\n`);
  const kept = await readMasterKey(files);
  if (!kept.ok || kept.value === null) throw new Error('the vault key could not be kept');
  return kept.value;
}
