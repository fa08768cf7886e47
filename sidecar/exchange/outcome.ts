import type { ReplyType } from '../../shared/connect/login_reply.ts';
import type {
  CertificateFacts,
  ExchangeResult,
  ForwardedMediation,
  OperationFacts,
} from '../../shared/audit/exchange_event.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import type { HttpVersion } from '../../shared/net/http/http1_head.ts';
import { connectionTokens } from '../../shared/net/http/http1_head.ts';
import type { Reply } from './outgoing.ts';
import type { InForce } from './in_force.ts';
import type { Incoming } from './incoming.ts';
import type { ByteMeter } from './request_counts.ts';
import type { WithheldHeaders } from './sanitise_head.ts';

/** What the audit event needs to know of a request. Contains no secret. */
export interface Facts {
  readonly host: string;
  /** Null if the request could not be read. */
  readonly method: string | null;
  /** Without the query. */
  readonly path: string | null;
  readonly binding: HostBinding | null;
  /** Set if a request to an unbound host carries the placeholder of this binding. */
  readonly stray?: HostBinding;
  /** Set if the upstream connection was opened with a client certificate, or was to be. */
  readonly certificate?: CertificateFacts;
  /** Set if the request is an operation of a connector. */
  readonly operation?: OperationFacts;
  /** Set if the request was sent to a connector's GraphQL endpoint but was not recognised. */
  readonly connector?: InstalledConnector;
}

interface Refused {
  readonly kind: 'refused';
  readonly facts: Facts;
  readonly refusal: Refusal;
  /** True if the request was read to its end and the client keeps the connection. */
  readonly staysOpen: boolean;
}

export interface Replied {
  readonly kind: 'replied';
  readonly facts: Facts;
  readonly mediation: ForwardedMediation;
  readonly reply: Reply;
  /** The client's version; HTTP/1.0 has no chunked coding. */
  readonly version: HttpVersion;
  /** True if the client keeps the connection after this reply. */
  readonly staysOpen: boolean;
  /** What to mask in the reply; null on passthrough, which is exact. */
  readonly scrub: ScrubPatterns | null;
  /** The reply headers that were withheld, and those that passed only because the binding keeps cookies. */
  readonly withheldHeaders?: WithheldHeaders;
  /** For a credentialed request: whether its binding or connector is still in force while the reply is streamed. */
  readonly inForce?: InForce;
  /** Counts the body while it is given to the client. */
  readonly meter?: ByteMeter | null;
}

/** A request for the tokens of a program's login, which svc answers itself with placeholders, or with a reply that it has read. */
interface RepliedLocally {
  readonly kind: 'replied_locally';
  readonly facts: Facts;
  readonly body: string;
  readonly type: ReplyType;
  readonly result: Exclude<ExchangeResult, { readonly kind: 'refused' | 'unanswered' }>;
  readonly staysOpen: boolean;
}

/** The client disconnected before there was an answer. The request may have been sent, so it is recorded. */
interface Abandoned {
  readonly kind: 'abandoned';
  readonly facts: Facts;
}

/** The one result of an exchange. Every path ends in one of these, and one caller answers and records it. */
export type Outcome = Refused | Replied | RepliedLocally | Abandoned;

/** A refusal. Without `incoming` the rest of the request is unknown, so the tunnel ends. */
export function refuse(facts: Facts, why: Refusal, incoming?: Incoming, bodyWasRead = false): Refused {
  const staysOpen =
    incoming !== undefined && (bodyWasRead || incoming.framing.kind === 'none') && isPersistent(incoming);
  return { kind: 'refused', facts, refusal: why, staysOpen };
}

export function replyWith(
  incoming: Incoming,
  facts: Facts,
  mediation: ForwardedMediation,
  reply: Reply,
  scrub: ScrubPatterns | null,
): Replied {
  const { version } = incoming.head;
  return { kind: 'replied', facts, mediation, reply, version, staysOpen: isPersistent(incoming), scrub };
}

/** The request's body has been read. */
export function replyLocally(
  incoming: Incoming,
  facts: Facts,
  body: string,
  result: RepliedLocally['result'],
  type: ReplyType = 'json',
): RepliedLocally {
  return { kind: 'replied_locally', facts, body, type, result, staysOpen: isPersistent(incoming) };
}

/** Whether a credentialed reply keeps its cookies and challenges. A connector's reply never does. */
export function keepsCookies({ binding }: Pick<Facts, 'binding'>): boolean {
  return binding?.keepCookies === true;
}

export function abandon(facts: Facts): Abandoned {
  return { kind: 'abandoned', facts };
}

/** Whether the client keeps its connection (RFC 9112 section 9.3). */
function isPersistent({ head }: Incoming): boolean {
  const tokens = connectionTokens(head.fields);
  return head.version === '1.1' ? !tokens.has('close') : tokens.has('keep-alive');
}

export function auditUnavailable(): Refusal {
  return refusal('audit_unavailable', 'the audit spool is full or cannot be written; see `svc doctor`');
}
