import { chainBreak, type ChainBreak, type ChainHead, EMPTY_CHAIN } from '../../shared/audit/hash_chain.ts';
import type { AuditVerification } from '../../shared/wire/audit_events.ts';
import { type AuditHeadRow, listChain, listHeads, listWriters } from '../store/audit_events.ts';
import { toStoredEvent } from './audit_log.ts';
import type { Caller } from './caller.ts';
import { headText } from './commit.ts';
import type { ServiceContext } from './service_context.ts';

type FirstBreak = NonNullable<AuditVerification['first_break']>;

/**
 * Walks every chain of the caller's enterprise up to the head it had when the walk began, and says where the first one
 * breaks. A chain without its sealed head, or with events cut off its end, is broken too.
 */
export async function verifyAudit(context: ServiceContext, caller: Caller): Promise<AuditVerification> {
  const heads = await listHeads(context.database, caller.enterpriseId);
  const known = new Set(heads.map((head) => head.writer));
  const writers = await listWriters(context.database, caller.enterpriseId);
  const headless = writers.find((writer) => !known.has(writer));
  const chains: AuditVerification['chains'] = [];
  let firstBreak: FirstBreak | null = null;
  for (const head of heads) {
    firstBreak ??= await walk(context, head);
    chains.push({ writer: head.writer, events: head.sequence, head_hash: head.hash });
  }
  firstBreak ??= headless === undefined ? null : await missingHead(context, headless);
  const events = chains.reduce((sum, chain) => sum + chain.events, 0);
  return { ok: firstBreak === null, events, chains, first_break: firstBreak };
}

/** A writer may have begun its chain while the heads were read; only one that still has no head lost it. */
async function missingHead(context: ServiceContext, writer: string): Promise<FirstBreak | null> {
  const [first] = await listChain(context.database, writer, { after: 0, limit: 1 });
  const heads = first === undefined ? [] : await listHeads(context.database, first.enterpriseId);
  if (heads.some((head) => head.writer === writer)) return null;
  return { writer, sequence: 0, event_id: null, reason: 'wrong_head' };
}

const ROWS_PER_READ = 500;

async function walk(context: ServiceContext, head: AuditHeadRow): Promise<FirstBreak | null> {
  const { writer } = head;
  const broken = (sequence: number, eventId: string | null, reason: ChainBreak): FirstBreak => {
    return { writer, sequence, event_id: eventId, reason };
  };
  const seals = await context.vault.macs(headText(writer, head));
  if (!seals.includes(head.seal)) return broken(head.sequence, null, 'wrong_head');
  let end: ChainHead = EMPTY_CHAIN;
  while (end.sequence < head.sequence) {
    const limit = Math.min(ROWS_PER_READ, head.sequence - end.sequence);
    const rows = await listChain(context.database, writer, { after: end.sequence, limit });
    if (rows.length === 0) return broken(end.sequence + 1, null, 'missing_event');
    for (const row of rows) {
      const problem = await chainBreak(end, toStoredEvent(row));
      if (problem === 'missing_event') return broken(end.sequence + 1, null, problem);
      if (problem !== null) return broken(row.sequence, row.id, problem);
      end = { sequence: row.sequence, hash: row.hash };
    }
  }
  return end.hash === head.hash ? null : broken(head.sequence, null, 'wrong_head');
}
