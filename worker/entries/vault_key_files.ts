import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../shared/model/settings.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { randomToken } from '../kernel/encoding.ts';
import {
  KEY_CHANGE_FILE,
  type KeyChange,
  type MasterKeys,
  readKeyChange,
  readMasterKeys,
  VAULT_KEY_FILE,
} from '../installation/local_home.ts';
import { homeFiles } from './node_home.ts';
import { ProgramError } from './program_error.ts';

type KeySettings = Pick<Settings, 'vaultKey' | 'vaultKeyPrevious'>;

/** The master keys from the settings, otherwise from the files of `home`. */
export async function masterKeys({ vaultKey, vaultKeyPrevious }: KeySettings, home: string): Promise<MasterKeys> {
  if (vaultKey !== undefined) return { masterKey: vaultKey, previousMasterKey: vaultKeyPrevious ?? null };
  return valueOrKeyError(await readMasterKeys(homeFiles(home)));
}

/** The master key change in progress in `home`; null if there is none. */
export async function keyChange(home: string): Promise<KeyChange | null> {
  return valueOrKeyError(await readKeyChange(homeFiles(home)));
}

/**
 * Starts changing the key in `home`, or continues a change in progress. One file, created atomically, has both keys, so
 * that a later run uses the same ones. Only then the new key replaces the old one.
 */
export async function beginKeyChange(home: string, before: Secret): Promise<KeyChange> {
  if ((await keyChange(home)) === null) {
    await homeFiles(home).createOnce(KEY_CHANGE_FILE, `${before.reveal()}\n${randomToken()}\n`);
    settle(home, KEY_CHANGE_FILE);
  }
  const change = await keyChange(home);
  if (change === null)
    throw new ProgramError('rotation_conflict', 'another run has changed the key: run it again to change it once more');
  // Refuses where the file has a key that is neither of the two.
  valueOrKeyError(await readMasterKeys(homeFiles(home)));
  replaceKey(home, change.after);
  return change;
}

/** Forgets the old key, if the key file has the new one. */
export async function endKeyChange(home: string, { after }: KeyChange): Promise<void> {
  const { masterKey } = valueOrKeyError(await readMasterKeys(homeFiles(home)));
  if (masterKey?.reveal() !== after.reveal()) {
    throw new ProgramError(
      'rotation_conflict',
      `${VAULT_KEY_FILE} was changed by another program: both keys are in ${KEY_CHANGE_FILE}`,
    );
  }
  rmSync(join(home, KEY_CHANGE_FILE), { force: true });
}

/** After a machine crash there is either the old or the new file, complete. */
function replaceKey(home: string, key: Secret): void {
  const draft = join(home, `.${VAULT_KEY_FILE}.${randomToken()}`);
  writeFileSync(draft, `${key.reveal()}\n`, { mode: 0o600, flag: 'wx', flush: true });
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
