import { base64url, type CryptoKey, importPKCS8, SignJWT } from 'jose';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { toBase64 } from '../../kernel/encoding.ts';
import type { MintFailure } from './source_port.ts';

export type SigningAlgorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

interface Assertion {
  readonly algorithm: SigningAlgorithm;
  readonly keyId?: string | undefined;
  /** The SHA-1 or SHA-256 of a certificate, in hexadecimal. */
  readonly thumbprint?: string | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** The life of an assertion, which is used at once: some providers accept no more than this. */
const ASSERTION_SECONDS = 300;

/** Signs an assertion, which is used once (RFC 7523 section 3). Refuses with `invalid_key`. */
export function signAssertion(key: Secret, assertion: Assertion, nowMs: number): Promise<Result<Secret, MintFailure>> {
  const iat = Math.floor(nowMs / 1000);
  const claims = { ...assertion.claims, jti: crypto.randomUUID(), iat, exp: iat + ASSERTION_SECONDS };
  return signJwt(key, { ...assertion, claims });
}

/** Signs a JWT with a private key. Refuses with `invalid_key`. */
export async function signJwt(
  key: Secret,
  { algorithm, keyId, thumbprint, claims }: Assertion,
): Promise<Result<Secret, MintFailure>> {
  const imported = await importPrivateKey(key, algorithm);
  if (!imported.ok) return imported;
  const named = { ...(keyId !== undefined && { kid: keyId }), ...thumbprintHeader(thumbprint) };
  const header = { alg: algorithm, typ: 'JWT', ...named };
  return ok(new Secret(await new SignJWT({ ...claims }).setProtectedHeader(header).sign(imported.value)));
}

/** RFC 7515 sections 4.1.7 and 4.1.8. */
function thumbprintHeader(thumbprint = ''): Readonly<Record<string, string>> {
  const bytes = thumbprint.match(/[\dA-Fa-f]{2}/g)?.map((pair) => Number.parseInt(pair, 16)) ?? [];
  if (bytes.length === 0) return {};
  return { [bytes.length === 20 ? 'x5t' : 'x5t#S256']: base64url.encode(Uint8Array.from(bytes)) };
}

/** Reads a private key in PEM: PKCS#8, or PKCS#1 as GitHub gives it. Refuses with `invalid_key`. */
export async function importPrivateKey(
  key: Secret,
  algorithm: SigningAlgorithm,
): Promise<Result<CryptoKey, MintFailure>> {
  try {
    const imported = await importPKCS8(asPkcs8(key.reveal().trim()), algorithm);
    const bits = rsaBitsOf(imported);
    if (bits === null || (bits >= LEAST_RSA_BITS && bits <= MOST_RSA_BITS)) return ok(imported);
    const message = `the private key is an RSA key of ${bits} bits: give one of ${LEAST_RSA_BITS} to ${MOST_RSA_BITS} bits`;
    return err({ reason: 'invalid_key', message });
  } catch {
    // The library's errors differ by runtime, and may quote the text.
    const message = `the private key is no key for ${algorithm}: give it in PEM, as "-----BEGIN PRIVATE KEY-----" or, for RSA, "-----BEGIN RSA PRIVATE KEY-----", without a passphrase`;
    return err({ reason: 'invalid_key', message });
  }
}

/** The libraries sign with no smaller key (RFC 7518 section 3.3), and a signature takes time with the cube of the size. */
const LEAST_RSA_BITS = 2048;
const MOST_RSA_BITS = 8192;

/** Null: it is no RSA key. */
function rsaBitsOf({ algorithm }: CryptoKey): number | null {
  return 'modulusLength' in algorithm && typeof algorithm.modulusLength === 'number' ? algorithm.modulusLength : null;
}

const PKCS1 = /^-----BEGIN RSA PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END RSA PRIVATE KEY-----$/;
/** Version 0 and the algorithm rsaEncryption with no parameters (RFC 5958 section 2, RFC 8017 appendix C). */
const RSA_PREFIX = [
  0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

function asPkcs8(pem: string): string {
  const inner = PKCS1.exec(pem)?.[1];
  if (inner === undefined) return pem;
  const key = Uint8Array.from(atob(inner.replaceAll(/\s/g, '')), (letter) => letter.charCodeAt(0));
  const info = derOf(0x30, [...RSA_PREFIX, ...derOf(0x04, key)]);
  return `-----BEGIN PRIVATE KEY-----\n${toBase64(Uint8Array.from(info))}\n-----END PRIVATE KEY-----`;
}

/** A DER element of a length below 64 KiB. */
function derOf(tag: number, content: ArrayLike<number>): number[] {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return [tag, ...size, ...Array.from(content)];
}
