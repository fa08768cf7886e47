import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { OutboundRequest } from '../../kernel/outbound.ts';
import type { SinkTarget } from './sink_target.ts';

/** Events of one sink, in order. Sent again, a batch has the same id and the same events. */
export interface Batch {
  readonly id: string;
  readonly enterpriseId: string;
  readonly events: readonly StoredAuditEvent[];
  /** Grows from batch to batch of a sink, and is the same if one is sent again. */
  readonly after: number;
  readonly nowMs: number;
  /** The page that shows what waits for an approval; null if this control plane has no public URL. */
  readonly approvalsUrl: string | null;
}

/** What a receiver made of a batch. */
export type Delivery =
  /** `rejected`: how many of the events it left out, which must not be sent again. */
  | { readonly outcome: 'accepted'; readonly rejected?: number; readonly problem?: string }
  /** Of mail: who has got it, has; `missed` are members who have not. `mailing` is what the sink remembers. */
  | { readonly outcome: 'mailed'; readonly missed: Missed | null; readonly mailing: string }
  /** Of mail: nothing was sent, because there were as many messages in this hour as there may be. */
  | { readonly outcome: 'postponed'; readonly untilMs: number }
  /** It will never accept these events. */
  | { readonly outcome: 'refused'; readonly problem: string }
  | { readonly outcome: 'failed'; readonly problem: string; readonly afterMs?: number }
  /** It wants nothing any more. */
  | { readonly outcome: 'gone'; readonly problem: string };

/**
 * Members to whom a mail was not sent, and why. `isAll`: nobody got it. `afterMs`: it may go out later, and the service asks for this
 * pause; null if it refuses them all.
 */
export interface Missed {
  readonly userIds: readonly string[];
  readonly problem: string;
  readonly isAll: boolean;
  readonly afterMs: number | null;
}

/** One way to send events: how a batch is written, and how the answer is read. Both are pure but for signing. */
export type SinkKind = HttpSinkKind | StreamSinkKind | MailSinkKind;

interface CommonSinkKind {
  /** Whether its deliveries are signed with a secret of the sink. */
  readonly isSigned: boolean;
  /** Tells a person of something that waits: it is sent to at once, not only by the timer. */
  readonly isAlert: boolean;
}

/** A batch is one call over HTTP. */
export interface HttpSinkKind extends CommonSinkKind {
  /** By default a POST to the URL of the target. */
  write(
    target: SinkTarget,
    batch: Batch,
  ): Promise<Pick<OutboundRequest, 'headers' | 'body'> & Partial<Pick<OutboundRequest, 'method' | 'url'>>>;
  /** Reads the body of a 2xx answer; absent if it says nothing. */
  readonly readAccepted?: (body: string) => Delivery;
  /** The receiver stores whatever it gets, so that no answer is about the events. */
  readonly judgesNothing?: true;
}

/** A batch is the bytes of one TLS connection. */
export interface StreamSinkKind extends CommonSinkKind {
  frame(batch: Batch): Uint8Array<ArrayBuffer>;
}

/** A batch is one mail to each receiver. */
export interface MailSinkKind extends CommonSinkKind {
  compose(batch: Batch): { readonly subject: string; readonly text: string };
}
