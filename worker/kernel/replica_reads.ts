import { type AuditMark, auditMark } from '../store/audit_events.ts';
import type { Database } from '../store/database.ts';
import { isWorthRetrying } from './failures.ts';
import type { ServiceContext } from './service_context.ts';

/** How long a replica may take to say how far it is. After that the primary is asked, as if there were no replica. */
const REPLICA_MS = 500;

/**
 * Answers a reading from the replica when it is there, and holds everything that was recorded for this enterprise before the
 * call: a caller finds what it, or anybody of its enterprise, wrote on whichever worker. Else, and when the replica fails
 * half-way, the primary answers. Whatever changes a list writes an audit event in the same transaction, so the ends of the
 * enterprise's audit chains say how far a copy of the database is.
 */
export async function readFromReplica<C extends ServiceContext, T>(
  context: C,
  enterpriseId: string,
  read: (context: C) => Promise<T>,
): Promise<T> {
  const copy = await upToDateReplica(context, enterpriseId);
  if (copy === null) return read(context);
  try {
    return await read({ ...context, database: copy });
  } catch (error) {
    if (!isWorthRetrying(error)) throw error;
    return read(context);
  }
}

/** The replica as a database whose writes still go to the primary; null when it does not answer in time or lags behind. */
async function upToDateReplica(context: ServiceContext, enterpriseId: string): Promise<Database | null> {
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
