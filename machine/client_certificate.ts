import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { Secret } from '../shared/model/secret.ts';
import { err, ok, type Result } from '../shared/model/result.ts';

/** A client certificate with its key, as a TLS library takes them. */
export interface CertificateAndKey {
  /** PEM: the certificate of the key first, then what else was given of its chain. */
  readonly chain: string;
  /** PEM. */
  readonly key: Secret;
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
/** A single "-" is in the headers of an encrypted key (RFC 1421), such as `DEK-Info: AES-128-CBC`. */
const PRIVATE_KEY = /-----BEGIN ((?:[A-Z0-9]+ )*)PRIVATE KEY-----(?:[^-]|-(?!-))*-----END \1PRIVATE KEY-----/g;

/**
 * Reads PEM certificates and their private key, in any order and with any text between them. `passphrase` opens an encrypted key. The
 * error says what is wrong, in words that follow "it", and quotes nothing of the text.
 */
export function readCertificateAndKey(text: string, passphrase?: string): Result<CertificateAndKey, string> {
  const certificates = readCertificates(text);
  if (!certificates.ok) return certificates;
  const keys = text.match(PRIVATE_KEY) ?? [];
  if (keys.length === 0) return err('has no PEM private key (-----BEGIN PRIVATE KEY-----)');
  if (keys.length > 1) return err(`has ${keys.length} private keys, where one has to be`);
  const key = openKey(keys[0] ?? '', passphrase);
  if (!key.ok) return key;
  const own = certificates.value.find((certificate) => certificate.checkPrivateKey(key.value));
  if (own === undefined) return err('has a private key that does not match the certificate');
  const notBefore = Date.parse(own.validFrom);
  const notAfter = Date.parse(own.validTo);
  if (Number.isNaN(notBefore) || Number.isNaN(notAfter)) return err('has a certificate whose dates cannot be read');
  const others = certificates.value.filter((certificate) => certificate !== own);
  return ok({
    chain: [own, ...others].map((certificate) => certificate.toString()).join(''),
    key: new Secret(key.value.export({ type: 'pkcs8', format: 'pem' }).toString()),
    notBefore,
    notAfter,
  });
}

/** Whether the private key is encrypted, so that it needs a passphrase. */
export function hasEncryptedKey(text: string): boolean {
  return (text.match(PRIVATE_KEY) ?? []).some((key) => /BEGIN ENCRYPTED |Proc-Type: 4,ENCRYPTED/.test(key));
}

function readCertificates(text: string): Result<X509Certificate[], string> {
  try {
    const found = (text.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    return found.length === 0 ? err('has no PEM certificate (-----BEGIN CERTIFICATE-----)') : ok(found);
  } catch {
    return err('has a certificate that cannot be read');
  }
}

function openKey(pem: string, passphrase: string | undefined): Result<KeyObject, string> {
  try {
    return ok(createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) }));
  } catch {
    const isEncrypted = hasEncryptedKey(pem);
    if (!isEncrypted) return err('has a private key that cannot be read');
    return err(
      passphrase === undefined
        ? 'has an encrypted private key'
        : 'has a private key that this passphrase does not open',
    );
  }
}
