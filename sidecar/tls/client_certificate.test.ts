import { createPrivateKey } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { generate } from 'selfsigned';
import { hasEncryptedKey, readCertificateAndKey } from '../../machine/client_certificate.ts';

let own: Awaited<ReturnType<typeof generate>>;
let other: Awaited<ReturnType<typeof generate>>;
const make = (value: string) => generate([{ name: 'commonName', value }], { keyType: 'ec', algorithm: 'sha256' });
beforeAll(async () => {
  own = await make('own');
  other = await make('other');
});

const sealed = (pem: string): string =>
  createPrivateKey(pem).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open' }).toString();

/** Both dates, in the encoding of ASN.1, are no dates. */
function withoutDates(pem: string): string {
  const bytes = Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ''), 'base64').toString('latin1');
  const changed = Buffer.from(bytes.replaceAll(/\d{12}Z/g, 'XX9999999999Z'), 'latin1').toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${changed.replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

describe('a certificate and its key', () => {
  test('are found in any order, and the certificate of the key comes first', () => {
    const read = readCertificateAndKey(`some text\n${other.cert}\n${own.private}\n${own.cert}`);
    if (!read.ok) throw new Error(read.error);
    expect(read.value.chain.indexOf(own.cert.trim())).toBe(0);
    expect(read.value.chain).toContain(other.cert.trim());
    expect(read.value.notBefore).toBeLessThan(read.value.notAfter);
    expect(JSON.stringify(read.value)).not.toContain('PRIVATE KEY');
  });

  test('are read if the certificate names nobody, as those of workloads do', async () => {
    const nobody = await generate([], { keyType: 'ec', algorithm: 'sha256' });
    expect(readCertificateAndKey(nobody.cert + nobody.private).ok).toBe(true);
  });

  test('are read with the passphrase of the key, and not without', () => {
    const text = own.cert + sealed(own.private);
    expect(hasEncryptedKey(text)).toBe(true);
    expect(hasEncryptedKey(own.private)).toBe(false);
    expect(readCertificateAndKey(text, 'open').ok).toBe(true);
    expect(readCertificateAndKey(text, 'wrong')).toMatchObject({
      error: expect.stringContaining('this passphrase does not open'),
    });
    expect(readCertificateAndKey(text)).toMatchObject({ error: expect.stringContaining('encrypted') });
  });

  test('are read with a key that is encrypted in the traditional form, whose headers have a "-"', async () => {
    const rsa = await generate([{ name: 'commonName', value: 'rsa' }], { algorithm: 'sha256' });
    const form = { type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'open' } as const;
    const key = createPrivateKey(rsa.private).export(form).toString();
    expect(key).toContain('DEK-Info: AES-128-CBC');
    expect(hasEncryptedKey(key)).toBe(true);
    expect(readCertificateAndKey(rsa.cert + key, 'open').ok).toBe(true);
  });

  test.each([
    ['a key of another certificate', () => own.cert + other.private, 'does not match'],
    ['no certificate', () => own.private, 'no PEM certificate'],
    ['no key', () => own.cert, 'no PEM private key'],
    ['two keys', () => own.cert + own.private + other.private, '2 private keys'],
    ['a broken certificate', () => `${own.cert.replace(/\n.{20}/, '\nAAAA')}${own.private}`, 'certificate that cannot'],
    ['a certificate without readable dates', () => withoutDates(own.cert) + own.private, 'dates cannot be read'],
    ['nothing', () => '', 'no PEM certificate'],
  ])('%s is refused, and nothing of it is quoted', (_what, text, problem) => {
    const read = readCertificateAndKey(text());
    expect(read).toMatchObject({ ok: false, error: expect.stringContaining(problem) });
    expect(JSON.stringify(read)).not.toMatch(/[A-Za-z0-9+/]{40}/);
  });
});
