import { runEnvironment } from '../../machine/borrow/run_environment.ts';
import type { RunsAs } from '../../machine/borrow/check_files.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { AuditSink } from '../ports.ts';
import { BorrowConsents } from './borrow_consents.ts';
import { BorrowedCredentials } from './borrowed_credentials.ts';

interface BorrowOptions {
  /** `$SVC_HOME`. */
  readonly home: string;
  readonly sidecarId: string;
  readonly clock: Clock;
  readonly credentialCacheSeconds: number;
  readonly behindMs: () => number;
  readonly record: AuditSink['record'];
  readonly warn: (message: string) => void;
}

/** Borrowed secrets on this machine: who consented to what, and the values. */
export interface Borrow {
  readonly consents: BorrowConsents;
  readonly credentials: BorrowedCredentials;
  readonly runsAs: RunsAs;
}

export function openBorrow(options: BorrowOptions): Borrow {
  const consents = new BorrowConsents(options);
  const runsAs = { uid: process.getuid?.() ?? 0 };
  const credentials = new BorrowedCredentials({
    ...options,
    consents,
    runsAs,
    monotonicNow: () => performance.now(),
    environment: runEnvironment,
  });
  return { consents, credentials, runsAs };
}
