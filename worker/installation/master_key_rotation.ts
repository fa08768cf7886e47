import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { guardNoRefresh } from '../store/connectors.ts';
import type { Database, Statement } from '../store/database.ts';
import { forget, readInstallation, withSealCondition, setAnew, guardInstalled } from '../store/installation.ts';
import { BACKOFF, LEASE_MS } from '../kernel/leased_renewal.ts';
import { pagesOf, SEALED_KINDS, type SealedKind, type SealedRow } from './sealed_kinds.ts';
import { Vault } from '../kernel/vault.ts';
import { opensVaultKeyCheck, sealVaultKeyCheck } from './vault_key_check.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { type Clock, SYSTEM_CLOCK } from '../kernel/clock.ts';

/** The master key that everything will be sealed with, and the one used so far. */
export interface KeyPair {
  readonly before: Secret;
  readonly after: Secret;
}

/** The result of a master key change. */
export interface RotationReport {
  /** How many values of each kind this run sealed with the new key. */
  readonly resealed: Readonly<Record<string, number>>;
  /** Values that neither key opens, and that are left as they are: they were damaged or altered before. */
  readonly damaged: readonly string[];
}

type RotationRefusalReason = 'wrong_vault_key' | 'database_empty' | 'rotation_conflict';

interface RotationHow {
  readonly clock: Clock;
  /** Receives progress messages. */
  readonly onProgress: (progress: string) => void;
}

/** The vaults of a change: with each key alone, and with both as the workers have it. */
interface Keys {
  readonly before: Vault;
  readonly after: Vault;
  readonly both: Vault;
}

/**
 * Changes the master key while workers with both keys serve. It may be killed at any point and run again:
 *
 * 1. One write sets which key seals from now on. From then on no worker that seals with the other one starts or writes.
 * 2. Each value sealed with the old key is sealed with the new one, unless it was changed since it was read.
 * 3. When everything was read, the database forgets the old key.
 */
export async function rotateMasterKey(
  database: Database,
  pair: KeyPair,
  how: RotationHow = { clock: SYSTEM_CLOCK, onProgress: () => undefined },
): Promise<Result<RotationReport, Refusal<RotationRefusalReason>>> {
  const before = await Vault.open(pair.before);
  const after = await Vault.open(pair.after);
  if (before.keyMark === after.keyMark) return err({ reason: 'wrong_vault_key', message: SAME_KEY });
  const keys = { before, after, both: await Vault.open(pair.after, pair.before) };
  const begun = await begin(database, keys, how);
  if (!begun.ok) return begun;
  const fenced = withSealCondition(database, after);
  const report = await resealAll(fenced, keys, how);
  const ended = await fenced.write([forget(database, 'vault_key_previous_check')]);
  return ended.ok ? ok(report) : err({ reason: 'rotation_conflict', message: CONFLICT });
}

/** Why this key alone is not the database's; null if it is. */
export async function wrongKey(database: Database, key: Secret): Promise<Refusal<RotationRefusalReason> | null> {
  const installed = await readInstallation(database);
  return problemOf(installed, await Vault.open(key));
}

async function problemOf(
  installed: ReadonlyMap<string, string>,
  vault: Vault,
): Promise<Refusal<RotationRefusalReason> | null> {
  const check = installed.get('vault_key_check');
  if (check === undefined) return { reason: 'database_empty', message: EMPTY };
  const previous = installed.get('vault_key_previous_check') ?? check;
  const isOpen = (await opensVaultKeyCheck(vault, check)) && (await opensVaultKeyCheck(vault, previous));
  return isOpen ? null : { reason: 'wrong_vault_key', message: WRONG_KEYS };
}

const SAME_KEY = 'the new vault key equals the old one: create another one (nothing was changed)';
const NOT_NEW =
  'SVC_VAULT_KEY is already the key of this database: set it to the new key, and SVC_VAULT_KEY_PREVIOUS to this one (nothing was changed)';
const EMPTY = 'the database was never used and has no vault key yet: start the control plane with the new one';
const WRONG_KEYS =
  'wrong vault key: the given keys are not those of this database or of the change in progress; set SVC_VAULT_KEY to the new one and SVC_VAULT_KEY_PREVIOUS to the old one (nothing was changed)';
const CONFLICT = 'another run is changing the master key: run it again when that one has finished';

/** How often it checks for a refresh in progress. */
const LOOK_MS = 200;

/**
 * Writes which key seals. It waits for a moment without a refresh of an OAuth credential: the provider may answer with
 * the only valid token, and a worker that seals with the old key could not store it after this write. The wait is at
 * most the longest time a refresh takes.
 */
async function begin(
  database: Database,
  keys: Keys,
  { clock, onProgress: told }: RotationHow,
): Promise<Result<null, Refusal<RotationRefusalReason>>> {
  const patienceEnds = clock.now() + LEASE_MS;
  for (;;) {
    const installed = await readInstallation(database);
    const needed = await needsBeginning(installed, keys);
    if (!needed.ok || !needed.value) return needed.ok ? ok(null) : needed;
    const now = clock.now();
    const quiet = now < patienceEnds ? guardNoRefresh(now, BACKOFF) : [];
    const written = await database.write([...quiet, ...(await beginRotation(database, installed, keys))]);
    if (written.ok) return ok(null);
    if (now >= patienceEnds) return err({ reason: 'rotation_conflict', message: CONFLICT });
    told('waiting for the refresh of an OAuth credential to end');
    await clock.sleep(LOOK_MS);
  }
}

/** Whether the change to this key must be started: not if it is in progress or done. */
async function needsBeginning(
  installed: ReadonlyMap<string, string>,
  { after, both }: Keys,
): Promise<Result<boolean, Refusal<RotationRefusalReason>>> {
  const problem = await problemOf(installed, both);
  if (problem !== null) return err(problem);
  const isAfter = await opensVaultKeyCheck(after, installed.get('vault_key_check') ?? '');
  if (isAfter && installed.get('vault_key_mark') === after.keyMark) return ok(false);
  if (isAfter && !installed.has('vault_key_previous_check'))
    return err({ reason: 'wrong_vault_key', message: NOT_NEW });
  return ok(true);
}

async function beginRotation(
  database: Database,
  installed: ReadonlyMap<string, string>,
  { before, after }: Keys,
): Promise<Statement[]> {
  return [
    ...guardInstalled('vault_key_check', installed.get('vault_key_check') ?? ''),
    setAnew(database, 'vault_key_check', await sealVaultKeyCheck(after)),
    setAnew(database, 'vault_key_previous_check', await sealVaultKeyCheck(before)),
    setAnew(database, 'vault_key_mark', after.keyMark),
  ];
}

async function resealAll(database: Database, keys: Keys, { onProgress: told }: RotationHow): Promise<RotationReport> {
  const resealed: Record<string, number> = {};
  const damaged: string[] = [];
  for (const kind of SEALED_KINDS) {
    const done = await resealKind(database, keys, kind, told);
    resealed[kind.name] = done.resealed;
    damaged.push(...done.damaged);
  }
  return { resealed, damaged };
}

interface Done {
  readonly resealed: number;
  readonly damaged: readonly string[];
}

/** Values written meanwhile are sealed with the new key, so one pass covers all old ones. */
async function resealKind(
  database: Database,
  keys: Keys,
  kind: SealedKind,
  onProgress: RotationHow['onProgress'],
): Promise<Done> {
  let resealed = 0;
  let looked = 0;
  const damaged: string[] = [];
  for await (const rows of pagesOf(database, kind)) {
    const done = await resealRows(database, keys, rows);
    resealed += done.resealed;
    damaged.push(...done.damaged.map((id) => `${kind.name} ${id}`));
    looked += rows.length;
    onProgress(`${kind.name}: read ${looked}, sealed ${resealed} again`);
  }
  return { resealed, damaged };
}

async function resealRows(database: Database, keys: Keys, rows: readonly SealedRow[]): Promise<Done> {
  const statements: Statement[] = [];
  const damaged: string[] = [];
  for (const row of rows) {
    const examined = await row.examine(keys);
    if (examined.state === 'damaged') damaged.push(row.id);
    else if (examined.state === 'previous') statements.push(...(await examined.reseal()));
  }
  return { resealed: await applyStatements(database, statements), damaged };
}

/** Writes, and returns how many rows changed; fewer if somebody wrote in between. */
async function applyStatements(database: Database, statements: readonly Statement[]): Promise<number> {
  if (statements.length === 0) return 0;
  const written = await database.write(statements);
  if (!written.ok)
    throw Object.assign(new Error('another key is being set at the same time'), { code: 'rotation_conflict' });
  return written.value.reduce((sum, rows) => sum + rows, 0);
}
