import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * The PEM certificates that outgoing connections trust, without duplicates: Node's (with NODE_EXTRA_CA_CERTS), the system
 * store, which has a company's root, and the given ones.
 */
export function trustedRoots(extra: readonly string[]): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system'), ...extra])];
}

/** One TLS context for many connections: parsing the roots takes about 40 ms, and a connection that gets PEM text does it each time. */
export function createTrustingContext(extra: readonly string[]): SecureContext {
  return createSecureContext({ ca: trustedRoots(extra), minVersion: 'TLSv1.2' });
}
