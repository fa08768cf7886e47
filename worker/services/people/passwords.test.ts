import { expect, test } from 'vitest';
import { Secret } from '../../../shared/model/secret.ts';
import { hashPassword, isPassword, PASSWORD_COST } from './passwords.ts';

const PASSWORD = new Secret('correct horse battery');

test('a password matches its own hash only', async () => {
  const stored = await hashPassword(PASSWORD, PASSWORD_COST);
  expect(stored).toMatch(/^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  expect(await isPassword(PASSWORD, stored, PASSWORD_COST)).toBe(true);
  expect(await isPassword(new Secret('correct horse batterz'), stored, PASSWORD_COST)).toBe(false);
});

test('two hashes of the same password differ', async () => {
  expect(await hashPassword(PASSWORD, PASSWORD_COST)).not.toBe(await hashPassword(PASSWORD, PASSWORD_COST));
});

test('no password matches if there is no hash', async () => {
  expect(await isPassword(PASSWORD, null, PASSWORD_COST)).toBe(false);
});

test('a password matches in every Unicode composition', async () => {
  const stored = await hashPassword(new Secret('caf\u00e9 au lait, bitte'), PASSWORD_COST);
  expect(await isPassword(new Secret('cafe\u0301 au lait, bitte'), stored, PASSWORD_COST)).toBe(true);
});
