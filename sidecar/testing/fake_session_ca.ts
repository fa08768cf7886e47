import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { SessionCa } from '../tls/session_ca.ts';

/** A session CA with its file but without cryptography. */
export async function fakeSessionCa(directory: string, onDispose: () => void = () => undefined): Promise<SessionCa> {
  const caPemPath = join(directory, 'ca.pem');
  await writeFile(caPemPath, 'TEST CA\n');
  return {
    caPem: 'TEST CA\n',
    caPemPath,
    digest: 'd'.repeat(64),
    secureContextFor: () => Promise.resolve(createSecureContext()),
    dispose: () => {
      onDispose();
      return Promise.resolve();
    },
  };
}
