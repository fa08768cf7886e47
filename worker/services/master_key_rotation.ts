import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { AuditHeadRow } from '../store/audit_events.ts';
import type { Database, Statement } from '../store/database.ts';
import {
  forget,
  readInstallation,
  replaceInstalled,
  sealingWith,
  setAnew,
  stillInstalled,
} from '../store/installation.ts';
import { resealHead, sealedHeads } from '../store/sealed_rows.ts';
import { headText } from './commit.ts';
import { CONTROL_KEY_PLACE } from './control_key.ts';
import { SEALED_KINDS, type Sealed, type SealedKind } from './sealed_kinds.ts';
import { Vault } from './vault.ts';
import { opensVaultKeyCheck, sealVaultKeyCheck } from './vault_key_check.ts';

/** The master key that is to seal everything, and the one that sealed it so far. */
export interface KeyPair {
  readonly before: Secret;
  readonly after: Secret;
}

/** What a change of the master key did. */
export interface RotationReport {
  /** How many values of each kind went to the new key in this run. */
  readonly resealed: Readonly<Record<string, number>>;
  /** What neither key opens, and so is left as it is: damaged before, or altered. */
  readonly damaged: readonly string[];
}

export interface RotationRefusal {
  readonly reason: 'wrong_vault_key' | 'database_empty' | 'rotation_conflict';
  readonly message: string;
}

/** The keys of a change: each alone, and as the workers have them. */
interface Keys {
  readonly before: Vault;
  readonly after: Vault;
  readonly both: Vault;
}

/**
 * Changes the master key while workers serve that have both keys. It may end anywhere and be run again:
 *
 * 1. One write says which key seals from now on. From then no worker that seals with the other one starts or writes.
 * 2. What the old key sealed is sealed with the new one, each value only while it is the one that was read.
 * 3. When all of it was looked at, the database forgets the old key.
 */
export async function rotateMasterKey(
  database: Database,
  pair: KeyPair,
): Promise<Result<RotationReport, RotationRefusal>> {
  const before = await Vault.open(pair.before);
  const after = await Vault.open(pair.after);
  if (before.keyMark === after.keyMark) return err({ reason: 'wrong_vault_key', message: SAME_KEY });
  const keys = { before, after, both: await Vault.open(pair.after, pair.before) };
  const begun = await begin(database, keys);
  if (!begun.ok) return begun;
  const fenced = sealingWith(database, after);
  const report = await resealAll(fenced, keys);
  const ended = await fenced.write([forget(database, 'vault_key_previous_check')]);
  return ended.ok ? ok(report) : err({ reason: 'rotation_conflict', message: CONFLICT });
}

/** Why this key alone is not the one of a database; null when it is. */
export async function wrongKey(database: Database, key: Secret): Promise<RotationRefusal | null> {
  const installed = await readInstallation(database);
  return problemOf(installed, await Vault.open(key));
}

async function problemOf(installed: ReadonlyMap<string, string>, vault: Vault): Promise<RotationRefusal | null> {
  const check = installed.get('vault_key_check');
  if (check === undefined) return { reason: 'database_empty', message: EMPTY };
  const previous = installed.get('vault_key_previous_check') ?? check;
  const isOpen = (await opensVaultKeyCheck(vault, check)) && (await opensVaultKeyCheck(vault, previous));
  return isOpen ? null : { reason: 'wrong_vault_key', message: WRONG_KEYS };
}

const SAME_KEY = 'the new vault key is the old one: make another one (nothing was changed)';
const NOT_NEW =
  'SVC_VAULT_KEY is the key that this database has already: set it to the new key, and SVC_VAULT_KEY_PREVIOUS to this one (nothing was changed)';
const EMPTY = 'the database was never used: it has no vault key yet, so start the control plane with the new one';
const WRONG_KEYS =
  'wrong vault key: the keys that are given are not those of this database, or of the change that is under way; set SVC_VAULT_KEY to the new one and SVC_VAULT_KEY_PREVIOUS to the old one (nothing was changed)';
const CONFLICT = 'the master key is changed by another run at this time: run it again when that one is done';

async function begin(database: Database, { before, after, both }: Keys): Promise<Result<null, RotationRefusal>> {
  const installed = await readInstallation(database);
  const problem = await problemOf(installed, both);
  if (problem !== null) return err(problem);
  const check = installed.get('vault_key_check') ?? '';
  const isAfter = await opensVaultKeyCheck(after, check);
  if (isAfter && installed.get('vault_key_mark') === after.keyMark) return ok(null);
  if (isAfter && !installed.has('vault_key_previous_check'))
    return err({ reason: 'wrong_vault_key', message: NOT_NEW });
  const written = await database.write([
    ...stillInstalled('vault_key_check', check),
    setAnew(database, 'vault_key_check', await sealVaultKeyCheck(after)),
    setAnew(database, 'vault_key_previous_check', await sealVaultKeyCheck(before)),
    setAnew(database, 'vault_key_mark', after.keyMark),
  ]);
  return written.ok ? ok(null) : err({ reason: 'rotation_conflict', message: CONFLICT });
}

async function resealAll(database: Database, keys: Keys): Promise<RotationReport> {
  const resealed: Record<string, number> = {};
  const damaged: string[] = [];
  const count = (name: string, done: Done) => {
    resealed[name] = done.resealed;
    damaged.push(...done.damaged);
  };
  count('signing_key', await resealControlKey(database, keys));
  for (const kind of SEALED_KINDS) count(kind.name, await resealKind(database, keys, kind));
  count('audit_heads', await resealHeads(database, keys));
  return { resealed, damaged };
}

interface Done {
  readonly resealed: number;
  readonly damaged: readonly string[];
}

async function resealControlKey(database: Database, { before, after }: Keys): Promise<Done> {
  const sealed = (await readInstallation(database)).get('signing_key_sealed') ?? '';
  if ((await after.open(CONTROL_KEY_PLACE, sealed)) !== null) return { resealed: 0, damaged: [] };
  const secret = await before.open(CONTROL_KEY_PLACE, sealed);
  if (secret === null) return { resealed: 0, damaged: ['signing_key'] };
  const anew = await after.seal(CONTROL_KEY_PLACE, secret);
  const resealed = await applied(database, [
    replaceInstalled(database, 'signing_key_sealed', { before: sealed, after: anew }),
  ]);
  return { resealed, damaged: [] };
}

const ROWS_AT_A_TIME = 100;

/** What is written meanwhile is sealed with the new key, wherever in the order it comes: one pass sees all that is old. */
async function resealKind(database: Database, keys: Keys, kind: SealedKind): Promise<Done> {
  return eachPage(
    (after) => kind.page(database, { after, limit: ROWS_AT_A_TIME }),
    ({ id }) => id,
    (rows) => resealRows(database, keys, kind, rows),
  );
}

async function resealRows(database: Database, keys: Keys, kind: SealedKind, rows: readonly Sealed[]): Promise<Done> {
  const { before, after } = keys;
  const statements: Statement[] = [];
  const damaged: string[] = [];
  for (const row of rows) {
    const already = await after.open(row.place, row.text);
    if (already !== null && row.isOf(after)) continue;
    const secret = already ?? (await before.open(row.place, row.text));
    if (secret === null) damaged.push(`${kind.name} ${row.id}`);
    else statements.push(...(await row.reseal(after, secret)));
  }
  return { resealed: await applied(database, statements), damaged };
}

async function resealHeads(database: Database, keys: Keys): Promise<Done> {
  return eachPage(
    (after) => sealedHeads(database, { after, limit: ROWS_AT_A_TIME }),
    ({ writer }) => writer,
    (rows) => resealHeadRows(database, keys, rows),
  );
}

/** A head that neither key sealed was altered: it gets no seal, so that it goes on failing. */
async function resealHeadRows(
  database: Database,
  { before, after }: Keys,
  rows: readonly AuditHeadRow[],
): Promise<Done> {
  const statements: Statement[] = [];
  const damaged: string[] = [];
  for (const row of rows) {
    const text = headText(row.writer, row);
    const seal = await after.mac(text);
    if (row.seal === seal) continue;
    if (row.seal === (await before.mac(text))) statements.push(resealHead(database, row, seal));
    else damaged.push(`audit_heads ${row.writer}`);
  }
  return { resealed: await applied(database, statements), damaged };
}

async function eachPage<T>(
  read: (after: string) => Promise<readonly T[]>,
  keyOf: (row: T) => string,
  treat: (rows: readonly T[]) => Promise<Done>,
): Promise<Done> {
  let resealed = 0;
  const damaged: string[] = [];
  for (let after = ''; ;) {
    const rows = await read(after);
    const last = rows.at(-1);
    if (last === undefined) return { resealed, damaged };
    const done = await treat(rows);
    resealed += done.resealed;
    damaged.push(...done.damaged);
    after = keyOf(last);
  }
}

/** Writes, and says how many rows it changed: fewer than it was asked, where somebody wrote in between. */
async function applied(database: Database, statements: readonly Statement[]): Promise<number> {
  if (statements.length === 0) return 0;
  const written = await database.write(statements);
  if (!written.ok) throw Object.assign(new Error('another key is taken meanwhile'), { code: 'rotation_conflict' });
  return written.value.reduce((sum, rows) => sum + rows, 0);
}
