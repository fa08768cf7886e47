import { expect, test } from 'vitest';
import { bearerBinding } from '../model/testing/sample_binding.ts';
import {
  type BorrowGrant,
  type CredentialUse,
  findUncovered,
  grantText,
  useOf,
  useOfSessionToken,
} from './borrow_grant.ts';

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
const USE: CredentialUse = { host: 'api.github.com', scheme: 'bearer', place: null, effect: 'read' };
const TOKEN = 'x-amz-security-token';

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

test.each<[string, Partial<BorrowGrant>, Partial<CredentialUse>, string | null]>([
  ['its header', { scheme: 'header-template', place: 'x-api-key' }, { place: 'x-api-key' }, null],
  ['another header', { scheme: 'header-template', place: 'x-api-key' }, { place: 'user-agent' }, 'not for user-agent'],
  ['a header, if it names none', { scheme: 'header-template' }, { place: 'x-api-key' }, 'names no header'],
  ['its parameter', { scheme: 'query-param', place: 'key' }, { place: 'key' }, null],
  ['another parameter', { scheme: 'query-param', place: 'key' }, { place: 'q' }, 'is for the query parameter key'],
  ['a session token, if it is for a key', { scheme: 'sigv4-resign' }, { place: TOKEN }, `names no header`],
  ['a key, if it is for a session token', { scheme: 'sigv4-resign', place: TOKEN }, {}, `the header ${TOKEN} alone`],
  ['its session token', { scheme: 'sigv4-resign', place: TOKEN }, { place: TOKEN }, null],
  ['its parameter in other letters', { scheme: 'query-param', place: 'key' }, { place: 'Key' }, 'not for Key'],
])('of the places of a value, %s', (_, grant, use, problem) => {
  const whole = { ...GRANT, ...grant };
  const found = findUncovered(whole, { ...USE, scheme: whole.scheme, ...use });
  expect(found ?? '').toContain(problem ?? '');
  expect(found === null).toBe(problem === null);
});

test('a binding is used in its header, in lower case, or its parameter', () => {
  const header = { scheme: 'header-template', header: 'X-Api-Key', template: '{token}' } as const;
  const places = [header, { scheme: 'query-param', queryParam: 'Key' } as const, { scheme: 'bearer' } as const].map(
    (injection) => useOf({ ...bearerBinding('a.test'), injection }, 'a.test').place,
  );
  expect(places).toEqual(['x-api-key', 'Key', null]);
});

test('the session token of a binding is used in its header, and its key in none', () => {
  const injection = { scheme: 'sigv4-resign', accessKeyId: 'AKIA1', region: 'eu-central-1', service: 's3' } as const;
  const binding = { ...bearerBinding('a.test'), injection };
  expect([useOf(binding, 'a.test').place, useOfSessionToken(binding, 'a.test').place]).toEqual([null, TOKEN]);
});

test('a consent without a place has the text that it had before there were places', () => {
  expect(grantText(GRANT)).not.toContain('place');
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
  { place: 'x-api-key' },
])('is another text with %j', (change) => {
  expect(grantText({ ...GRANT, ...change })).not.toBe(grantText(GRANT));
});
