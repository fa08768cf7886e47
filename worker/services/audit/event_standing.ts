import { chainBreak, type ChainHead } from '../../../shared/audit/hash_chain.ts';
import type { ChainBreak } from '../../../shared/model/audit_event.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { findHead, listChain } from '../../store/audit/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import { isSealedHead } from '../../kernel/audit_seals.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { sha256Hex } from '../../kernel/sha256.ts';

/** Whether an event fits its position in the chain, what is wrong if not, and whether it is the newest event. */
export interface EventStanding {
  readonly problem: ChainBreak | null;
  readonly isNewest: boolean;
}

/**
 * Checks an event's hash, and its links to the event before and after it, or to the sealed head for the newest. Only
 * {@link verifyAudit} checks the whole chain.
 */
export async function eventStanding(context: ServiceContext, event: StoredAuditEvent): Promise<EventStanding> {
  const { writer, sequence, hash } = event;
  const head = await findHead(context.database, writer);
  const around = await listChain(context.database, writer, { after: Math.max(0, sequence - 2), limit: 3 });
  const at = (wanted: number) => around.find((row) => row.sequence === wanted);
  const before = at(sequence - 1);
  const start =
    before === undefined ? await findBeginning(context, writer) : { sequence: sequence - 1, hash: before.hash };
  const isNewest = head?.sequence === sequence;
  const standing = (problem: ChainBreak | null): EventStanding => ({ problem, isNewest });
  const problem = start === null ? 'wrong_beginning' : chainBreak(start, event, sha256Hex);
  if (problem !== null) return standing(problem);
  const next = at(sequence + 1);
  if (next !== undefined) return standing(next.previousHash === hash ? null : 'wrong_previous_hash');
  if (head === null || head.sequence < sequence) return standing('wrong_head');
  if (!isNewest) return standing('missing_event');
  return standing(head.hash === hash && (await isSealedHead(context.vault, head)) ? null : 'wrong_head');
}

/** The hash that the chain's first stored event follows; null if its record was altered. */
async function findBeginning(context: ServiceContext, writer: string): Promise<ChainHead | null> {
  const begun = await readBeginning(context, writer);
  return begun.ok ? begun.value.start : null;
}
