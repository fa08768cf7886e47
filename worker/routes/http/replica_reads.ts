import { readFromReplica } from '../../kernel/replica_reads.ts';
import type { AppContext } from './app_env.ts';
import type { Method } from './operation.ts';

/**
 * The only operations that a replica of the database may answer: lists that people look at, whose content changes only
 * together with an audit event. What decides about a call never comes from a replica: who signed in, what was revoked,
 * codes and throttles, snapshots, credentials, approvals, what a write is based on.
 */
const FROM_REPLICA: ReadonlySet<string> = new Set([
  'get /v1/audit-events',
  'get /v1/connectors',
  'get /v1/host-bindings',
  'get /v1/secrets',
]);

/** Runs the operation of a route on the database that may answer it. */
export async function onFittingDatabase<T>(
  c: AppContext,
  route: readonly [Method, string],
  answer: () => Promise<T>,
): Promise<T> {
  if (!FROM_REPLICA.has(route.join(' '))) return answer();
  return readFromReplica(c.get('context'), c.get('caller').enterpriseId, (context) => {
    c.set('context', context);
    return answer();
  });
}
