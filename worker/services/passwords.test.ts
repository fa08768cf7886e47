import { expect, test } from 'vitest';
import { Secret } from '../../shared/model/secret.ts';
import { hashPassword, isPassword } from './passwords.ts';

const PASSWORD = new Secret('correct horse battery');

test('a password is known by its hash, and no other is', async () => {
  const stored = await hashPassword(PASSWORD);
  expect(stored).toMatch(/^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  expect(await isPassword(PASSWORD, stored)).toBe(true);
  expect(await isPassword(new Secret('correct horse batterz'), stored)).toBe(false);
});

test('two hashes of one password differ', async () => {
  expect(await hashPassword(PASSWORD)).not.toBe(await hashPassword(PASSWORD));
});

test('nobody has a password', async () => {
  expect(await isPassword(PASSWORD, null)).toBe(false);
});

test('one password in two compositions of Unicode is one', async () => {
  const stored = await hashPassword(new Secret('caf\u00e9 au lait, bitte'));
  expect(await isPassword(new Secret('cafe\u0301 au lait, bitte'), stored)).toBe(true);
});
