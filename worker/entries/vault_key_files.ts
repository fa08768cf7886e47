import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../shared/model/settings.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import type { KeyProtection } from '../../shared/model/key_protection.ts';
import { Secret } from '../../shared/model/secret.ts';
import { randomToken } from '../kernel/encoding.ts';
import {
  type HomeFiles,
  KEY_CHANGE_FILE,
  type KeyChange,
  type MasterKeys,
  readKeyChange,
  readMasterKeys,
  VAULT_KEY_FILE,
} from '../installation/local_home.ts';
import { homeFiles } from './node_home.ts';
import { nodeKms } from './kms/node_kms.ts';
import { type Keyring, osKeyring } from './os_keyring.ts';
import { ProgramError } from './program_error.ts';
import {
  findProtection,
  isProtected,
  openProtected,
  protect,
  type Protection,
  protectionOf,
  type Unlock,
} from './protected_key.ts';

/** What opens the files of a home. */
export type UnlockSettings = Pick<
  Settings,
  'vaultPassphrase' | 'vaultPassphraseFile' | 'kmsCredentialsFile' | 'kmsUrl'
> &
  Partial<Pick<Settings, 'upstreamCaFiles'>>;
export type KeySettings = Pick<Settings, 'vaultKey' | 'vaultKeyPrevious'> & UnlockSettings;

/** The master keys from the settings, otherwise from the files of `home`. */
export async function masterKeys(settings: KeySettings, home: string): Promise<MasterKeys> {
  const { vaultKey, vaultKeyPrevious } = settings;
  if (vaultKey !== undefined) return { masterKey: vaultKey, previousMasterKey: vaultKeyPrevious ?? null };
  return fileKeys(settings, home);
}

/** The master keys in the files of `home`. */
export async function fileKeys(settings: UnlockSettings, home: string): Promise<MasterKeys> {
  return valueOrKeyError(await readMasterKeys(keyFiles(settings, home)));
}

/** The files of `home`, of which those that are protected are opened, and made in the way in which the master key is protected. */
export function keyFiles(settings: UnlockSettings, home: string, keyring = osKeyring()): HomeFiles {
  const files = homeFiles(home);
  const unlock = unlockOf(settings, keyring);
  return {
    async read(name) {
      const text = await files.read(name);
      return text === null || !isProtected(text) ? text : openProtected(name, text, unlock);
    },
    async createOnce(name, text) {
      await files.createOnce(name, await sealedLike(files, unlock, name, text));
    },
  };
}

/** As the master key is protected now; a home without a key has no protection yet. */
async function sealedLike(files: HomeFiles, unlock: Unlock, name: string, text: string): Promise<string> {
  const now = await files.read(VAULT_KEY_FILE);
  if (now === null || !isProtected(now)) return text;
  return protect(name, text, await findProtection(VAULT_KEY_FILE, now, unlock));
}

function unlockOf(settings: UnlockSettings, keyring: Keyring): Unlock {
  const { vaultPassphrase, vaultPassphraseFile: file } = settings;
  const passphrase = (): Secret | null => {
    if (vaultPassphrase !== undefined) return vaultPassphrase;
    return file === undefined ? null : readPassphrase(file);
  };
  return { passphrase, keyring, kms: nodeKms(settings) };
}

function readPassphrase(file: string): Secret {
  try {
    return new Secret(readFileSync(file, 'utf8').replace(/\r?\n$/, ''));
  } catch (error) {
    const code = errorCode(error) || 'unknown';
    throw new ProgramError('vault_passphrase_missing', `SVC_VAULT_PASSPHRASE_FILE: ${file} cannot be read (${code})`);
  }
}

/** Protects the key in `home` in another way, from now on. The key itself stays the same. */
export async function protectKeyFile(
  settings: UnlockSettings,
  home: string,
  next: Protection | null,
  keyring = osKeyring(),
): Promise<void> {
  if ((await keyChange(settings, home, keyring)) !== null) {
    throw new ProgramError('rotation_conflict', 'the master key is being changed: finish that with svc vault rotate');
  }
  const before = await homeFiles(home).read(VAULT_KEY_FILE);
  const { masterKey } = valueOrKeyError(await readMasterKeys(keyFiles(settings, home, keyring)));
  if (before === null || masterKey === null)
    throw new ProgramError('missing_vault_key', `there is no vault.key in ${home}`);
  if (next?.by === 'keyring') await keyring.store(next.id, next.key);
  const content = `${masterKey.reveal()}\n`;
  const text = next === null ? content : await protect(VAULT_KEY_FILE, content, next);
  const passphrase = () => (next?.by === 'passphrase' ? next.passphrase : null);
  await checkOpens(text, content, { ...unlockOf(settings, keyring), passphrase });
  replaceFile(home, text);
  const old = isProtected(before) ? await findProtection(VAULT_KEY_FILE, before, unlockOf(settings, keyring)) : null;
  if (old?.by === 'keyring') await keyring.remove(old.id);
}

/** Before anything is replaced: what cannot be opened again would be lost. */
async function checkOpens(text: string, content: string, unlock: Unlock): Promise<void> {
  if (!isProtected(text)) return;
  if ((await openProtected(VAULT_KEY_FILE, text, unlock)) === content) return;
  throw new ProgramError('vault_key_damaged', 'the protected key does not open again: nothing was changed');
}

/** How the key in `home` is protected; nothing is opened. */
export async function keyProtection(home: string): Promise<KeyProtection> {
  return protectionOf(VAULT_KEY_FILE, await homeFiles(home).read(VAULT_KEY_FILE));
}

/** The master key change in progress in `home`; null if there is none. */
export async function keyChange(
  settings: UnlockSettings,
  home: string,
  keyring = osKeyring(),
): Promise<KeyChange | null> {
  return valueOrKeyError(await readKeyChange(keyFiles(settings, home, keyring)));
}

/**
 * Starts changing the key in `home`, or continues a change in progress. One file, created atomically, has both keys, so
 * that a later run uses the same ones. Only then the new key replaces the old one.
 */
export async function beginKeyChange(
  settings: UnlockSettings,
  home: string,
  before: Secret,
  keyring = osKeyring(),
): Promise<KeyChange> {
  const files = keyFiles(settings, home, keyring);
  if ((await keyChange(settings, home, keyring)) === null) {
    await files.createOnce(KEY_CHANGE_FILE, `${before.reveal()}\n${randomToken()}\n`);
    settle(home, KEY_CHANGE_FILE);
  }
  const change = await keyChange(settings, home, keyring);
  if (change === null)
    throw new ProgramError('rotation_conflict', 'another run has changed the key: run it again to change it once more');
  // Refuses where the file has a key that is neither of the two.
  valueOrKeyError(await readMasterKeys(files));
  const content = `${change.after.reveal()}\n`;
  replaceFile(home, await sealedLike(homeFiles(home), unlockOf(settings, keyring), VAULT_KEY_FILE, content));
  return change;
}

/** Forgets the old key, if the key file has the new one. */
export async function endKeyChange(
  settings: UnlockSettings,
  home: string,
  { after }: KeyChange,
  keyring = osKeyring(),
): Promise<void> {
  const { masterKey } = valueOrKeyError(await readMasterKeys(keyFiles(settings, home, keyring)));
  if (masterKey?.reveal() !== after.reveal()) {
    throw new ProgramError(
      'rotation_conflict',
      `${VAULT_KEY_FILE} was changed by another program: both keys are in ${KEY_CHANGE_FILE}`,
    );
  }
  rmSync(join(home, KEY_CHANGE_FILE), { force: true });
}

/** After a machine crash there is either the old or the new file, complete. */
function replaceFile(home: string, text: string): void {
  const draft = join(home, `.${VAULT_KEY_FILE}.${randomToken()}`);
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(draft, join(home, VAULT_KEY_FILE));
  settle(home, VAULT_KEY_FILE);
}

/** Flushes the file and its directory entry to disk. */
function settle(home: string, name: string): void {
  for (const path of [join(home, name), home]) {
    const file = openSync(path, 'r');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
}

function valueOrKeyError<T>(result: { ok: true; value: T } | { ok: false; error: string }): T {
  if (result.ok) return result.value;
  throw new ProgramError('vault_key_damaged', result.error);
}
