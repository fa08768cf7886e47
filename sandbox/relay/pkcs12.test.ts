import { X509Certificate } from 'node:crypto';
import forge from 'node-forge';
import { expect, test } from 'vitest';
import { createAuthority } from '../../sidecar/tls/certificates.ts';
import { pkcs12TrustStore } from './pkcs12.ts';

const { asn1 } = forge;
const TRUSTED_KEY_USAGE = asn1.oidToDer('2.16.840.1.113894.746875.1.1').getBytes();

/** Every primitive value of a DER structure in order; the two octet strings that wrap the store's contents are opened. */
function valuesOf(der: string): string[] {
  const walk = (node: forge.asn1.Asn1): string[] => {
    if (typeof node.value !== 'string') return node.value.flatMap(walk);
    const wraps = node.type === asn1.Type.OCTETSTRING && !isCertificate(node.value);
    return wraps ? valuesOf(node.value) : [node.value];
  };
  return walk(asn1.fromDer(der));
}

function isCertificate(der: string): boolean {
  try {
    return new X509Certificate(Buffer.from(der, 'latin1')).raw.length > 0;
  } catch {
    return false;
  }
}

async function authorities(...names: readonly string[]): Promise<X509Certificate[]> {
  const made = await Promise.all(names.map((name) => createAuthority(name, 0)));
  return made.map(({ certificatePem }) => new X509Certificate(certificatePem));
}

function storeOf(certificates: readonly X509Certificate[]): string {
  const bundle = certificates.map((certificate) => `# a comment\n${certificate.toString()}`).join('\n');
  return Buffer.from(pkcs12TrustStore(bundle)).toString('latin1');
}

test('contains every certificate of the bundle under its own name, marked as trusted', async () => {
  const certificates = await authorities('one', 'two');
  const values = valuesOf(storeOf(certificates));
  for (const { raw } of certificates) expect(values).toContain(raw.toString('latin1'));
  expect(values.filter((value) => value === TRUSTED_KEY_USAGE)).toHaveLength(2);
  expect(values.filter((value) => /^root-\d$/.test(value))).toEqual(['root-1', 'root-2']);
});

test('is readable without a password, because certificates are not encrypted', async () => {
  const [certificate] = await authorities('one');
  expect(storeOf(certificate === undefined ? [] : [certificate])).toContain(certificate?.raw.toString('latin1'));
});
