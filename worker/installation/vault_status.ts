import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Database } from '../store/database.ts';
import { readInstallation } from '../store/installation.ts';
import type { MasterKeys } from './local_home.ts';
import { pagesOf, SEALED_KINDS, type SealedKind, type SealingKeys } from './sealed_kinds.ts';
import { Vault } from '../kernel/vault.ts';
import { checkVaultKey, type VaultKeyRefusalReason } from './vault_key_check.ts';
import type { Refusal } from '../../shared/model/refusal.ts';

/** How many values of one kind each key opens. */
interface SealedCount {
  readonly kind: string;
  readonly current: number;
  readonly previous: number;
  /** Opened by neither. */
  readonly damaged: number;
}

export interface VaultStatus {
  /** False if the previous key is still needed: then run `svc vault rotate`, again if it was interrupted. */
  readonly finished: boolean;
  readonly values: readonly SealedCount[];
}

/**
 * Counts which master key everything is sealed with. Reads all sealed values and writes nothing; `told` receives the
 * progress.
 */
export async function vaultStatus(
  database: Database,
  { masterKey, previousMasterKey }: MasterKeys,
  onProgress: (progress: string) => void = () => undefined,
): Promise<Result<VaultStatus, Refusal<VaultKeyRefusalReason>>> {
  if (masterKey === null) return err({ reason: 'missing_vault_key', message: NO_KEY });
  const installed = await readInstallation(database);
  const problem = await checkVaultKey(await Vault.open(masterKey, previousMasterKey), installed);
  if (problem !== null) return err(problem);
  const before = previousMasterKey && (await Vault.open(previousMasterKey));
  const keys = { before, after: await Vault.open(masterKey) };
  const values: SealedCount[] = [];
  for (const kind of SEALED_KINDS) values.push(await countOf(database, kind, keys, onProgress));
  const isUnderWay = installed.has('vault_key_previous_check');
  return ok({ finished: !isUnderWay && values.every(({ previous }) => previous === 0), values });
}

const NO_KEY = 'missing vault key: set SVC_VAULT_KEY, or restore vault.key in the home';

async function countOf(
  database: Database,
  kind: SealedKind,
  keys: SealingKeys,
  onProgress: (progress: string) => void,
): Promise<SealedCount> {
  const count = { kind: kind.name, current: 0, previous: 0, damaged: 0 };
  for await (const rows of pagesOf(database, kind)) {
    for (const row of rows) count[(await row.examine(keys)).state] += 1;
    onProgress(`${kind.name}: read ${count.current + count.previous + count.damaged}`);
  }
  return count;
}
