import { refusal, type Refusal } from '../../shared/model/refusal.ts';

/** Why a call to the control plane gave no usable result. */
export type ChannelFailureReason =
  /** The connection failed or broke. */
  | 'unreachable'
  | 'timeout'
  /** The caller aborted the call. */
  | 'aborted'
  | 'untrusted_certificate'
  /** The clocks differ by more than 60 s; `serverTime` is the control plane's time. */
  | 'clock_skew'
  /** The control plane does not know this sidecar, or has revoked it. */
  | 'revoked'
  /** The control plane refused the call (4xx); sending it again does not help. */
  | 'refused'
  /** Too many calls (429), or the control plane failed (5xx). */
  | 'unavailable'
  /** The reply breaks the contract, or is not signed with the pinned key. */
  | 'invalid_reply'
  /** A properly signed snapshot that is older than one this sidecar has seen. */
  | 'version_went_back';

export interface ChannelFailure {
  readonly reason: ChannelFailureReason;
  /** One sentence with the problem and the fix; contains no token and no secret. */
  readonly message: string;
  readonly status?: number;
  /** The error code in the control plane's reply. */
  readonly code?: string;
  /** RFC 3339; set with `clock_skew`. */
  readonly serverTime?: string;
}

/** A {@link ChannelFailure} value. */
export function channelFailure(
  reason: ChannelFailureReason,
  message: string,
  evidence: Pick<ChannelFailure, 'status' | 'code' | 'serverTime'> = {},
): ChannelFailure {
  return { reason, message, ...evidence };
}

/** The message for a request when the call to the control plane failed. */
export function unavailableRefusal(error: ChannelFailure): Refusal {
  return refusal('control_plane_unavailable', `Asking the control plane failed: ${error.message}`);
}
