import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { randomToken } from '../kernel/encoding.ts';

/** The private files of `$SVC_HOME`, by name. */
export interface HomeFiles {
  /** The text of a file; null if it does not exist. */
  read(name: string): Promise<string | null>;
  /**
   * Creates a file that only its owner may read. Does not change an existing one, also if two programs create it at
   * once.
   */
  createOnce(name: string, text: string): Promise<void>;
}

const LOCAL_KEY_FILE = 'local.key';
export const VAULT_KEY_FILE = 'vault.key';
/** While the master key is being changed: the old key and the new one, one per line. */
export const KEY_CHANGE_FILE = 'vault.key.change';
const LOCAL_KEY = /^svc_local_[A-Za-z0-9_-]{43}$/;
const VAULT_KEY = /^[A-Za-z0-9_-]{43}$/;

/** The key that signs the local user in; created if there is none. The error is a sentence. */
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

/** The problem with a `SVC_LOCAL_KEY` that is not a local key. */
export const LOCAL_KEY_PROBLEM =
  'SVC_LOCAL_KEY is not a local key: set it to svc_local_ and 43 characters (32 random bytes as base64url)';

/** Parses a local key; null if the text is not one. */
export function parseLocalKey(text: string): Secret | null {
  return LOCAL_KEY.test(text) ? new Secret(text) : null;
}

/** The stored master key; null if there is none. A damaged file is an error, never replaced by a new key. */
async function readMasterKey(files: HomeFiles): Promise<Result<Secret | null, string>> {
  const text = await files.read(VAULT_KEY_FILE);
  if (text === null) return ok(null);
  if (VAULT_KEY.test(text.trim())) return ok(new Secret(text.trim()));
  return err(
    `${VAULT_KEY_FILE} does not contain a vault key (32 bytes as base64url): restore the right file from a backup`,
  );
}

/** The keys of a vault: the first seals, the second only opens. */
export interface MasterKeys {
  readonly masterKey: Secret | null;
  readonly previousMasterKey: Secret | null;
}

/** The stored keys; two while the master key is being changed. */
export async function readMasterKeys(files: HomeFiles): Promise<Result<MasterKeys, string>> {
  const kept = await readMasterKey(files);
  if (!kept.ok) return kept;
  const change = await readKeyChange(files);
  if (!change.ok) return change;
  if (change.value === null) return ok({ masterKey: kept.value, previousMasterKey: null });
  const { before, after } = change.value;
  const text = kept.value?.reveal();
  if (text === after.reveal()) return ok({ masterKey: after, previousMasterKey: before });
  if (text === before.reveal()) return ok({ masterKey: before, previousMasterKey: after });
  return err(`${KEY_CHANGE_FILE} belongs to another key than ${VAULT_KEY_FILE}: restore both from a backup`);
}

/** A change of the master key, from start to end. */
export interface KeyChange {
  readonly before: Secret;
  readonly after: Secret;
}

/** The change in progress; null if there is none. */
export async function readKeyChange(files: HomeFiles): Promise<Result<KeyChange | null, string>> {
  const text = await files.read(KEY_CHANGE_FILE);
  if (text === null) return ok(null);
  const [before = '', after = '', ...rest] = text.trim().split('\n');
  if (VAULT_KEY.test(before) && VAULT_KEY.test(after) && before !== after && rest.length === 0) {
    return ok({ before: new Secret(before), after: new Secret(after) });
  }
  return err(`${KEY_CHANGE_FILE} does not contain two vault keys: restore it and ${VAULT_KEY_FILE} from a backup`);
}

/** Creates and stores a master key. */
export async function makeMasterKey(files: HomeFiles): Promise<Secret> {
  await files.createOnce(VAULT_KEY_FILE, `${randomToken()}\n`);
  const kept = await readMasterKey(files);
  if (!kept.ok || kept.value === null) throw new Error('storing the vault key failed');
  return kept.value;
}
