import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import type { HttpVersion } from '../../shared/net/http1_head.ts';
import type { Reply } from './forward.ts';

/** What is known of a request, for its audit event. Nothing here can hold a secret. */
export interface Facts {
  readonly host: string;
  /** Null when the request could not be read. */
  readonly method: string | null;
  /** Without the query. */
  readonly path: string | null;
  readonly binding: HostBinding | null;
}

/** How a request that was forwarded was treated. `foreign`: a binding matched, but the client brought its own credential. */
export type Mediation = 'binding' | 'passthrough' | 'foreign';

export interface Refused {
  readonly kind: 'refused';
  readonly facts: Facts;
  readonly refusal: Refusal;
  /** True when nothing of the request is left unread and the client keeps the connection. */
  readonly staysOpen: boolean;
}

export interface Replied {
  readonly kind: 'replied';
  readonly facts: Facts;
  readonly mediation: Mediation;
  readonly reply: Reply;
  /** The client's version: HTTP/1.0 knows no chunks. */
  readonly version: HttpVersion;
  /** True when the client keeps the connection after this reply. */
  readonly staysOpen: boolean;
  /** What to mask in the reply; null on passthrough, which is exact. */
  readonly scrub: ScrubPatterns | null;
}

/** The client went away before there was an answer; the request may have been sent, so it is recorded all the same. */
export interface Abandoned {
  readonly kind: 'abandoned';
  readonly facts: Facts;
}

/** The one result of an exchange: every path ends in one of these, and one caller answers and records it. */
export type Outcome = Refused | Replied | Abandoned;
