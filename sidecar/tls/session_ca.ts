import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecureContext } from 'node:tls';
import { createSecureContext } from 'node:tls';

import { readPrivateFile } from '../../machine/state_file.ts';
import { sha256 } from '../../machine/sha256.ts';
import { type Authority, createAuthority, issueLeaf, openAuthority } from './certificates.ts';

/** The CA of one session. It signs a leaf for each CONNECT host, and only the session's container trusts it. */
export interface SessionCa {
  /** The CA certificate as PEM, for the container. The key never leaves the sidecar. */
  readonly caPem: string;
  readonly caPemPath: string;
  /** SHA-256 of certificate and key, in hex. */
  readonly digest: string;
  /** A server context with a leaf for the host, cached for the most recent hosts. */
  secureContextFor(host: string): Promise<SecureContext>;
  /** Drops the key and deletes both files. */
  dispose(): Promise<void>;
}

interface SessionCaOptions {
  readonly sessionId: string;
  readonly maxLeaves: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Half of a leaf's lifetime, so that a program that looks at the dates never sees an old one. */
const LEAF_KEPT_MS = 15 * 24 * 3_600_000;

/**
 * Creates a session-local CA and writes `ca.pem` and `ca.key` (0600) in `directory` (specification section 1, CA
 * generation). One leaf key serves all hosts of the session.
 */
export async function createSessionCa(directory: string, options: SessionCaOptions): Promise<SessionCa> {
  const authority = await createAuthority(`svc session ${options.sessionId}`, options.now());
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(keyPathIn(directory), authority.keyPem, { mode: 0o600 });
  await writeFile(certificatePathIn(directory), authority.certificatePem, { mode: 0o644 });
  return sessionCa(authority, directory, options);
}

/** The CA that an earlier run created in `directory`; null unless both files are there and have this digest. */
export async function openSessionCa(
  directory: string,
  digest: string,
  options: SessionCaOptions,
): Promise<SessionCa | null> {
  const key = readPrivateFile(keyPathIn(directory));
  const certificate = readPublicFile(certificatePathIn(directory));
  if (!key.ok || key.value === null || certificate === null) return null;
  const files = { certificatePem: certificate, keyPem: key.value };
  if (digestOf(files) !== digest) return null;
  return sessionCa(await openAuthority(files), directory, options);
}

interface KeptContext {
  readonly context: Promise<SecureContext>;
  readonly issuedAt: number;
}

function sessionCa(authority: Authority, directory: string, options: SessionCaOptions): SessionCa {
  const contexts = new Map<string, KeptContext>();
  let disposed = false;

  const issue = async (host: string): Promise<SecureContext> => {
    const leaf = await issueLeaf(authority, host, options.now());
    return createSecureContext({ key: leaf.keyPem, cert: leaf.certificatePem, minVersion: 'TLSv1.2' });
  };

  return {
    caPem: authority.certificatePem,
    caPemPath: certificatePathIn(directory),
    digest: digestOf(authority),
    secureContextFor(host) {
      if (disposed) return Promise.reject(new Error('the session has ended and its CA is gone'));
      const held = contexts.get(host);
      const now = options.now();
      const known = held !== undefined && now - held.issuedAt < LEAF_KEPT_MS ? held : undefined;
      const kept = known ?? { context: issue(host), issuedAt: now };
      contexts.delete(host);
      contexts.set(host, kept);
      if (known === undefined) {
        kept.context.catch(() => contexts.delete(host));
        evictOldest(contexts, options.maxLeaves);
      }
      return kept.context;
    },
    async dispose() {
      disposed = true;
      contexts.clear();
      await Promise.all([keyPathIn(directory), certificatePathIn(directory)].map((path) => rm(path, { force: true })));
    },
  };
}

function certificatePathIn(directory: string): string {
  return join(directory, 'ca.pem');
}

function keyPathIn(directory: string): string {
  return join(directory, 'ca.key');
}

function digestOf({ certificatePem, keyPem }: Pick<Authority, 'certificatePem' | 'keyPem'>): string {
  return sha256(`${certificatePem}\n${keyPem}`).toString('hex');
}

function readPublicFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function evictOldest(contexts: Map<string, unknown>, most: number): void {
  while (contexts.size > most) {
    const oldest = contexts.keys().next().value;
    if (oldest === undefined) return;
    contexts.delete(oldest);
  }
}
