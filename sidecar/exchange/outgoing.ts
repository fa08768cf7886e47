import type { BodyTransform } from '../../shared/inject/outgoing_request.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, type Result } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import type { ReplyHead, RequestHead } from '../../shared/net/http/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { PresentedCertificate, UpstreamLanes, UpstreamStream } from '../ports.ts';
import { describeCertificateAlert } from '../../shared/net/certificate_alert.ts';
import type { InForce } from './in_force.ts';
import type { ByteMeter } from './request_counts.ts';
import type { BodyEnd } from './stream_body.ts';

/** An outgoing request. */
export interface Outgoing {
  readonly head: RequestHead;
  /** The bytes of the head as received, if it goes out unchanged. */
  readonly raw: Buffer | null;
  readonly body: OutgoingBody;
  /** The protocol to which a 101 may switch the connection; in HTTP/2, what a stream may become. */
  readonly upgrade: 'none' | 'websocket' | 'any';
  /** The upstream connection of the tunnel that carries it. */
  readonly lane: string;
  /** Stands for the released values in it: the same object only for the same values of one binding. Null: it has none. */
  readonly credential: object | null;
  /** The client certificate of its upstream connection; null or absent: it has none. */
  readonly certificate?: PresentedCertificate | null;
}

/** `bytes` is in memory and can be sent again; `stream` is copied from the client as it arrives. */
export type OutgoingBody =
  | { readonly kind: 'bytes'; readonly chunks: readonly Uint8Array[] }
  | { readonly kind: 'stream'; readonly framing: BodyFraming; readonly transform: BodyTransform | null };

/** The upstream's reply: the head has been read, the body is still in the connection. */
export interface Reply {
  readonly head: ReplyHead;
  /** The head as received. */
  readonly raw: Buffer;
  readonly framing: BodyFraming;
  readonly upstream: Connection;
  readonly lane: string;
  readonly requestBody: BodyEnd | Promise<BodyEnd>;
  /** A stream of HTTP/2 that is a WebSocket from now on. */
  readonly webSocket?: UpstreamStream;
}

export interface ForwardContext {
  /** Null if the request is in memory, so that no end of a connection has to be passed on. */
  readonly client: Connection | null;
  readonly lanes: UpstreamLanes;
  readonly host: string;
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
  /** Receives each interim reply (1xx) unchanged; null if the client cannot be sent any. */
  readonly onInterim: ((raw: Buffer, head: ReplyHead) => Promise<void> | void) | null;
  /**
   * Checked right before the first byte is written, because dialling or the wait for a stream may take long. Null for a request
   * without an injected credential.
   */
  readonly inForce: InForce | null;
  /** Counts the body while it is copied from the client. */
  readonly meter?: ByteMeter | null;
}

/** An upstream that sends more interim replies than this is treated as one that never answers. */
const MOST_INTERIM_REPLIES = 100;

/** A head of a reply, and its bytes. */
interface ReceivedHead {
  readonly head: ReplyHead;
  readonly raw: Buffer;
}

/** Reads heads up to the one of the final reply, or of a protocol switch, and passes on the interim ones before it. */
export async function readFinalHead<Received extends ReceivedHead>(
  next: () => Promise<Result<Received, AttemptFailure>>,
  { onInterim }: Pick<ForwardContext, 'onInterim'>,
): Promise<Result<Received, AttemptFailure>> {
  for (let interim = 0; interim <= MOST_INTERIM_REPLIES; interim += 1) {
    const received = await next();
    // After an interim reply the upstream has answered.
    if (!received.ok) return interim === 0 ? received : err({ ...received.error, stale: false });
    const { head, raw } = received.value;
    if (head.status >= 200 || head.status === 101) return received;
    await onInterim?.(raw, head);
  }
  return invalidReply(`more than ${MOST_INTERIM_REPLIES} interim replies`);
}

/** Why a request got no reply. */
export interface AttemptFailure {
  readonly refusal: Refusal;
  /** The upstream closed before the first byte of a reply. */
  readonly stale: boolean;
  /** The upstream certainly did nothing with it (RFC 9113 section 8.7), and its body can be sent again. */
  readonly isUntouched?: boolean;
}

/** The upstream closed before the first byte of a reply. Some say no more of a client certificate that they do not accept. */
export function failClosedEarly(
  message: string,
  { certificate = null }: Pick<Outgoing, 'certificate'>,
): { ok: false; error: AttemptFailure } {
  const doubt = certificate === null ? '' : `; it may not accept the client certificate ${certificate.reference}`;
  const why = `the upstream did not answer: ${message}${doubt}`;
  return err({ stale: true, refusal: refusal('upstream_unreachable', why) });
}

/** The upstream lost the connection with this code. One that says something about the client certificate is final. */
export function failLost(
  code: string,
  outgoing: Pick<Outgoing, 'certificate'>,
  { host }: Pick<ForwardContext, 'host'>,
): { ok: false; error: AttemptFailure } {
  const said = describeCertificateAlert(code, host, outgoing.certificate ?? null);
  if (said === null) return failClosedEarly(`the connection was lost (${code})`, outgoing);
  return err({ stale: false, refusal: refusal('upstream_tls_failed', said) });
}

/** The refusal of a reply that cannot be read in one way. */
export function invalidReply(message: string): { ok: false; error: AttemptFailure } {
  return err({
    stale: false,
    refusal: refusal('upstream_invalid_reply', `the upstream's reply is not valid: ${message}`),
  });
}
