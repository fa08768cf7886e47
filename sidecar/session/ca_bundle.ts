import { existsSync, readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';

/** Where systems keep their bundle of root certificates: Debian, Fedora, SUSE, Alpine and macOS. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** The system's root certificates as PEM; Node's own if the system has none. */
export function systemRootsPem(paths: readonly string[] = SYSTEM_BUNDLES): string {
  const path = paths.find((candidate) => existsSync(candidate));
  if (path === undefined) return `${rootCertificates.join('\n')}\n`;
  const pem = readFileSync(path, 'utf8');
  return pem.endsWith('\n') ? pem : `${pem}\n`;
}

/**
 * The roots that an agent's programs trust: the system's and the session's CA. The extra roots of the sidecar's own
 * upstreams are not included, because the agent never connects to these directly.
 */
export function caBundle(systemRoots: string, caPem: string): string {
  return `${systemRoots}${caPem.trimEnd()}\n`;
}
