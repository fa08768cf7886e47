import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { generate } from 'selfsigned';

const DAY_MS = 24 * 3600 * 1000;

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The tests' own certificate authority: svc trusts it through `--upstream-ca`, direct clients through their own option. */
export interface TestCa {
  readonly pem: string;
  /** The same PEM as a file. */
  readonly file: string;
  issue(hosts: readonly string[], options?: { expired?: boolean }): Promise<Certificate>;
  /** A secure context for `hosts`, made once per set of hosts. */
  context(hosts: readonly string[]): Promise<SecureContext>;
}

export async function createTestCa(): Promise<TestCa> {
  // A unique name, because an issuer is looked up by its name: two roots of the same name would be confused.
  const name = `svc e2e test CA ${randomBytes(6).toString('hex')}`;
  const root = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, digitalSignature: true, critical: true },
    ],
  });
  const file = join(mkdtempSync(join(tmpdir(), 'svc-e2e-ca-')), 'ca.pem');
  writeFileSync(file, root.cert);
  const contexts = new Map<string, SecureContext>();
  const issue: TestCa['issue'] = async (hosts, options = {}) => {
    const now = Date.now();
    const leaf = await generate([{ name: 'commonName', value: hosts[0] ?? 'localhost' }], {
      keyType: 'ec',
      algorithm: 'sha256',
      notBeforeDate: new Date(now - (options.expired === true ? 30 : 1) * DAY_MS),
      notAfterDate: new Date(now + (options.expired === true ? -1 : 30) * DAY_MS),
      ca: { key: root.private, cert: root.cert },
      extensions: [
        { name: 'basicConstraints', cA: false },
        { name: 'extKeyUsage', serverAuth: true },
        { name: 'subjectAltName', altNames: hosts.map((value) => ({ type: 2 as const, value })) },
      ],
    });
    return { cert: leaf.cert, key: leaf.private };
  };
  const context: TestCa['context'] = async (hosts) => {
    const known = contexts.get(hosts.join());
    if (known !== undefined) return known;
    const made = createSecureContext(await issue(hosts));
    contexts.set(hosts.join(), made);
    return made;
  };
  return { pem: root.cert, file, issue, context };
}
