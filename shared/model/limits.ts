/** Limits of the data plane and their defaults (design section 11); each has a setting of its own in the README's table. */
export interface Limits {
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
  /** Largest request body that is buffered on the credentialed path. */
  readonly maxCredentialedBodyBytes: number;
  /** All request bodies buffered at one time. */
  readonly maxBufferedBodiesBytes: number;
  readonly connectTimeoutSeconds: number;
  readonly idleTunnelSeconds: number;
  readonly maxTunnelsPerSession: number;
  readonly maxLeafCertificates: number;
  readonly maxSpoolBytes: number;
  readonly credentialCacheSeconds: number;
  readonly snapshotMaxAgeSeconds: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxHeadBytes: 64 * 1024,
  maxHeaders: 200,
  maxCredentialedBodyBytes: 32 * 1024 * 1024,
  maxBufferedBodiesBytes: 128 * 1024 * 1024,
  connectTimeoutSeconds: 30,
  idleTunnelSeconds: 300,
  maxTunnelsPerSession: 1024,
  maxLeafCertificates: 1000,
  maxSpoolBytes: 256 * 1024 * 1024,
  credentialCacheSeconds: 300,
  snapshotMaxAgeSeconds: 24 * 3600,
};
