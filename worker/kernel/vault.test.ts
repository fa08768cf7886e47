import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newMasterKey } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { Vault } from './vault.ts';

const place = { owner: 'usr_1', path: 'user/demo', version: 1 };

describe('the vault', () => {
  test('opens what it sealed, and never produces the same ciphertext twice', async () => {
    const vault = await Vault.open(newMasterKey());
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 200 }), async (text) => {
        fc.pre(!/\p{Cs}/u.test(text));
        const sealed = await vault.seal(place, new Secret(text));
        expect((await vault.open(place, sealed))?.reveal()).toBe(text);
        expect(await vault.seal(place, new Secret(text))).not.toBe(sealed);
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    ['another owner', { owner: 'usr_2' }],
    ['another path', { path: 'user/dem' }],
    ['an older version', { version: 2 }],
  ])('does not open at %s', async (_, change) => {
    const vault = await Vault.open(newMasterKey());
    const sealed = await vault.seal(place, new Secret('value'));
    expect(await vault.open({ ...place, ...change }, sealed)).toBeNull();
  });

  test('does not open with another key', async () => {
    const sealed = await (await Vault.open(newMasterKey())).seal(place, new Secret('value'));
    expect(await (await Vault.open(newMasterKey())).open(place, sealed)).toBeNull();
  });

  test('does not open when any character is altered', async () => {
    const vault = await Vault.open(newMasterKey());
    const sealed = await vault.seal(place, new Secret('value'));
    await fc.assert(
      fc.asyncProperty(fc.nat(sealed.length - 1), async (index) => {
        // The last character of a part may carry unused bits; a change of the one before it always counts.
        const at = /[.]|$/.test(sealed.charAt(index + 1)) && index > 0 ? index - 1 : index;
        const other = sealed.charAt(at) === 'A' ? 'B' : 'A';
        expect(await vault.open(place, sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeNull();
      }),
      { numRuns: 100 },
    );
  });

  test('accepts only a key of 32 bytes', async () => {
    await expect(Vault.open(new Secret('AAAA'))).rejects.toThrow('not 32 bytes');
  });

  test('makes a different seal with another key', async () => {
    const [one, other] = await Promise.all([Vault.open(newMasterKey()), Vault.open(newMasterKey())]);
    expect(await one.mac('text')).toBe(await one.mac('text'));
    expect(await one.mac('text')).not.toBe(await other.mac('text'));
  });

  test('makes the same fingerprint for the same value and owner, and another one for another value, owner or key', async () => {
    const vault = await Vault.open(newMasterKey());
    const other = await Vault.open(newMasterKey());
    const first = await vault.fingerprint('usr_1', new Secret('value'));
    expect(await vault.fingerprint('usr_1', new Secret('value'))).toBe(first);
    const others = [
      await vault.fingerprint('usr_2', new Secret('value')),
      await vault.fingerprint('usr_1', new Secret('valu')),
      await other.fingerprint('usr_1', new Secret('value')),
    ];
    expect(new Set([first, ...others]).size).toBe(4);
    expect(first.startsWith(vault.fingerprintMark)).toBe(true);
    expect(others[2]?.startsWith(vault.fingerprintMark)).toBe(false);
  });
});
