import { chainBreak, type ChainBreak, type ChainHead } from '../../shared/audit/hash_chain.ts';
import type { AuditVerification, BrokenChain } from '../../shared/wire/audit_events.ts';
import { listBegunWriters } from '../store/audit_beginnings.ts';
import { type AuditHeadRow, findHead, listChain, listHeads, listWriters } from '../store/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import { toStoredEvent } from './audit_log.ts';
import type { Caller } from './caller.ts';
import { headText } from './commit.ts';
import type { ServiceContext } from './service_context.ts';

type VerifiedChain = AuditVerification['chains'][number];

/**
 * Walks every chain of the caller's enterprise from where it begins up to the head it had when the walk began, and says where
 * the first one breaks. A chain without its sealed head, with events cut off its end, or cut off its beginning without a
 * sealed note of it, is broken too.
 */
export async function verifyAudit(context: ServiceContext, caller: Caller): Promise<AuditVerification> {
  const heads = await listHeads(context.database, caller.enterpriseId);
  const known = new Set(heads.map((head) => head.writer));
  const writers = [
    ...(await listWriters(context.database, caller.enterpriseId)),
    ...(await listBegunWriters(context.database, caller.enterpriseId)),
  ];
  const headless = writers.find((writer) => !known.has(writer));
  const chains: VerifiedChain[] = [];
  let firstBreak: BrokenChain | null = null;
  for (const head of heads) {
    const walked = await walk(context, head);
    firstBreak ??= walked.broken;
    chains.push(walked.chain);
  }
  firstBreak ??= headless === undefined ? null : await missingHead(context, headless);
  const sum = (of: 'events' | 'removed') => chains.reduce((total, chain) => total + chain[of], 0);
  return { ok: firstBreak === null, events: sum('events'), removed: sum('removed'), chains, first_break: firstBreak };
}

/** A writer may have begun its chain while the heads were read; only one that still has no head lost it. */
async function missingHead(context: ServiceContext, writer: string): Promise<BrokenChain | null> {
  if ((await findHead(context.database, writer)) !== null) return null;
  return { writer, sequence: 0, event_id: null, reason: 'wrong_head' };
}

interface Walked {
  readonly chain: VerifiedChain;
  readonly broken: BrokenChain | null;
}

/** One chain. Where its beginning is removed meanwhile, it is walked again from where it begins then. */
async function walk(context: ServiceContext, listed: AuditHeadRow): Promise<Walked> {
  let head = listed;
  for (;;) {
    const begun = await readBeginning(context, head.writer);
    if (!begun.ok) return brokenAt(head, { sequence: begun.error, hash: '' }, 'wrong_beginning');
    const { start } = begun.value;
    const walked = await walkFrom(context, head, start);
    if (walked.broken === null) return walked;
    const latest = (await findHead(context.database, head.writer)) ?? head;
    const now = await readBeginning(context, head.writer);
    const isStill = now.ok && now.value.start.sequence === start.sequence;
    if (isStill && (start.sequence <= head.sequence || latest.sequence === head.sequence)) return walked;
    head = latest;
  }
}

/** Whether the head of a chain is what this control plane sealed, by either key while the master key is changed. */
export async function hasSeal(context: ServiceContext, head: AuditHeadRow): Promise<boolean> {
  const seals = await context.vault.macs(headText(head.writer, head));
  return seals.includes(head.seal);
}

const ROWS_PER_READ = 500;

async function walkFrom(context: ServiceContext, head: AuditHeadRow, start: ChainHead): Promise<Walked> {
  const { writer } = head;
  let chain = describe(head, start);
  const broken = (sequence: number, eventId: string | null, reason: ChainBreak): Walked => {
    return { chain, broken: { writer, sequence, event_id: eventId, reason } };
  };
  if (!(await hasSeal(context, head))) return broken(head.sequence, null, 'wrong_head');
  if (start.sequence > head.sequence) return broken(start.sequence, null, 'wrong_beginning');
  let end = start;
  while (end.sequence < head.sequence) {
    const limit = Math.min(ROWS_PER_READ, head.sequence - end.sequence);
    const rows = await listChain(context.database, writer, { after: end.sequence, limit });
    if (rows.length === 0) return broken(end.sequence + 1, null, 'missing_event');
    chain = { ...chain, begins_at: chain.begins_at ?? rows[0]?.receivedAt ?? null };
    for (const row of rows) {
      const problem = await chainBreak(end, toStoredEvent(row));
      if (problem === 'missing_event') return broken(end.sequence + 1, null, problem);
      if (problem !== null) return broken(row.sequence, row.id, problem);
      end = { sequence: row.sequence, hash: row.hash };
    }
  }
  return end.hash === head.hash ? { chain, broken: null } : broken(head.sequence, null, 'wrong_head');
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

function brokenAt(head: AuditHeadRow, start: ChainHead, reason: ChainBreak): Walked {
  const { writer } = head;
  return { chain: describe(head, start), broken: { writer, sequence: start.sequence, event_id: null, reason } };
}
