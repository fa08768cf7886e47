import type { ForwarderSettings } from '../load/start_forwarder.ts';

export const PROXY_NAMES = ['svc', 'squid', 'sandbox-runtime', 'nghttpx', 'node:http2'] as const;
export type ProxyName = (typeof PROXY_NAMES)[number];

/** A running proxy that intercepts TLS and adds the bearer for the credentialed host. */
export interface Proxy {
  readonly name: ProxyName;
  readonly version: string;
  /** Which cases it is in: a tunnel's of HTTP/1.1, of both versions, or as a server in front of the upstream those of HTTP/2. */
  readonly kind: 'tunnel' | 'tunnel of both' | 'front';
  readonly port: number;
  /** The authority under which it reaches a host of the upstream. */
  authority(host: string): string;
  readonly user: string;
  readonly password: string;
  /** The CA that issues its leaves. */
  readonly caFile: string;
  /** The process whose CPU and memory count, with all its descendants. */
  readonly pid: number;
  /** A background process that works for it; reported, not counted. */
  readonly companion: { readonly label: string; readonly pid: number } | null;
  stop(): Promise<void>;
}

/** The value of Proxy-Authorization. */
export function authorizationOf({ user, password }: Pick<Proxy, 'user' | 'password'>): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** How wrk's connections reach it. */
export function forwarderSettingsOf(proxy: Proxy, host: string): ForwarderSettings {
  return { port: proxy.port, connect: { authority: proxy.authority(host), authorization: authorizationOf(proxy) } };
}

/** Further names in each proxy's rules, so that a match has to search. */
export function otherBoundHosts(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) =>
    index % 3 === 0 ? `*.tenant${index}.example.net` : `api${index}.service${index % 97}.example.com`,
  );
}
