/** Limits of both the control plane and the sidecar's local API. */
export interface ApiLimits {
  /** Largest request body of either API. */
  readonly maxApiBodyBytes: number;
  /** Largest request to `connector-operations/run` and `sandbox-proxy/requests`. */
  readonly maxRunRequestBytes: number;
  /** Largest upstream reply to such a request. */
  readonly maxRunReplyBytes: number;
  /** Time limit for the upstream's whole reply. */
  readonly runTimeoutSeconds: number;
}

/** Limits of connections at the control plane and at the sidecar. A waiting connection has no authenticated request. */
export interface ConnectionLimits {
  /** From a new connection, or a request for credentials, to the end of the next request head. */
  readonly firstHeadSeconds: number;
  /** Most waiting connections: in total, and per peer. */
  readonly maxWaitingConnections: number;
  readonly maxWaitingPerPeer: number;
}

/** Limits and their defaults (design section 11); each has its own setting in docs/reference/settings.md. */
export interface Limits extends ApiLimits, ConnectionLimits {
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
  /** Largest request body that is buffered on the credentialed path. */
  readonly maxCredentialedBodyBytes: number;
  /** Largest request body that is inspected for an operation's audited inputs. */
  readonly maxReadBodyBytes: number;
  /** Largest body of a request to a GraphQL endpoint, which is parsed before it is forwarded. */
  readonly maxGraphqlBodyBytes: number;
  /** All request bodies buffered at one time. */
  readonly maxBufferedBodiesBytes: number;
  /** Largest head of a client that has not authenticated yet. */
  readonly maxFirstHeadBytes: number;
  readonly connectTimeoutSeconds: number;
  readonly idleTunnelSeconds: number;
  /** How long an upstream connection waits for the session's next tunnel. */
  readonly keepUpstreamSeconds: number;
  readonly maxTunnelsPerSession: number;
  readonly maxLeafCertificates: number;
  readonly maxSpoolBytes: number;
  readonly credentialCacheSeconds: number;
  readonly snapshotMaxAgeSeconds: number;
  /** Replies per session and binding in which the credential may be masked before the binding pauses. */
  readonly maxMaskedReplies: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxHeadBytes: 64 * 1024,
  maxHeaders: 200,
  maxCredentialedBodyBytes: 32 * 1024 * 1024,
  maxReadBodyBytes: 1024 * 1024,
  maxGraphqlBodyBytes: 1024 * 1024,
  maxBufferedBodiesBytes: 128 * 1024 * 1024,
  firstHeadSeconds: 10,
  maxFirstHeadBytes: 16 * 1024,
  maxWaitingConnections: 1024,
  maxWaitingPerPeer: 256,
  connectTimeoutSeconds: 30,
  idleTunnelSeconds: 300,
  keepUpstreamSeconds: 10,
  maxTunnelsPerSession: 1024,
  maxLeafCertificates: 1000,
  maxSpoolBytes: 256 * 1024 * 1024,
  credentialCacheSeconds: 300,
  snapshotMaxAgeSeconds: 24 * 3600,
  maxApiBodyBytes: 1024 * 1024,
  maxRunRequestBytes: 1024 * 1024,
  maxRunReplyBytes: 4 * 1024 * 1024,
  runTimeoutSeconds: 30,
  maxMaskedReplies: 1000,
};
