import { Secret } from '../../shared/model/secret.ts';
import { fromBase64Url, toBase64Url } from './encoding.ts';

/** A Web Crypto key; each runtime has its own type for it. */
type CryptoKey = Parameters<typeof crypto.subtle.encrypt>[1];

/** What a sealed value is bound to. It cannot be opened at another place. */
export interface SealPlace {
  /** The owner's id, or `installation`. */
  readonly owner: string;
  readonly path: string;
  /** Binds the value to its row's version, so that nobody can restore an older value. */
  readonly version: number;
}

const NONCE_BYTES = 12;
const KEY_BYTES = 32;
const FORMAT = 'v1';

/** A master key and the keys derived from it, none of them extractable. */
interface Keys {
  readonly master: CryptoKey;
  readonly mac: CryptoKey;
  readonly fingerprint: CryptoKey;
  readonly fingerprintMark: string;
}

/**
 * Seals with AES-256-GCM. Each value has its own data key, encrypted with the master key; both are bound to the place.
 * The master key is not extractable and never leaves this class. While the master key of a database is being changed
 * there are two: the first seals, and both open.
 */
export class Vault {
  readonly #keys: Keys;
  readonly #previous: Keys | null;

  private constructor(keys: Keys, previous: Keys | null) {
    this.#keys = keys;
    this.#previous = previous;
  }

  /** Keys of 32 bytes as base64url. Throws if one is not. */
  static async open(masterKey: Secret, previous: Secret | null = null): Promise<Vault> {
    return new Vault(await deriveKeys(masterKey), previous && (await deriveKeys(previous)));
  }

  /**
   * The prefix of this key's fingerprints. It distinguishes them from those of an earlier key and reveals nothing of a
   * value.
   */
  get fingerprintMark(): string {
    return this.#keys.fingerprintMark;
  }

  /** Identifies the sealing key without revealing it. */
  get keyMark(): string {
    return this.#keys.fingerprintMark.slice(0, -1);
  }

  async seal(place: SealPlace, secret: Secret): Promise<string> {
    const dataKey = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    const key = await crypto.subtle.importKey('raw', dataKey, 'AES-GCM', false, ['encrypt']);
    const wrapped = await encrypt(this.#keys.master, dataKey, encodePlace(place, 'data key'));
    const value = await encrypt(key, utf8(secret.reveal()), encodePlace(place, 'value'));
    dataKey.fill(0);
    return `${FORMAT}.${toBase64Url(wrapped)}.${toBase64Url(value)}`;
  }

  /** The secret sealed at this place; null if it was sealed with another key or at another place, or was altered. */
  async open(place: SealPlace, sealed: string): Promise<Secret | null> {
    const [format, wrapped, value] = sealed.split('.');
    if (format !== FORMAT || wrapped === undefined || value === undefined) return null;
    const dataKey = await this.#unwrap(place, wrapped);
    if (dataKey === null) return null;
    const key = await crypto.subtle.importKey('raw', dataKey, 'AES-GCM', false, ['decrypt']);
    const plain = await decrypt(key, value, encodePlace(place, 'value'));
    return plain === null ? null : new Secret(new TextDecoder('utf-8', { ignoreBOM: true }).decode(plain));
  }

  async #unwrap(place: SealPlace, wrapped: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const dataKey = await decrypt(this.#keys.master, wrapped, encodePlace(place, 'data key'));
    if (dataKey !== null || this.#previous === null) return dataKey;
    return decrypt(this.#previous.master, wrapped, encodePlace(place, 'data key'));
  }

  /** A keyed MAC over a text. Only the holder of the master key can make it. */
  async mac(text: string): Promise<string> {
    return hmac(this.#keys.mac, text);
  }

  /** The MACs that a text may have: with this key, and with the second key if there is one. */
  async macs(text: string): Promise<readonly string[]> {
    const mac = await this.mac(text);
    return this.#previous === null ? [mac] : [mac, await hmac(this.#previous.mac, text)];
  }

  /** A keyed hash that is equal for equal values of one owner. It reveals that only to the holder of the master key. */
  async fingerprint(owner: string, secret: Secret): Promise<string> {
    return this.#keys.fingerprintMark + (await hmac(this.#keys.fingerprint, JSON.stringify([owner, secret.reveal()])));
  }
}

async function deriveKeys(masterKey: Secret): Promise<Keys> {
  const bytes = fromBase64Url(masterKey.reveal());
  if (bytes.length !== KEY_BYTES) throw new Error('the master key is not 32 bytes');
  const master = await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
  const source = await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey']);
  const mac = await deriveMacKey(source, 'svc audit heads');
  const fingerprint = await deriveMacKey(source, 'svc secret fingerprints');
  const fingerprintMark = `${(await hmac(fingerprint, 'svc fingerprint key')).slice(0, 8)}.`;
  return { master, mac, fingerprint, fingerprintMark };
}

function deriveMacKey(source: CryptoKey, purpose: string): Promise<CryptoKey> {
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(32), info: utf8(purpose) };
  return crypto.subtle.deriveKey(derivation, source, { name: 'HMAC', hash: 'SHA-256', length: 256 }, false, ['sign']);
}

async function hmac(key: CryptoKey, text: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.sign('HMAC', key, utf8(text))));
}

async function encrypt(
  key: CryptoKey,
  plain: Uint8Array<ArrayBuffer>,
  additionalData: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData }, key, plain);
  const bytes = new Uint8Array(NONCE_BYTES + sealed.byteLength);
  bytes.set(iv);
  bytes.set(new Uint8Array(sealed), NONCE_BYTES);
  return bytes;
}

async function decrypt(
  key: CryptoKey,
  text: string,
  additionalData: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    const bytes = fromBase64Url(text);
    const iv = bytes.slice(0, NONCE_BYTES);
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, key, bytes.slice(NONCE_BYTES));
    return new Uint8Array(plain);
  } catch {
    // WebCrypto gives one error for a wrong key, a wrong place and an altered text: all mean "not this secret".
    return null;
  }
}

/** A JSON array keeps the parts apart, so that each place has its own encoding. */
function encodePlace(place: SealPlace, part: 'data key' | 'value'): Uint8Array<ArrayBuffer> {
  return utf8(JSON.stringify(['svc vault', FORMAT, part, place.owner, place.path, place.version]));
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
