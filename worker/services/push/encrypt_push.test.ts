import { expect, test } from 'vitest';
import { fromBase64Url, toBase64Url } from '../../kernel/encoding.ts';
import { encryptPush } from './encrypt_push.ts';
import { decryptPush } from '../../../e2e/support/decrypt_push.ts';

// RFC 8291, section 5 and appendix A.
const MESSAGE = fromBase64Url('V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24');
const AS_PUBLIC = 'BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8';
const AS_PRIVATE = 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw';
const UA_PUBLIC = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4';
const UA_PRIVATE = 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94';
const SALT = 'DGv6ra1nlYgDCS1FRnbzlw';
const AUTH = 'BTBZMqHH6r4Tts7J_aSIgg';
const BODY =
  'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN';
const KEYS = { p256dh: UA_PUBLIC, auth: AUTH };

async function pairOf(publicKey: string, privateKey: string) {
  const point = fromBase64Url(publicKey);
  const [x, y] = [point.slice(1, 33), point.slice(33)].map((part) => toBase64Url(part));
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' };
  const curve = { name: 'ECDH', namedCurve: 'P-256' };
  return {
    publicKey: await crypto.subtle.importKey('jwk', jwk, curve, true, []),
    privateKey: await crypto.subtle.importKey('jwk', { ...jwk, d: privateKey }, curve, true, ['deriveBits']),
  };
}

test('writes the example of RFC 8291 byte for byte', async () => {
  const fresh = { salt: fromBase64Url(SALT), pair: await pairOf(AS_PUBLIC, AS_PRIVATE) };
  expect(toBase64Url(await encryptPush(KEYS, MESSAGE, { fresh, padTo: 0 }))).toBe(BODY);
});

test('a browser reads the example, and what is written with fresh keys', async () => {
  const browser = { ...KEYS, ...(await pairOf(UA_PUBLIC, UA_PRIVATE)) };
  expect(await decryptPush(browser, fromBase64Url(BODY))).toEqual(MESSAGE);
  const [one, other] = [await encryptPush(KEYS, MESSAGE), await encryptPush(KEYS, MESSAGE)];
  expect(await decryptPush(browser, one)).toEqual(MESSAGE);
  expect(toBase64Url(one)).not.toBe(toBase64Url(other));
});

test('messages of every length have one length, and fit a push service', async () => {
  const lengths = await Promise.all(
    [0, 1, 200, 512].map(async (length) => (await encryptPush(KEYS, new Uint8Array(length))).length),
  );
  expect(new Set(lengths).size).toBe(1);
  expect(lengths[0]).toBeLessThan(4096);
});

test('another browser cannot read it, nor anybody a changed one', async () => {
  const browser = { ...KEYS, ...(await pairOf(UA_PUBLIC, UA_PRIVATE)) };
  const body = await encryptPush(KEYS, MESSAGE);
  await expect(decryptPush({ ...browser, auth: toBase64Url(new Uint8Array(16)) }, body)).rejects.toThrow(
    'unable to authenticate data',
  );
  body[body.length - 1] = (body.at(-1) ?? 0) ^ 1;
  await expect(decryptPush(browser, body)).rejects.toThrow('unable to authenticate data');
});
