import type { Failure } from '../../shared/model/failure.ts';

/** Why a container cannot reach the proxy in the requested way. */
export type ReachFailureReason =
  | 'not_the_container'
  | 'namespace_forbidden'
  | 'shared_network'
  | 'listener_failed'
  | 'engine_unavailable'
  | 'egress_unavailable';

export function reachFailure(reason: ReachFailureReason, message: string): Failure<ReachFailureReason> {
  return { reason, message };
}
