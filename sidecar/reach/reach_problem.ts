/** Why a container cannot reach the proxy in the requested way. */
export interface ReachProblem {
  readonly reason:
    | 'not_the_container'
    | 'namespace_forbidden'
    | 'shared_network'
    | 'listener_failed'
    | 'engine_unavailable'
    | 'egress_unavailable';
  /** The problem and the fix. */
  readonly message: string;
}

/** A {@link ReachProblem} value. */
export function reachProblem(reason: ReachProblem['reason'], message: string): ReachProblem {
  return { reason, message };
}
