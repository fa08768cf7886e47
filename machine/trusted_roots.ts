import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * The PEM certificates that an outgoing connection trusts: Node's own (with those of NODE_EXTRA_CA_CERTS), the system's store,
 * where a company's root is installed, and the given ones; each once.
 */
export function trustedRoots(extra: readonly string[]): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system'), ...extra])];
}

/** One context for many connections: reading the roots takes some 40 ms, which a connection that is given them as PEM text spends each time. */
export function createTrustingContext(extra: readonly string[]): SecureContext {
  return createSecureContext({ ca: trustedRoots(extra), minVersion: 'TLSv1.2' });
}
