import type { ForwarderSettings } from '../load/start_forwarder.ts';

export const PROXY_NAMES = ['svc', 'squid', 'sandbox-runtime'] as const;
export type ProxyName = (typeof PROXY_NAMES)[number];

/** A proxy that intercepts TLS, adds the bearer for the credentialed host, and is up. */
export interface Proxy {
  readonly name: ProxyName;
  readonly version: string;
  readonly port: number;
  /** The authority under which it reaches a host of the upstream. */
  authority(host: string): string;
  readonly user: string;
  readonly password: string;
  /** The certificate authority of its leaves. */
  readonly caFile: string;
  /** The process whose CPU and memory count, with everything below it. */
  readonly pid: number;
  /** A process beside it that works for it in the background; reported, not counted. */
  readonly companion: { readonly label: string; readonly pid: number } | null;
  stop(): Promise<void>;
}

/** The value of Proxy-Authorization. */
export function authorizationOf({ user, password }: Pick<Proxy, 'user' | 'password'>): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** How wrk's connections get to it. */
export function forwarderSettingsOf(proxy: Proxy, host: string): ForwarderSettings {
  return { port: proxy.port, connect: { authority: proxy.authority(host), authorization: authorizationOf(proxy) } };
}

/** Names that stand beside the credentialed host in each proxy's rules, so that a match has something to search. */
export function otherBoundHosts(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) =>
    index % 3 === 0 ? `*.tenant${index}.example.net` : `api${index}.service${index % 97}.example.com`,
  );
}
