import { chainBreak, type ChainHead } from '../../../shared/audit/hash_chain.ts';
import type { ChainBreak } from '../../../shared/model/audit_event.ts';
import type { AuditVerification, BrokenChain } from '../../../shared/wire/audit_events.ts';
import { listBegunWriters } from '../../store/audit/audit_beginnings.ts';
import {
  type AuditEventRow,
  type AuditHeadRow,
  findHead,
  findLast,
  listChain,
  listHeads,
  listWriters,
  listWriterSet,
} from '../../store/audit/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import { deriveColumns } from '../../kernel/commit.ts';
import { toStoredEvent } from './audit_log.ts';
import { isSealedHead, NO_WRITERS, withWriter } from '../../kernel/audit_seals.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { sha256Hex } from '../../kernel/sha256.ts';

type VerifiedChain = AuditVerification['chains'][number];

/**
 * Verifies every chain of the caller's enterprise from its beginning to the head it had at the start, and reports the
 * first break. A chain is also broken if it has no sealed head, if events were cut off its end, or if events
 * were cut off its beginning without a sealed record of that. The log is broken if the chains differ from the sealed
 * set of writers.
 */
export async function verifyAudit(context: ServiceContext, caller: Caller): Promise<AuditVerification> {
  const { enterpriseId } = caller;
  const { heads, set } = await context.database.readTogether(async (database) => ({
    heads: await listHeads(database, enterpriseId),
    set: await listWriterSet(database, enterpriseId),
  }));
  const chains: VerifiedChain[] = [];
  let firstBreak: BrokenChain | null = null;
  for (const head of heads) {
    const walked = await verifyChain(context, head);
    firstBreak ??= walked.broken;
    chains.push(walked.chain);
  }
  firstBreak ??= await headlessBreak(context, enterpriseId, heads);
  firstBreak ??= await writerSetBreak(
    enterpriseId,
    heads,
    set.map(({ writer }) => writer),
  );
  const sum = (of: 'events' | 'removed') => chains.reduce((total, chain) => total + chain[of], 0);
  const counts = { events: sum('events'), removed: sum('removed'), writers: set.length };
  return { ok: firstBreak === null, ...counts, chains, first_break: firstBreak };
}

/** A writer of events or of a beginning that has no head here. */
async function headlessBreak(
  context: ServiceContext,
  enterpriseId: string,
  heads: readonly AuditHeadRow[],
): Promise<BrokenChain | null> {
  const known = new Set(heads.map((head) => head.writer));
  const writers = [
    ...(await listWriters(context.database, enterpriseId)),
    ...(await listBegunWriters(context.database, enterpriseId)),
  ];
  for (const writer of writers) {
    if (known.has(writer)) continue;
    const head = await findHead(context.database, writer);
    if (head === null) return breakOf(writer, 'wrong_head');
    // A writer may have begun its chain while the heads were read, but not one of another enterprise.
    if (head.enterpriseId !== enterpriseId) return breakOf(writer, 'wrong_enterprise');
  }
  return null;
}

/** Compares the chains with the set of writers, and the set with what the control plane's sealed head says. */
async function writerSetBreak(
  enterpriseId: string,
  heads: readonly AuditHeadRow[],
  writers: readonly string[],
): Promise<BrokenChain | null> {
  const own = heads.find(({ writer }) => writer === enterpriseId);
  if (own === undefined) return breakOf(enterpriseId, 'wrong_head');
  let set = NO_WRITERS;
  for (const writer of writers) set = await withWriter(set, writer);
  if (set.writers !== own.writers || set.writersHash !== own.writersHash) return breakOf(enterpriseId, 'wrong_writers');
  const written = new Set(heads.map(({ writer }) => writer));
  const gone = writers.find((writer) => !written.has(writer));
  if (gone !== undefined) return breakOf(gone, 'missing_chain');
  const named = new Set(writers);
  const added = heads.find(({ writer }) => !named.has(writer));
  return added === undefined ? null : breakOf(added.writer, 'wrong_writers');
}

function breakOf(writer: string, reason: ChainBreak): BrokenChain {
  return { writer, sequence: 0, event_id: null, reason };
}

interface Walked {
  readonly chain: VerifiedChain;
  readonly broken: BrokenChain | null;
}

/** Verifies one chain. If its beginning is removed meanwhile, starts again from the new beginning. */
async function verifyChain(context: ServiceContext, listed: AuditHeadRow): Promise<Walked> {
  let head = listed;
  for (;;) {
    const begun = await readBeginning(context, head.writer);
    if (!begun.ok) return breakAt(head, { sequence: begun.error, hash: '' }, 'wrong_beginning');
    const { start } = begun.value;
    const walked = await verifyFrom(context, head, start);
    if (walked.broken === null) return walked;
    const latest = (await findHead(context.database, head.writer)) ?? head;
    const now = await readBeginning(context, head.writer);
    const isStill = now.ok && now.value.start.sequence === start.sequence;
    if (isStill && (start.sequence <= head.sequence || latest.sequence === head.sequence)) return walked;
    head = latest;
  }
}

const ROWS_PER_READ = 500;

async function verifyFrom(context: ServiceContext, head: AuditHeadRow, start: ChainHead): Promise<Walked> {
  const { writer } = head;
  let chain = describe(head, start);
  const broken = (sequence: number, eventId: string | null, reason: ChainBreak): Walked => {
    return { chain, broken: { writer, sequence, event_id: eventId, reason } };
  };
  if (!(await isSealedHead(context.vault, head))) return broken(head.sequence, null, 'wrong_head');
  if (start.sequence > head.sequence) return broken(start.sequence, null, 'wrong_beginning');
  let end = start;
  while (end.sequence < head.sequence) {
    const limit = Math.min(ROWS_PER_READ, head.sequence - end.sequence);
    const rows = await listChain(context.database, writer, { after: end.sequence, limit });
    if (rows.length === 0) return broken(end.sequence + 1, null, 'missing_event');
    chain = { ...chain, begins_at: chain.begins_at ?? rows[0]?.receivedAt ?? null };
    for (const row of rows) {
      const problem = rowBreak(head, end, row);
      if (problem === 'missing_event') return broken(end.sequence + 1, null, problem);
      if (problem !== null) return broken(row.sequence, row.id, problem);
      end = { sequence: row.sequence, hash: row.hash };
    }
  }
  if (end.hash !== head.hash) return broken(head.sequence, null, 'wrong_head');
  return (await isPassed(context, head)) ? broken(head.sequence, null, 'wrong_head') : { chain, broken: null };
}

/** What is wrong with an event's row: its position in the chain, its owner, or its indexed columns. */
function rowBreak(head: AuditHeadRow, end: ChainHead, row: AuditEventRow): ChainBreak | null {
  const event = toStoredEvent(row);
  const problem = chainBreak(end, event, sha256Hex);
  if (problem !== null) return problem;
  if (row.enterpriseId !== head.enterpriseId) return 'wrong_enterprise';
  const { host, connector } = deriveColumns(event);
  return row.host === host && row.connector === connector ? null : 'wrong_hash';
}

/** Whether there are events after the head that are not being written right now: then an older head was restored. */
async function isPassed(context: ServiceContext, head: AuditHeadRow): Promise<boolean> {
  const last = await findLast(context.database, head.writer);
  if (last === null || last.sequence <= head.sequence) return false;
  const latest = await findHead(context.database, head.writer);
  return latest === null || latest.sequence < last.sequence;
}

function describe(head: AuditHeadRow, start: ChainHead): VerifiedChain {
  return {
    writer: head.writer,
    events: Math.max(0, head.sequence - start.sequence),
    removed: start.sequence,
    beginning_hash: start.hash,
    begins_at: null,
    head_hash: head.hash,
  };
}

function breakAt(head: AuditHeadRow, start: ChainHead, reason: ChainBreak): Walked {
  const { writer } = head;
  return { chain: describe(head, start), broken: { writer, sequence: start.sequence, event_id: null, reason } };
}
