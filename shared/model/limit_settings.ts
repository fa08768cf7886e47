import { formatSize, parseSize } from './quotas/byte_size.ts';
import { type ApiLimits, type ConnectionLimits, DEFAULT_LIMITS, type Limits } from './limits.ts';
import { err, ok, type Result } from './result.ts';

/** A limit as a setting: its variable, its unit and the allowed range. */
interface LimitRange {
  readonly name: string;
  readonly unit: 'bytes' | 'seconds' | 'count';
  readonly min: number;
  readonly max: number;
  readonly meaning: string;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** The setting of each limit. */
export const LIMIT_SETTINGS: { readonly [L in keyof Limits]: LimitRange } = {
  maxHeadBytes: {
    name: 'SVC_MAX_HEAD_BYTES',
    unit: 'bytes',
    min: KIB,
    max: MIB,
    meaning: 'largest head (start line and headers) of a request or a reply',
  },
  maxHeaders: {
    name: 'SVC_MAX_HEADERS',
    unit: 'count',
    min: 16,
    max: 10_000,
    meaning: 'most header lines in one head',
  },
  maxCredentialedBodyBytes: {
    name: 'SVC_MAX_CREDENTIALED_BODY_BYTES',
    unit: 'bytes',
    min: KIB,
    max: 2 * GIB,
    meaning: 'largest request body buffered for a binding',
  },
  maxReadBodyBytes: {
    name: 'SVC_MAX_READ_BODY_BYTES',
    unit: 'bytes',
    min: KIB,
    max: 32 * MIB,
    meaning: 'largest request body of a connector operation that audits inputs of the body, or is told apart by them',
  },
  maxGraphqlBodyBytes: {
    name: 'SVC_MAX_GRAPHQL_BODY_BYTES',
    unit: 'bytes',
    min: KIB,
    max: 16 * MIB,
    meaning: 'largest request body at a GraphQL endpoint of a connector; it is parsed',
  },
  maxBufferedBodiesBytes: {
    name: 'SVC_MAX_BUFFERED_BODIES_BYTES',
    unit: 'bytes',
    min: KIB,
    max: 16 * GIB,
    meaning: 'all request bodies buffered at one time; one session may use half',
  },
  firstHeadSeconds: {
    name: 'SVC_FIRST_HEAD_SECONDS',
    unit: 'seconds',
    min: 1,
    max: 600,
    meaning: 'from a new connection to the end of its first request head',
  },
  maxFirstHeadBytes: {
    name: 'SVC_MAX_FIRST_HEAD_BYTES',
    unit: 'bytes',
    min: KIB,
    max: MIB,
    meaning: 'largest head of a client that has not authenticated yet',
  },
  maxWaitingConnections: {
    name: 'SVC_MAX_WAITING_CONNECTIONS',
    unit: 'count',
    min: 8,
    max: 1_000_000,
    meaning: 'connections without an authenticated request; one more drops the oldest of the peer with the most',
  },
  maxWaitingPerPeer: {
    name: 'SVC_MAX_WAITING_PER_PEER',
    unit: 'count',
    min: 4,
    max: 1_000_000,
    meaning: 'such connections of one address, container, or user of this machine',
  },
  connectTimeoutSeconds: {
    name: 'SVC_CONNECT_TIMEOUT_SECONDS',
    unit: 'seconds',
    min: 1,
    max: 600,
    meaning: 'from CONNECT to the first byte',
  },
  idleTunnelSeconds: {
    name: 'SVC_IDLE_TUNNEL_SECONDS',
    unit: 'seconds',
    min: 1,
    max: 24 * 3600,
    meaning: 'an idle tunnel is closed after this time (except WebSockets and event streams)',
  },
  keepUpstreamSeconds: {
    name: 'SVC_KEEP_UPSTREAM_SECONDS',
    unit: 'seconds',
    min: 0,
    max: 60,
    meaning:
      'a connection to a bound host waits this long for the next tunnel of its session; 0: it ends with its tunnel',
  },
  maxTunnelsPerSession: {
    name: 'SVC_MAX_TUNNELS_PER_SESSION',
    unit: 'count',
    min: 1,
    max: 65_536,
    meaning: 'open tunnels of one session, and requests at once in its tunnels over HTTP/2',
  },
  maxLeafCertificates: {
    name: 'SVC_MAX_LEAF_CERTIFICATES',
    unit: 'count',
    min: 1,
    max: 100_000,
    meaning: 'host certificates kept in memory',
  },
  maxSpoolBytes: {
    name: 'SVC_MAX_SPOOL_BYTES',
    unit: 'bytes',
    min: MIB,
    max: 64 * GIB,
    meaning: 'audit events waiting on disk; when full, credentialed requests are refused',
  },
  credentialCacheSeconds: {
    name: 'SVC_CREDENTIAL_CACHE_SECONDS',
    unit: 'seconds',
    min: 0,
    max: DEFAULT_LIMITS.credentialCacheSeconds,
    meaning: 'how long a credential stays in memory; can be shortened, not lengthened',
  },
  snapshotMaxAgeSeconds: {
    name: 'SVC_SNAPSHOT_MAX_AGE_SECONDS',
    unit: 'seconds',
    min: 60,
    max: DEFAULT_LIMITS.snapshotMaxAgeSeconds,
    meaning: 'how old the policy may become without the control plane; can be shortened, not lengthened',
  },
  maxApiBodyBytes: {
    name: 'SVC_MAX_API_BODY_BYTES',
    unit: 'bytes',
    // A sidecar sends its audit events in batches of up to 256 KiB plus one event.
    min: 512 * KIB,
    max: 64 * MIB,
    meaning: 'largest request body of the control API and of the sidecar’s local API',
  },
  maxRunRequestBytes: {
    name: 'SVC_MAX_RUN_REQUEST_BYTES',
    unit: 'bytes',
    min: KIB,
    max: 64 * MIB,
    meaning: 'largest request to run a connector’s operation, at either API',
  },
  maxRunReplyBytes: {
    name: 'SVC_MAX_RUN_REPLY_BYTES',
    unit: 'bytes',
    min: KIB,
    // The gateway accepts 32 MiB of JSON, and the JSON contains the reply in base64.
    max: 16 * MIB,
    meaning: 'largest upstream reply to such a run',
  },
  runTimeoutSeconds: {
    name: 'SVC_RUN_TIMEOUT_SECONDS',
    unit: 'seconds',
    min: 1,
    max: 300,
    meaning: 'time limit for the upstream’s whole reply to such a run',
  },
  maxMaskedReplies: {
    name: 'SVC_MAX_MASKED_REPLIES',
    unit: 'count',
    min: 1,
    max: 1_000_000_000,
    meaning: 'masked replies in a session before the binding pauses until a person resumes it',
  },
};

/** The limits that the control plane uses too. */
const CONTROL_LIMITS: Readonly<Record<keyof ApiLimits | keyof ConnectionLimits, true>> = {
  maxApiBodyBytes: true,
  maxRunRequestBytes: true,
  maxRunReplyBytes: true,
  runTimeoutSeconds: true,
  firstHeadSeconds: true,
  maxWaitingConnections: true,
  maxWaitingPerPeer: true,
};

export function isControlLimit(limit: keyof Limits): boolean {
  return limit in CONTROL_LIMITS;
}

/** A whole number in the range; bytes may have a unit, such as MiB or MB. */
export function parseQuantity(text: string, range: LimitRange): Result<number, string> {
  const whole = /^\d{1,15}$/.test(text) ? Number(text) : null;
  const value = range.unit === 'bytes' ? parseSize(text) : whole;
  if (value === null || value < range.min || value > range.max) {
    const form = range.unit === 'bytes' ? 'a whole number of bytes (or KiB, MiB, GiB)' : wholeNumber(range.unit);
    const bounds = `from ${formatQuantity(range.min, range.unit)} to ${formatQuantity(range.max, range.unit)}`;
    return err(`is ${JSON.stringify(text)}: use ${form} ${bounds}`);
  }
  return ok(value);
}

function wholeNumber(unit: LimitRange['unit']): string {
  return unit === 'seconds' ? 'a whole number of seconds' : 'a whole number';
}

/** `64 KiB`, `30 s`, `200`. */
export function formatQuantity(value: number, unit: LimitRange['unit']): string {
  if (unit === 'count') return String(value);
  if (unit === 'seconds') return `${value} s`;
  return formatSize(value);
}
