/**
 * What a container reaches. `open`: also the engine's own network. `sealed`: only the proxy, and through it only bound hosts,
 * hosts of active connectors and allowed ones. `sealed,public`: only the proxy, and through it every public host (decision 0062).
 */
export const EGRESS_MODES = ['open', 'sealed', 'sealed,public'] as const;
export type Egress = (typeof EGRESS_MODES)[number];

/** A plan's steps reach exactly the hosts of their lock, so for them `sealed,public` would say nothing else than `sealed`. */
export type PlanEgress = Exclude<Egress, 'sealed,public'>;

/** The only name that a self-test reaches. The sidecar answers for it, and `.invalid` leads nowhere else (RFC 2606, section 2). */
export const SELF_TEST_HOST = 'self-test.svc.invalid';

/** The hosts that a session may reach besides bound ones and those of active connectors (decision 0062). It never changes. */
export interface AllowList {
  /** Host patterns. */
  readonly hosts: readonly string[];
  /** Exact hosts that the person typed for this session; they may lead to private addresses. */
  readonly named: readonly string[];
}

/** The number of hosts on the list of one session. */
export const MAX_ALLOWED_HOSTS = 1_000;
