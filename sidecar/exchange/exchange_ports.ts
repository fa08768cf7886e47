import type { HashPort } from '../../shared/inject/outgoing_request.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import type { Limits } from '../../shared/model/limits.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type {
  ApprovalSource,
  AuditSink,
  CredentialSource,
  PolicySource,
  SessionLogin,
  SessionScopes,
  UpstreamLanes,
} from '../ports.ts';
import type { BodyBudget } from './body.ts';
import type { MaskedReplies } from './masked_replies.ts';
import type { MaterialCache } from './material.ts';
import type { RequestCounts } from './request_counts.ts';

/** The ports of an exchange; a test can replace each. */
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
  readonly counts: Pick<RequestCounts, 'refuse' | 'take' | 'meter'>;
  readonly hash: HashPort;
  /** What a session gets that narrows its secrets; absent: `credentials` serves every session. */
  readonly scopes?: SessionScopes;
}

/** Where a request of this session or step gets its credential; null: a call of the host token. */
export function credentialsFor(
  { scopes, credentials }: Pick<ExchangePorts, 'scopes' | 'credentials'>,
  id: string | null,
): CredentialSource {
  return scopes?.of(id) ?? credentials;
}

/** The tunnel of a request. The host it was opened for is the request's authority. */
export interface ExchangeTunnel {
  readonly sessionId: string;
  readonly host: string;
  /** The TLS server name that the client sent, if any. */
  readonly sni: string | null;
  /** The session may reach only some hosts, so that no request may name another host than the tunnel's. */
  readonly limited: boolean;
  /** The requests come and leave over plain HTTP, so that none of them may have a credential. */
  readonly plain?: boolean;
  /** The login that the session was started for; null in every other session. */
  readonly login: SessionLogin | null;
  /** Which account the session uses where a host has several; null: the request alone decides. */
  readonly choice: AccountChoice | null;
  /** See {@link LiveSession.credentialsId}. */
  readonly credentialsId: string;
  readonly client: Connection;
  readonly lanes: UpstreamLanes;
  /** Sends an interim reply (1xx) to the client: its bytes, or for HTTP/2 its fields. Resolves when the client can take more. */
  sendInterim(raw: Buffer, head: ReplyHead): Promise<void>;
  /** Counts a reply on a lane, also an interim one, in which something was masked. */
  noteMasked(lane: string): 'counted' | 'paused';
}
