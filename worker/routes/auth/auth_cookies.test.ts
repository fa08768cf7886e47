import { expect, test } from 'vitest';
import { sessionCookieHeader } from './auth_cookies.ts';

const TWELVE_HOURS = 12 * 3600;

test('a session cookie is sent over https only, to this host only, and is hidden from scripts', () => {
  expect(sessionCookieHeader({ local: null }, 'token-of-a-test')).toBe(
    `__Host-session=token-of-a-test; Max-Age=${TWELVE_HOURS}; Path=/; HttpOnly; Secure; SameSite=Lax`,
  );
});

test('in local mode, which has no https, it is hidden from scripts too', () => {
  const local = { userId: 'usr_1', keyHash: 'hash-of-a-test', consoleHost: 'svc-1.localhost', command: ['svc'] };
  expect(sessionCookieHeader({ local }, 'token-of-a-test')).toBe(
    `svc_session=token-of-a-test; Max-Age=${TWELVE_HOURS}; Path=/; HttpOnly; SameSite=Lax`,
  );
});
