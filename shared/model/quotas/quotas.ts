/** Of whom a quota is: what belongs to an owner (a person, or an enterprise for what it owns itself), to a person, or to an enterprise with all its people. */
export type QuotaScope = 'owner' | 'person' | 'enterprise';

interface Quota {
  readonly scope: QuotaScope;
  readonly unit: 'count' | 'bytes';
  /** The default; `SVC_QUOTA_PERCENT` scales it. */
  readonly most: number;
  /** What is counted, in the plural. */
  readonly what: string;
  /** How to make room. */
  readonly fix: string;
}

const MIB = 1024 * 1024;

const LEAVE_OUT = 'remove what nobody uses any more';

/**
 * How much may be kept in the control plane (decision 0174). They are far above what people need. Together with those of the
 * enterprise, what one sidecar gets stays below the largest reply that it reads (64 MiB).
 */
export const QUOTAS = {
  secrets: { scope: 'owner', unit: 'count', most: 5_000, what: 'secrets', fix: 'delete one (svc secret rm PATH)' },
  secret_bytes: {
    scope: 'owner',
    unit: 'bytes',
    most: 64 * MIB,
    what: 'sealed secrets',
    fix: 'delete one, or store a shorter value',
  },
  bindings: {
    scope: 'owner',
    unit: 'count',
    most: 2_000,
    what: 'bindings',
    fix: 'delete one (svc binding rm HOST-OR-ID)',
  },
  connectors: {
    scope: 'owner',
    unit: 'count',
    most: 500,
    what: 'connectors',
    fix: 'remove one (svc connector remove FQN)',
  },
  connector_versions: {
    scope: 'owner',
    unit: 'count',
    most: 10_000,
    what: 'installed versions of connectors',
    fix: 'remove a connector that has had many, and install it again',
  },
  mcp_servers: {
    scope: 'owner',
    unit: 'count',
    most: 100,
    what: 'MCP servers',
    fix: 'remove one (svc mcp remove SERVER)',
  },
  definition_bytes: {
    scope: 'owner',
    unit: 'bytes',
    most: 8 * MIB,
    what: 'definitions of bindings, connectors and MCP servers',
    fix: 'remove one, or make a specification shorter',
  },
  tunnel_hosts: {
    scope: 'owner',
    unit: 'count',
    most: 500,
    what: 'hosts that are not intercepted',
    fix: 'remove one (svc tunnel rm HOST), or use a pattern',
  },
  client_certificates: {
    scope: 'person',
    unit: 'count',
    most: 100,
    what: 'client certificates',
    fix: 'remove one (svc cert rm HOST)',
  },
  sidecars: {
    scope: 'person',
    unit: 'count',
    most: 200,
    what: 'sidecars',
    fix: 'revoke one that is not used any more',
  },
  job_sidecars: {
    scope: 'person',
    unit: 'count',
    most: 2_000,
    what: 'sidecars of jobs at once',
    fix: 'end jobs, or make their time shorter',
  },
  personal_tokens: {
    scope: 'person',
    unit: 'count',
    most: 200,
    what: 'personal tokens',
    fix: 'revoke one (svc token revoke ID)',
  },
  program_sign_ins: {
    scope: 'person',
    unit: 'count',
    most: 200,
    what: 'programs that are signed in',
    fix: 'sign one out',
  },
  mcp_connections: { scope: 'person', unit: 'count', most: 100, what: 'connected MCP clients', fix: 'disconnect one' },
  shares: {
    scope: 'person',
    unit: 'count',
    most: 500,
    what: 'shares that were given',
    fix: 'end one, or share with a group instead',
  },
  accepted_shares: { scope: 'person', unit: 'count', most: 500, what: 'accepted shares', fix: 'decline one' },
  accepted_bytes: {
    scope: 'person',
    unit: 'bytes',
    most: 8 * MIB,
    what: 'definitions that colleagues share',
    fix: 'decline one',
  },
  members: { scope: 'enterprise', unit: 'count', most: 25_000, what: 'members', fix: 'remove one' },
  invitations: {
    scope: 'enterprise',
    unit: 'count',
    most: 2_000,
    what: 'open invitations',
    fix: 'revoke one, or wait until they end',
  },
  groups: { scope: 'enterprise', unit: 'count', most: 1_000, what: 'groups', fix: 'delete one' },
  approval_rules: {
    scope: 'enterprise',
    unit: 'count',
    most: 200,
    what: 'rules about who approves',
    fix: 'remove one (svc approvals rules rm RULE), or use a pattern',
  },
  service_accounts: {
    scope: 'enterprise',
    unit: 'count',
    most: 200,
    what: 'service accounts',
    fix: 'remove one that no job uses',
  },
  all_secrets: { scope: 'enterprise', unit: 'count', most: 100_000, what: 'secrets', fix: LEAVE_OUT },
  all_bindings: { scope: 'enterprise', unit: 'count', most: 50_000, what: 'bindings', fix: LEAVE_OUT },
  all_connectors: { scope: 'enterprise', unit: 'count', most: 10_000, what: 'connectors', fix: LEAVE_OUT },
  all_mcp_servers: { scope: 'enterprise', unit: 'count', most: 10_000, what: 'MCP servers', fix: LEAVE_OUT },
  all_sidecars: { scope: 'enterprise', unit: 'count', most: 50_000, what: 'sidecars', fix: LEAVE_OUT },
  all_bytes: {
    scope: 'enterprise',
    unit: 'bytes',
    most: 1024 * MIB,
    what: 'secrets and definitions',
    fix: LEAVE_OUT,
  },
} as const satisfies Record<string, Quota>;
export type QuotaKind = keyof typeof QUOTAS;

export const QUOTA_KINDS = Object.keys(QUOTAS).filter((kind): kind is QuotaKind => kind in QUOTAS);

/** Who uses what counts: an account, the enterprise itself, or all of its people. */
export const USED_BY = ['account', 'enterprise', 'everybody'] as const;
export type UsedBy = (typeof USED_BY)[number];

/** What counts for the whole enterprise too. */
export const TOTALS: Readonly<Partial<Record<QuotaKind, QuotaKind>>> = {
  secrets: 'all_secrets',
  bindings: 'all_bindings',
  connectors: 'all_connectors',
  mcp_servers: 'all_mcp_servers',
  sidecars: 'all_sidecars',
  job_sidecars: 'all_sidecars',
  secret_bytes: 'all_bytes',
  definition_bytes: 'all_bytes',
};

/** The quota of a kind, where all are this many percent of their defaults; at least one. */
export function quotaOf(kind: QuotaKind, percent: number): number {
  return Math.max(1, Math.floor((QUOTAS[kind].most * percent) / 100));
}

/** `5,000`, or `63.9 MiB`. */
export function formatQuota(kind: QuotaKind, value: number): string {
  if (QUOTAS[kind].unit === 'count') return value.toLocaleString('en-US');
  const mebibytes = value / MIB;
  return `${mebibytes >= 10 || Number.isInteger(mebibytes) ? mebibytes.toFixed(0) : mebibytes.toFixed(2)} MiB`;
}
