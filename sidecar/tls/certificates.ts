// @peculiar/x509 uses decorators for dependency injection and cannot load without this polyfill.
import 'reflect-metadata';

import { createHash, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
  cryptoProvider,
} from '@peculiar/x509';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A clock in the container that is slightly behind still accepts the certificates. */
const BACKDATED_MS = HOUR_MS;
/** Well within what TLS clients accept of a leaf. */
const LEAF_MS = 30 * DAY_MS;
/** A session lives as long as its launcher, which nothing limits. Only this session's programs trust its CA. */
const AUTHORITY_MS = 3650 * DAY_MS;

interface KeyedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** An issuing CA in memory. */
export interface Authority extends KeyedCertificate {
  readonly subject: string;
  readonly keyIdentifier: string;
  readonly signingKey: webcrypto.CryptoKey;
  /** One key pair for every leaf of this CA, so that a leaf costs one signature. */
  readonly leafKeys: webcrypto.CryptoKeyPair;
  readonly leafKeyPem: string;
}

cryptoProvider.set(webcrypto);

/** Creates a P-256 CA that may sign only leaves (path length 0), with the key identifiers that strict verifiers require. */
export async function createAuthority(commonName: string, nowMs: number): Promise<Authority> {
  const [keys, leafKeys] = await Promise.all([makeKeys(), makeKeys()]);
  const keyIdentifier = await identifierOf(keys.publicKey);
  const subject = `CN=${commonName}, O=svc`;
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject,
    issuer: subject,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + AUTHORITY_MS),
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new SubjectKeyIdentifierExtension(keyIdentifier),
      new AuthorityKeyIdentifierExtension(keyIdentifier),
    ],
  });
  return {
    certificatePem: `${certificate.toString('pem')}\n`,
    keyPem: await privatePem(keys.privateKey),
    subject: certificate.subject,
    keyIdentifier,
    signingKey: keys.privateKey,
    leafKeys,
    leafKeyPem: await privatePem(leafKeys.privateKey),
  };
}

/** The authority of a certificate and its key, with a new leaf key. Throws if they are damaged. */
export async function openAuthority({ certificatePem, keyPem }: KeyedCertificate): Promise<Authority> {
  const certificate = new X509Certificate(certificatePem);
  const der = Buffer.from(keyPem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  const [signingKey, publicKey, leafKeys] = await Promise.all([
    webcrypto.subtle.importKey('pkcs8', der, KEY_ALGORITHM, true, ['sign']),
    certificate.publicKey.export(),
    makeKeys(),
  ]);
  return {
    certificatePem,
    keyPem,
    subject: certificate.subject,
    keyIdentifier: await identifierOf(publicKey),
    signingKey,
    leafKeys,
    leafKeyPem: await privatePem(leafKeys.privateKey),
  };
}

/** Issues a server certificate for one host: a DNS name, or an IP literal (IPv6 in brackets or bare). */
export async function issueLeaf(authority: Authority, host: string, nowMs: number): Promise<KeyedCertificate> {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'O=svc',
    issuer: authority.subject,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + LEAF_MS),
    publicKey: authority.leafKeys.publicKey,
    signingKey: authority.signingKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type: isIP(name) === 0 ? 'dns' : 'ip', value: name }]),
      new SubjectKeyIdentifierExtension(await identifierOf(authority.leafKeys.publicKey)),
      new AuthorityKeyIdentifierExtension(authority.keyIdentifier),
    ],
  });
  return { certificatePem: `${certificate.toString('pem')}\n`, keyPem: authority.leafKeyPem };
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

/** RFC 5280 section 4.2.1.2, method 1: the key identifier is the SHA-1 of the public key's bits. Security does not depend on it. */
async function identifierOf(key: webcrypto.CryptoKey): Promise<string> {
  const bits = await webcrypto.subtle.exportKey('raw', key);
  return createHash('sha1').update(Buffer.from(bits)).digest('hex');
}

/** RFC 5280 section 4.1.2.2: positive, at most 20 octets, unique. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}
