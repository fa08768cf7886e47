import { createDecipheriv, createECDH, hkdfSync, webcrypto } from 'node:crypto';

/** What a browser keeps of a subscription. */
export interface BrowserSide {
  readonly p256dh: string;
  readonly auth: string;
  readonly privateKey: webcrypto.CryptoKey;
}

/** Reads a message as a browser does, by Node's own primitives (RFC 8291 section 3.4). Throws if it was not written for it. */
export async function decryptPush(
  { p256dh, auth, privateKey }: BrowserSide,
  body: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Buffer.from(body);
  const [salt, keyLength] = [bytes.subarray(0, 16), bytes[20] ?? 0];
  const sender = bytes.subarray(21, 21 + keyLength);
  const { d = '' } = await webcrypto.subtle.exportKey('jwk', privateKey);
  const own = createECDH('prime256v1');
  own.setPrivateKey(Buffer.from(d, 'base64url'));
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), Buffer.from(p256dh, 'base64url'), sender]);
  const input = Buffer.from(hkdfSync('sha256', own.computeSecret(sender), Buffer.from(auth, 'base64url'), info, 32));
  const derive = (name: string, length: number) =>
    Buffer.from(hkdfSync('sha256', input, salt, `Content-Encoding: ${name}\0`, length));
  const opened = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12));
  opened.setAuthTag(bytes.subarray(-16));
  const record = Buffer.concat([opened.update(bytes.subarray(21 + keyLength, -16)), opened.final()]);
  return Uint8Array.from(record.subarray(0, record.lastIndexOf(2)));
}

/** A browser's new keys. */
export async function makeBrowser(): Promise<BrowserSide> {
  const curve = { name: 'ECDH', namedCurve: 'P-256' };
  const pair = await webcrypto.subtle.generateKey(curve, true, ['deriveBits']);
  const point = await webcrypto.subtle.exportKey('raw', pair.publicKey);
  return {
    p256dh: Buffer.from(point).toString('base64url'),
    auth: Buffer.from(webcrypto.getRandomValues(new Uint8Array(16))).toString('base64url'),
    privateKey: pair.privateKey,
  };
}
