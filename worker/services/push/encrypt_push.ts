import { joinBytes } from '../../../shared/inject/join_bytes.ts';
import { fromBase64Url } from '../../kernel/encoding.ts';

/** A Web Crypto key pair; each runtime has its own type for it. */
type KeyPair = Awaited<ReturnType<typeof makeKeyPair>>;

/** The keys of a browser's subscription, as base64url (RFC 8291 section 2). */
export interface BrowserKeys {
  /** Its public key, an uncompressed point of P-256. */
  readonly p256dh: string;
  /** The authentication secret. */
  readonly auth: string;
}

/** What is chosen anew for each message. */
interface Fresh {
  readonly salt: Uint8Array<ArrayBuffer>;
  readonly pair: KeyPair;
}

const CURVE = { name: 'ECDH', namedCurve: 'P-256' } as const;
const RECORD_BYTES = 4096;
const SALT_BYTES = 16;
/** The last record ends with it (RFC 8188 section 2). */
const LAST = 2;
/** Every message is padded to this, so that its length says nothing. */
const PADDED_BYTES = 512;

/** Encrypts a message for one browser by `aes128gcm` (RFC 8291, RFC 8188): its push service cannot read it. */
export async function encryptPush(
  keys: BrowserKeys,
  message: Uint8Array<ArrayBuffer>,
  { fresh, padTo = PADDED_BYTES }: { readonly fresh?: Fresh; readonly padTo?: number } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const salt = fresh?.salt ?? crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const pair = fresh?.pair ?? (await makeKeyPair());
  const theirs = fromBase64Url(keys.p256dh);
  const ours = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const shared = await crypto.subtle.deriveBits(
    { name: 'ECDH', public: await importBrowserKey(theirs) },
    pair.privateKey,
    256,
  );
  const info = joinBytes([utf8('WebPush: info\0'), theirs, ours]);
  const input = await hkdf(new Uint8Array(shared), { salt: fromBase64Url(keys.auth), info, bytes: 32 });
  const contentKey = await hkdf(input, { salt, info: utf8('Content-Encoding: aes128gcm\0'), bytes: 16 });
  const nonce = await hkdf(input, { salt, info: utf8('Content-Encoding: nonce\0'), bytes: 12 });
  const key = await crypto.subtle.importKey('raw', contentKey, 'AES-GCM', false, ['encrypt']);
  const record = joinBytes([message, Uint8Array.of(LAST), new Uint8Array(Math.max(0, padTo - message.length))]);
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce }, key, record);
  return joinBytes([salt, header(ours), new Uint8Array(sealed)]);
}

/** The public key of a browser. Throws if it is no point of the curve. */
export function importBrowserKey(point: Uint8Array<ArrayBuffer>) {
  return crypto.subtle.importKey('raw', point, CURVE, false, []);
}

async function makeKeyPair() {
  const pair = await crypto.subtle.generateKey(CURVE, true, ['deriveBits']);
  if (!('publicKey' in pair)) throw new TypeError('not a key pair');
  return pair;
}

/** The size of a record, and our public key as the key's id (RFC 8188 section 2.1, RFC 8291 section 4). */
function header(ours: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(5 + ours.length);
  new DataView(bytes.buffer).setUint32(0, RECORD_BYTES);
  bytes[4] = ours.length;
  bytes.set(ours, 5);
  return bytes;
}

async function hkdf(
  input: Uint8Array<ArrayBuffer>,
  {
    bytes,
    ...how
  }: { readonly salt: Uint8Array<ArrayBuffer>; readonly info: Uint8Array<ArrayBuffer>; readonly bytes: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const key = await crypto.subtle.importKey('raw', input, 'HKDF', false, ['deriveBits']);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', ...how }, key, bytes * 8));
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
