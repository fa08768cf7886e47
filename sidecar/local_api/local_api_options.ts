import type { AuditSpool } from '../control/audit_spool.ts';
import type { Link } from '../control/link.ts';
import type { SnapshotSource } from '../control/snapshot.ts';
import type { Sessions } from '../session/sessions.ts';
import type { MetricsRegistry } from './metrics.ts';

/** What the local API stands on. */
export interface LocalApiOptions {
  readonly version: string;
  /** What is in the host token's file. */
  readonly hostToken: string;
  /** Where the proxy listens, as an origin; known only once it does. */
  readonly proxyOrigin: () => string;
  /** The names in Host headers that are answered besides loopback's: the container bridge's address. */
  readonly hostNames?: readonly string[];
  readonly policy: Pick<SnapshotSource, 'current' | 'bindings' | 'status' | 'waitForVersion'>;
  readonly audit: Pick<AuditSpool, 'accepting' | 'pending' | 'flush'>;
  readonly link: Pick<Link, 'state' | 'lastError'>;
  readonly sessions: Sessions;
  readonly metrics: MetricsRegistry;
  /** Told of what should not happen. */
  readonly warn: (message: string) => void;
  /** How long creating a session waits for the policy. */
  readonly policyWaitMs?: number;
  /** How long ending a session waits for its events. */
  readonly flushMs?: number;
}
