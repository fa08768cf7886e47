import type { ApiLimits } from '../../shared/model/limits.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { AuditSpool } from '../spool/audit_spool.ts';
import type { AuditWitness } from '../control/audit_witness.ts';
import type { ControlChannel, UnsealedRequest } from '../control/control_channel.ts';
import type { OperationRunner } from '../connector/operation_runner.ts';
import type { Link } from '../control/link.ts';
import type { MaskedReplies } from '../exchange/masked_replies.ts';
import type { Borrow } from '../borrow/open_borrow.ts';
import type { PlanLocks } from '../control/plan_locks.ts';
import type { SnapshotSource } from '../control/snapshot.ts';
import type { CredentialSource, SessionScopes } from '../ports.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { SessionListeners } from '../reach/session_listeners.ts';
import type { Sessions } from '../session/sessions.ts';
import type { McpOptions } from './mcp_options.ts';
import type { MetricsRegistry } from './metrics.ts';

/** How long a call waits until the control plane has its events. */
export const FLUSH_MS = 2_000;

/** The dependencies of the local API. */
export interface LocalApiOptions {
  readonly version: string;
  /** The token in the host token's file. */
  readonly hostToken: string;
  /** The proxy's origin; known only once it listens. */
  readonly proxyOrigin: () => string;
  /** Host header names to answer besides loopback's: the container bridge's address. */
  readonly hostNames?: readonly string[];
  readonly policy: Pick<
    SnapshotSource,
    'current' | 'bindings' | 'status' | 'waitForVersion' | 'waitForChange' | 'mcpServers'
  >;
  readonly credentials: Pick<CredentialSource, 'isStored'>;
  /** What a session gets that narrows its secrets. */
  readonly scopes: SessionScopes;
  readonly audit: Pick<AuditSpool, 'accepting' | 'pending' | 'record' | 'flush'>;
  /** The remembered heads of the control plane's audit log. */
  readonly witness: Pick<AuditWitness, 'heads' | 'mismatches' | 'isKept' | 'accept'>;
  /** The origin of the upstream proxy, without its password. */
  readonly upstreamProxy?: string | null;
  readonly link: Pick<Link, 'state' | 'lastError'>;
  readonly sessions: Sessions;
  readonly listeners: Pick<SessionListeners, 'planFor' | 'isInVirtualMachine' | 'open' | 'openSocket'>;
  readonly planLocks: PlanLocks;
  /** How often replies contained a credential, by session. */
  readonly masked: Pick<MaskedReplies, 'countsOfSession' | 'resume'>;
  readonly operations: OperationRunner;
  /** Asks for the logins that the user has opened, and takes their tokens. */
  readonly logins: Pick<ControlChannel, 'fetchLogin' | 'holdLogin'>;
  /** Asks the control plane for a credential that a program gets in plaintext. */
  readonly releaseUnsealed: (request: UnsealedRequest) => Promise<Result<Secret, Refusal>>;
  readonly borrow: Borrow;
  /** Absent if no MCP server runs. */
  readonly mcp?: McpOptions;
  readonly clock: Clock;
  readonly limits: Pick<ApiLimits, 'maxApiBodyBytes' | 'maxRunRequestBytes'>;
  readonly metrics: MetricsRegistry;
  /** Reports unexpected problems. */
  readonly warn: (message: string) => void;
}
