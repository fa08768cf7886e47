import { readFromReplica } from '../../kernel/replica_reads.ts';
import type { AppContext } from './app_env.ts';

/**
 * The only operations that may read from a database replica: lists for people, which change only together with an audit
 * event. What authorises a call is never read from a replica: sessions, revocations, codes, throttles, snapshots,
 * credentials, approvals and preconditions of writes.
 */
const FROM_REPLICA: ReadonlySet<string> = new Set([
  'get /v1/audit-events',
  'get /v1/connectors',
  'get /v1/host-bindings',
  'get /v1/secrets',
]);

/** Runs the operation of a route on the database that it may use. */
export async function onFittingDatabase<T>(
  c: AppContext,
  route: readonly [method: string, path: string],
  answer: () => Promise<T>,
): Promise<T> {
  if (!FROM_REPLICA.has(route.join(' '))) return answer();
  return readFromReplica(c.get('context'), c.get('caller').enterpriseId, (context) => {
    c.set('context', context);
    return answer();
  });
}
