import type { AuditBeginningRow } from '../../store/audit/audit_beginnings.ts';
import { type AuditHeadRow, type AuditWriterRow, beginChains } from '../../store/audit/audit_events.ts';
import { type Takeover, listTakeovers, readTakeover } from '../../store/audit/audit_takeover.ts';
import type { Database, Statement } from '../../store/database.ts';
import { resealBeginning, resealHead, sealTaken } from '../../store/sealed_rows.ts';
import {
  BROKEN_SEAL,
  FORMER_SEALS,
  NO_WRITERS,
  sealBeginning,
  sealHead,
  withWriter,
  type WriterSet,
} from '../../kernel/audit_seals.ts';
import { emptyHead } from '../../kernel/commit.ts';
import type { Vault } from '../../kernel/vault.ts';

/** A chain whose head or beginning had no valid earlier seal. It gets no new seal and keeps failing verification. */
export interface UnsealedChain {
  readonly enterpriseId: string;
  readonly writer: string;
}

/**
 * Seals the audit chains of a database again whose version's seals covered neither the enterprise nor the set of
 * writers. This happens once per enterprise, in one write. Valid chains are sealed again; invalid ones are named and
 * left. An enterprise that has any seal of this version is not taken over again, so that former seals can never be
 * reused.
 */
export async function takeOverAudit(database: Database, vault: Vault): Promise<readonly UnsealedChain[]> {
  const unsealed: UnsealedChain[] = [];
  for (let after: string | null = ''; after !== null;) {
    const due: readonly string[] = await listTakeovers(database, after);
    for (const enterpriseId of due) unsealed.push(...(await takeOver(database, vault, enterpriseId)));
    after = due.at(-1) ?? null;
  }
  return unsealed;
}

async function takeOver(database: Database, vault: Vault, enterpriseId: string): Promise<readonly UnsealedChain[]> {
  const found = await readTakeover(database, enterpriseId);
  const seals = [...found.heads, ...found.beginnings].map(({ seal }) => seal);
  if (seals.some((seal) => FORMER_SEALS.isOver(seal))) return [];
  const taken = await planTakeover(database, vault, enterpriseId, found);
  // A conflict: another worker that starts at the same time has done it.
  const written = await database.write(taken.statements);
  return written.ok ? taken.unsealed : [];
}

interface Taken {
  readonly statements: readonly Statement[];
  readonly unsealed: readonly UnsealedChain[];
}

async function planTakeover(database: Database, vault: Vault, enterpriseId: string, found: Takeover): Promise<Taken> {
  const heads = new Map(found.heads.map((head) => [head.writer, head]));
  const begun = new Set(found.beginnings.map(({ writer }) => writer));
  const recorded = new Set(found.writers);
  const writers: AuditWriterRow[] = [];
  let set = NO_WRITERS;
  const names = new Set([enterpriseId, ...found.sidecars, ...heads.keys(), ...recorded, ...begun]);
  for (const writer of names) {
    set = await withWriter(set, writer);
    writers.push({ enterpriseId, number: set.writers, writer });
  }
  const empty: AuditHeadRow[] = [];
  const resealed: Statement[] = [];
  const unsealed: UnsealedChain[] = [];
  for (const { writer } of writers) {
    const of = writer === enterpriseId ? set : NO_WRITERS;
    const head = heads.get(writer);
    if (head === undefined) {
      const isUnused = !recorded.has(writer) && !begun.has(writer);
      if (!isUnused) unsealed.push({ enterpriseId, writer });
      const first = await emptyHead(vault, { enterpriseId, writer }, of);
      // The control plane's head must exist, because it carries the set of writers.
      if (isUnused) empty.push(first);
      else if (writer === enterpriseId) empty.push({ ...first, seal: BROKEN_SEAL });
    } else if (await FORMER_SEALS.isHead(vault, head)) resealed.push(...(await headAnew(database, vault, head, of)));
    else unsealed.push({ enterpriseId, writer });
  }
  for (const beginning of found.beginnings) {
    if (await FORMER_SEALS.isBeginning(vault, beginning))
      resealed.push(...(await rewriteBeginning(database, vault, beginning)));
    else unsealed.push({ enterpriseId, writer: beginning.writer });
  }
  return { statements: [...beginChains(database, writers, empty), ...resealed], unsealed };
}

async function headAnew(database: Database, vault: Vault, head: AuditHeadRow, set: WriterSet): Promise<Statement[]> {
  const seal = await sealHead(vault, { ...head, ...set });
  return [set === NO_WRITERS ? resealHead(database, head, seal) : sealTaken(database, head, { ...set, seal })];
}

async function rewriteBeginning(database: Database, vault: Vault, beginning: AuditBeginningRow): Promise<Statement[]> {
  return [resealBeginning(database, beginning, await sealBeginning(vault, beginning))];
}
