import { refusal, type Refusal } from '../../shared/model/refusal.ts';

/** Why a call to the control plane gave nothing that may be used. */
export type ChannelErrorReason =
  /** No connection, or it broke. */
  | 'unreachable'
  | 'timeout'
  /** The caller gave the call up. */
  | 'aborted'
  | 'untrusted_certificate'
  /** The clocks are more than 60 s apart; `serverTime` says the control plane's. */
  | 'clock_skew'
  /** The control plane does not know this sidecar, or knows it no more. */
  | 'revoked'
  /** The control plane refused the call (4xx); sending the same again does not help. */
  | 'refused'
  /** Too many calls (429), or the control plane failed (5xx). */
  | 'unavailable'
  /** The reply is not what the contract says, or its signature is not the pinned key's. */
  | 'invalid_reply'
  /** A properly signed snapshot older than one this sidecar has seen. */
  | 'version_went_back';

export interface ChannelError {
  readonly reason: ChannelErrorReason;
  /** One sentence with what was wrong and the fix; holds no token and no secret. */
  readonly message: string;
  readonly status?: number;
  /** The error code in the control plane's reply. */
  readonly code?: string;
  /** RFC 3339, with `clock_skew`. */
  readonly serverTime?: string;
}

/** A {@link ChannelError} value. */
export function channelError(
  reason: ChannelErrorReason,
  message: string,
  evidence: Pick<ChannelError, 'status' | 'code' | 'serverTime'> = {},
): ChannelError {
  return { reason, message, ...evidence };
}

/** What a request is told when the control plane could not be asked. */
export function unavailableRefusal(error: ChannelError): Refusal {
  return refusal('control_plane_unavailable', `The control plane could not be asked: ${error.message}`);
}
