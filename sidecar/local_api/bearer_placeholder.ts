import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { covers } from '../../shared/net/host_pattern.ts';
import { nameOfHost } from '../../shared/net/host_port.ts';
import { orderBindings } from './sentinels.ts';

/** How long a client keeps the token. It is no credential, so this only says when it asks again. */
const LIFE_MS = 3_600_000;

/** A token that the proxy replaces, and its end in milliseconds since the epoch. */
export interface BearerPlaceholder {
  readonly token: string;
  readonly expiresAt: number;
}

/** The domains of a cloud's APIs that take bearer tokens. */
export const CLOUD_DOMAINS = {
  google: ['googleapis.com'],
  azure: ['azure.com', 'azure.net', 'azure.us', 'azure.cn', 'azurecr.io', 'windows.net', 'graph.microsoft.com'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
export type BearerCloud = keyof typeof CLOUD_DOMAINS;

interface PlaceholderFor {
  readonly choice: AccountChoice | null;
  readonly expiresAt: number;
  /** The host that the client asks a token for, if it says so: a binding of it comes first. */
  readonly host?: string | null;
}

/**
 * A token for the clients of a cloud in a session; null if no binding of the session puts a bearer token on requests to it. It
 * is the sentinel of the first such binding, or a fixed text. A secret never is in it.
 */
export function bearerPlaceholder(
  cloud: BearerCloud,
  bindings: readonly HostBinding[],
  { choice, expiresAt, host = null }: PlaceholderFor,
  nowMs: number,
): BearerPlaceholder | null {
  const usable = orderBindings(bindings, choice).filter(
    ({ injection, host: pattern }) => injection.scheme === 'bearer' && isOfCloud(cloud, pattern),
  );
  const first = usable.find(({ host: pattern }) => host !== null && covers(pattern, host)) ?? usable[0];
  if (first === undefined) return null;
  const { emit } = first;
  return {
    token: emit.mechanism === 'sentinel-swap' ? emit.sentinel : 'placeholder-that-the-proxy-replaces',
    expiresAt: Math.min(nowMs + LIFE_MS, expiresAt),
  };
}

/** Whether a pattern of a binding is a host of the cloud's, or hosts of it. */
function isOfCloud(cloud: BearerCloud, pattern: string): boolean {
  const host = nameOfHost(pattern);
  return CLOUD_DOMAINS[cloud].some((domain) => host === domain || host.endsWith(`.${domain}`));
}
