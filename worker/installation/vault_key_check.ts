import { Secret } from '../../shared/model/secret.ts';
import type { Vault } from '../kernel/vault.ts';
import type { Refusal } from '../../shared/model/refusal.ts';

const CHECK_PLACE = { owner: 'installation', path: 'vault-key-check', version: 1 };
const CHECK_TEXT = 'this key opens this vault';

/** A value that only the database's master key opens. */
export function sealVaultKeyCheck(vault: Vault): Promise<string> {
  return vault.seal(CHECK_PLACE, new Secret(CHECK_TEXT));
}

/** Whether a key of this vault sealed the check. */
export async function opensVaultKeyCheck(vault: Vault, check: string): Promise<boolean> {
  return (await vault.open(CHECK_PLACE, check)) !== null;
}

export type VaultKeyRefusalReason = 'wrong_vault_key' | 'missing_vault_key';

/** Why a worker with these keys must not serve; null if it may. */
export async function checkVaultKey(
  vault: Vault,
  installed: ReadonlyMap<string, string>,
): Promise<Refusal<VaultKeyRefusalReason> | null> {
  if (!(await opensVaultKeyCheck(vault, installed.get('vault_key_check') ?? ''))) {
    return { reason: 'wrong_vault_key', message: WRONG_KEY };
  }
  const mark = installed.get('vault_key_mark') ?? vault.keyMark;
  if (mark !== vault.keyMark) return { reason: 'wrong_vault_key', message: REPLACED_KEY };
  const previous = installed.get('vault_key_previous_check');
  if (previous === undefined || (await opensVaultKeyCheck(vault, previous))) return null;
  return { reason: 'missing_vault_key', message: PREVIOUS_NEEDED };
}

const WRONG_KEY =
  'wrong vault key: this database was made with another one, or changed to another one; put that one back as $SVC_HOME/vault.key, or set SVC_VAULT_KEY to it';
const REPLACED_KEY =
  'wrong vault key: this database is changed to another one; set SVC_VAULT_KEY to the new key, and SVC_VAULT_KEY_PREVIOUS to the old one';
const PREVIOUS_NEEDED =
  'missing vault key: the change to this one is not finished; set SVC_VAULT_KEY_PREVIOUS to the old key until "svc vault rotate" says that it is';
