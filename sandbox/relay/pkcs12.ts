import forge from 'node-forge';

const { asn1, util } = forge;
const { Class, Type } = asn1;

/** Object identifiers of RFC 7292 and RFC 2985; with the last two a JVM marks a trusted certificate. */
const OID = {
  data: '1.2.840.113549.1.7.1',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  friendlyName: '1.2.840.113549.1.9.20',
  trustedKeyUsage: '2.16.840.1.113894.746875.1.1',
  anyKeyUsage: '2.5.29.37.0',
} as const;
const PFX_VERSION = 3;

/**
 * A PKCS#12 trust store (RFC 7292) of the certificates in `pem`. It has no encryption, no MAC and so no password:
 * certificates are public, and the permissions of the file protect it. A JVM reads it with any password or none.
 */
export function pkcs12TrustStore(pem: string): Uint8Array {
  const bags = certificatesOf(pem).map((der, at) => certificateBag(der, `root-${at + 1}`));
  const authenticatedSafe = sequence(contentInfo(sequence(...bags)));
  const version = asn1.create(Class.UNIVERSAL, Type.INTEGER, false, asn1.integerToDer(PFX_VERSION).getBytes());
  return Buffer.from(asn1.toDer(sequence(version, contentInfo(authenticatedSafe))).getBytes(), 'latin1');
}

/** The DER of each certificate, as a string of bytes. */
function certificatesOf(pem: string): string[] {
  const blocks = pem.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g);
  return Array.from(blocks, ([, base64 = '']) => util.decode64(base64.replaceAll(/\s/g, '')));
}

function certificateBag(der: string, name: string): forge.asn1.Asn1 {
  const certificate = sequence(objectId(OID.x509Certificate), explicit(octets(der)));
  const label = asn1.create(Class.UNIVERSAL, Type.BMPSTRING, false, name);
  const attributes = set(
    sequence(objectId(OID.friendlyName), set(label)),
    sequence(objectId(OID.trustedKeyUsage), set(objectId(OID.anyKeyUsage))),
  );
  return sequence(objectId(OID.certificateBag), explicit(certificate), attributes);
}

function contentInfo(content: forge.asn1.Asn1): forge.asn1.Asn1 {
  return sequence(objectId(OID.data), explicit(octets(asn1.toDer(content).getBytes())));
}

function sequence(...parts: forge.asn1.Asn1[]): forge.asn1.Asn1 {
  return asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, parts);
}

function set(...parts: forge.asn1.Asn1[]): forge.asn1.Asn1 {
  return asn1.create(Class.UNIVERSAL, Type.SET, true, parts);
}

function explicit(content: forge.asn1.Asn1): forge.asn1.Asn1 {
  return asn1.create(Class.CONTEXT_SPECIFIC, Type.NONE, true, [content]);
}

function octets(bytes: string): forge.asn1.Asn1 {
  return asn1.create(Class.UNIVERSAL, Type.OCTETSTRING, false, bytes);
}

function objectId(id: string): forge.asn1.Asn1 {
  return asn1.create(Class.UNIVERSAL, Type.OID, false, asn1.oidToDer(id).getBytes());
}
