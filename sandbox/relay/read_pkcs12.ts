import forge from 'node-forge';
import { err, ok, type Result } from '../../shared/model/result.ts';

const { asn1, pem, pkcs12, pki, util } = forge;

/** The error for a passphrase that does not open the file. */
export const WRONG_PASSPHRASE = 'cannot be opened with this passphrase';

/**
 * The PEM texts of the certificates and the key of a PKCS#12 file (RFC 7292). If it has a MAC, that is checked with the passphrase.
 * The error is in words that follow "it".
 */
export function readPkcs12(bytes: Uint8Array, passphrase: string): Result<string, string> {
  let parsed: forge.asn1.Asn1;
  try {
    parsed = asn1.fromDer(util.createBuffer(Buffer.from(bytes).toString('latin1')));
  } catch {
    return err('is no PKCS#12 file');
  }
  try {
    const bags = pkcs12.pkcs12FromAsn1(parsed, false, passphrase).safeContents.flatMap(({ safeBags }) => safeBags);
    return ok(bags.map(pemOf).join(''));
  } catch (error) {
    const isPassphrase = error instanceof Error && /password|MAC could not be verified/i.test(error.message);
    return err(
      isPassphrase
        ? WRONG_PASSPHRASE
        : 'cannot be read: convert it with "openssl pkcs12 -in FILE -nodes -out FILE.pem", and give that to --cert and --key',
    );
  }
}

/** What the library does not know, such as keys on elliptic curves, it gives as it was encoded. */
function pemOf(bag: forge.pkcs12.Bag): string {
  if (bag.type === pki.oids['certBag']) {
    if (bag.cert) return pki.certificateToPem(bag.cert);
    return encode('CERTIFICATE', bag.asn1);
  }
  if (bag.type !== pki.oids['keyBag'] && bag.type !== pki.oids['pkcs8ShroudedKeyBag']) return '';
  if (bag.key) return encode('PRIVATE KEY', pki.wrapRsaPrivateKey(pki.privateKeyToAsn1(bag.key)));
  return encode('PRIVATE KEY', bag.asn1);
}

function encode(type: string, value: forge.asn1.Asn1): string {
  return pem.encode({ type, body: asn1.toDer(value).getBytes() });
}
