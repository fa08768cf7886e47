import { expect, test } from 'vitest';
import { type BorrowGrant, type CredentialUse, findUncovered, grantText } from './borrow_grant.ts';

const GRANT: BorrowGrant = {
  owner: 'personal',
  path: 'user/github',
  program: '/usr/bin/gh',
  args: ['auth', 'token'],
  env: {},
  output: { form: 'text' },
  files: [{ path: '/usr/bin/gh', sha256: null }],
  hosts: ['api.github.com', '*.example.com'],
  scheme: 'bearer',
  effect: 'read',
};
const USE: CredentialUse = { host: 'api.github.com', scheme: 'bearer', effect: 'read' };

test('covers its hosts, with its scheme and effect', () => {
  expect(findUncovered(GRANT, USE)).toBeNull();
  expect(findUncovered(GRANT, { ...USE, host: 'a.b.example.com' })).toBeNull();
  expect(findUncovered({ ...GRANT, effect: 'write' }, { ...USE, effect: null })).toBeNull();
});

test.each([
  [{ host: 'github.com' }, 'is for api.github.com, *.example.com, not for github.com'],
  [{ host: 'api.github.com.evil.test' }, 'not for api.github.com.evil.test'],
  [{ host: 'example.com' }, 'not for example.com'],
  [{ host: 'evilexample.com' }, 'not for evilexample.com'],
  [{ host: 'api.github.com:8443' }, 'not for api.github.com:8443'],
  [{ scheme: 'query-param' as const }, 'is for the scheme bearer, not for query-param'],
  [{ effect: 'write' as const }, 'is for bindings with the effect read, and this one has write'],
  [{ effect: null }, 'is for bindings with the effect read, and this one has none'],
])('does not cover %j', (change, problem) => {
  expect(findUncovered(GRANT, { ...USE, ...change })).toContain(problem);
});

test.each<Partial<BorrowGrant>>([
  { owner: 'enterprise' },
  { path: 'user/other' },
  { program: '/usr/bin/gx' },
  { args: ['auth token'] },
  { env: { GH_HOST: 'a' } },
  { output: { form: 'aws' } },
  { files: [{ path: '/usr/bin/gh', sha256: 'a'.repeat(64) }] },
  { hosts: ['api.github.com'] },
  { scheme: 'basic' },
  { effect: 'write' },
])('is another text with %j', (change) => {
  expect(grantText({ ...GRANT, ...change })).not.toBe(grantText(GRANT));
});
