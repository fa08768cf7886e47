import { type ChainHead, EMPTY_CHAIN } from '../../../shared/audit/hash_chain.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { type AuditBeginningRow, findBeginning } from '../../store/audit/audit_beginnings.ts';
import { isSealedBeginning } from '../../kernel/audit_seals.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** The beginning of a chain: the event before its first one. */
interface Beginning {
  readonly row: AuditBeginningRow | null;
  readonly start: ChainHead;
}

/** Finds where a writer's chain begins. If its seal is invalid, the error is the stored sequence number. */
export async function readBeginning(context: ServiceContext, writer: string): Promise<Result<Beginning, number>> {
  const row = await findBeginning(context.database, writer);
  if (row === null) return ok({ row, start: EMPTY_CHAIN });
  if (!(await isSealedBeginning(context.vault, row))) return err(row.sequence);
  return ok({ row, start: { sequence: row.sequence, hash: row.hash } });
}
