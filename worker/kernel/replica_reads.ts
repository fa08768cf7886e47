import { type AuditMark, auditMark } from '../store/audit/audit_events.ts';
import type { Database } from '../store/database.ts';
import { isWorthRetrying } from './is_worth_retrying.ts';
import type { ServiceContext } from './service_context.ts';

/** How long a replica may take to report its position. After that the primary is read. */
const REPLICA_MS = 500;

/**
 * Reads from the replica if it has everything that was recorded for this enterprise before the call, so that callers
 * see their own writes and those of their enterprise, from any worker. Otherwise, or if the replica fails, it reads
 * from the primary. Every change of a list writes an audit event in the same transaction, so the heads of the
 * enterprise's audit chains show how current a replica is.
 */
export async function readFromReplica<C extends ServiceContext, T>(
  context: C,
  enterpriseId: string,
  read: (context: C) => Promise<T>,
): Promise<T> {
  const copy = await findUpToDateReplica(context, enterpriseId);
  if (copy === null) return read(context);
  try {
    return await read({ ...context, database: copy });
  } catch (error) {
    if (!isWorthRetrying(error)) throw error;
    return read(context);
  }
}

/** A database that reads from the replica and writes to the primary; null if the replica is stale or too slow. */
async function findUpToDateReplica(context: ServiceContext, enterpriseId: string): Promise<Database | null> {
  const { database } = context;
  if (database.replica === null) return null;
  const copy = { ...database, read: database.replica };
  const [recorded, held] = await Promise.all([
    auditMark(database, enterpriseId),
    markInTime(context, copy, enterpriseId),
  ]);
  return held !== null && held >= recorded ? copy : null;
}

async function markInTime(context: ServiceContext, copy: Database, enterpriseId: string): Promise<AuditMark | null> {
  const answered = new AbortController();
  const mark = auditMark(copy, enterpriseId).catch((error: unknown) => {
    if (isWorthRetrying(error)) return null;
    throw error;
  });
  const late = context.clock.sleep(REPLICA_MS, answered.signal).then(() => null);
  return Promise.race([mark, late]).finally(() => answered.abort());
}
