import type { HashPort } from '../../shared/inject/outgoing_request.ts';
import type { Limits } from '../../shared/model/limits.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { ApprovalSource, AuditSink, CredentialSource, PolicySource, UpstreamLanes } from '../ports.ts';
import type { BodyBudget } from './body.ts';
import type { MaskedReplies } from './masked_replies.ts';
import type { MaterialCache } from './material.ts';

/** What an exchange works with; all of it is replaceable in a test. */
export interface ExchangePorts {
  readonly policy: PolicySource;
  readonly credentials: CredentialSource;
  readonly approvals: ApprovalSource;
  readonly audit: Pick<AuditSink, 'accepting' | 'exhausted'>;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly budget: BodyBudget;
  readonly materials: MaterialCache;
  readonly masked: MaskedReplies;
  readonly hash: HashPort;
}

/** The tunnel a request came through: the host it was opened for is the request's authority. */
export interface ExchangeTunnel {
  readonly sessionId: string;
  readonly host: string;
  /** The TLS server name the client asked for, when it sent one. */
  readonly sni: string | null;
  readonly client: Connection;
  readonly lanes: UpstreamLanes;
  /** Sends an interim reply (1xx) to the client; resolves when there is room for more. */
  sendInterim(raw: Buffer): Promise<void>;
  /** Counts a reply on a lane, interim ones too, in which something was masked. */
  noteMasked(lane: string): 'counted' | 'paused';
}
