import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen } from '../machine/connection/listen.ts';
import { createAuthority, issueLeaf } from '../sidecar/tls/certificates.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

let folder = '';
let server: Server;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-main-'));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What `svc login` reports about a control plane whose certificate has a root of the given file. */
async function logIn(systemStore: string | null): Promise<string> {
  const authority = await createAuthority('a company', Date.now());
  const leaf = await issueLeaf(authority, 'localhost', Date.now());
  writeFileSync(join(folder, 'company.pem'), authority.certificatePem);
  server = createServer({ key: leaf.keyPem, cert: leaf.certificatePem }, (_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code: 'unavailable', message: 'closed for today' } }));
  });
  const port = await listen(server, 0, 'localhost');
  const child = spawn(process.execPath, [MAIN, 'login', '--control', `https://localhost:${port}`], {
    env: {
      PATH: process.env['PATH'],
      SVC_HOME: join(folder, 'home'),
      ...(systemStore !== null && { SSL_CERT_FILE: join(folder, systemStore) }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return stderr;
}

test('a control plane whose root is in the system store is trusted', async () => {
  expect(await logIn('company.pem')).toContain('closed for today (503 unavailable)');
});

test('a control plane with another root is not', async () => {
  expect(await logIn(null)).toMatch(/cannot be reached \((?:UNABLE_TO|SELF_SIGNED)/);
});
