import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecureContext } from 'node:tls';
import { createSecureContext } from 'node:tls';

import { createAuthority, issueLeaf } from './certificates.ts';

/** The CA of one session. It signs a leaf for each CONNECT host, and only the session's container trusts it. */
export interface SessionCa {
  /** The CA certificate as PEM, for the container. The key never leaves the sidecar. */
  readonly caPem: string;
  readonly caPemPath: string;
  /** A server context with a leaf for the host, cached for the most recent hosts. */
  secureContextFor(host: string): Promise<SecureContext>;
  /** Drops the key and deletes both files. */
  dispose(): Promise<void>;
}

export interface SessionCaOptions {
  readonly sessionId: string;
  readonly maxLeaves: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Creates a session-local CA and writes `ca.pem` and `ca.key` (0600) in `directory` (specification section 1, CA
 * generation). One leaf key serves all hosts of the session.
 */
export async function createSessionCa(directory: string, options: SessionCaOptions): Promise<SessionCa> {
  const authority = await createAuthority(`svc session ${options.sessionId}`, options.now());
  const caPemPath = join(directory, 'ca.pem');
  const caKeyPath = join(directory, 'ca.key');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(caKeyPath, authority.keyPem, { mode: 0o600 });
  await writeFile(caPemPath, authority.certificatePem, { mode: 0o644 });
  const contexts = new Map<string, Promise<SecureContext>>();
  let disposed = false;

  const issue = async (host: string): Promise<SecureContext> => {
    const leaf = await issueLeaf(authority, host, options.now());
    return createSecureContext({ key: leaf.keyPem, cert: leaf.certificatePem, minVersion: 'TLSv1.2' });
  };

  return {
    caPem: authority.certificatePem,
    caPemPath,
    secureContextFor(host) {
      if (disposed) return Promise.reject(new Error('the session has ended and its CA is gone'));
      const known = contexts.get(host);
      const context = known ?? issue(host);
      contexts.delete(host);
      contexts.set(host, context);
      if (known === undefined) {
        context.catch(() => contexts.delete(host));
        evictOldest(contexts, options.maxLeaves);
      }
      return context;
    },
    async dispose() {
      disposed = true;
      contexts.clear();
      await Promise.all([rm(caKeyPath, { force: true }), rm(caPemPath, { force: true })]);
    },
  };
}

function evictOldest(contexts: Map<string, unknown>, most: number): void {
  while (contexts.size > most) {
    const oldest = contexts.keys().next().value;
    if (oldest === undefined) return;
    contexts.delete(oldest);
  }
}
