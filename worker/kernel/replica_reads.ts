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
  const found = await readUpToDate(context, enterpriseId, read);
  return found === null ? read(context) : found.value;
}

/** Null if the replica is behind, too slow, or fails. */
async function readUpToDate<C extends ServiceContext, T>(
  context: C,
  enterpriseId: string,
  read: (context: C) => Promise<T>,
): Promise<{ readonly value: T } | null> {
  const { database } = context;
  if (database.replica === null) return null;
  try {
    // Its position and the list are of one moment: a replica that is started again may be behind where it was.
    return await database.replica.readTogether(async (copy) => {
      const marks = [auditMark(database, enterpriseId), markInTime(context, copy, enterpriseId)] as const;
      const [recorded, held] = await Promise.all(marks);
      return held === null || held < recorded ? null : { value: await read({ ...context, database: copy }) };
    });
  } catch (error) {
    if (!isWorthRetrying(error)) throw error;
    return null;
  }
}

/** How many recorded events of an enterprise the replica lacks; null if it does not answer in time, `none` if there is no replica. */
export async function replicaLag(context: ServiceContext, enterpriseId: string): Promise<number | null | 'none'> {
  const { database } = context;
  if (database.replica === null) return 'none';
  try {
    const held = await database.replica.readTogether((copy) => markInTime(context, copy, enterpriseId));
    return held === null ? null : Math.max(0, (await auditMark(database, enterpriseId)) - held);
  } catch (error) {
    if (!isWorthRetrying(error)) throw error;
    return null;
  }
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
