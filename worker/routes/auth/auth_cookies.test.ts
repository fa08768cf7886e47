import { expect, test } from 'vitest';
import { sessionCookieHeader } from './auth_cookies.ts';

const TWELVE_HOURS = 12 * 3600;

test('the cookie of a session goes over https alone, to this host alone, and to no script', () => {
  expect(sessionCookieHeader({ local: null }, 'token-of-a-test')).toBe(
    `__Host-session=token-of-a-test; Max-Age=${TWELVE_HOURS}; Path=/; HttpOnly; Secure; SameSite=Lax`,
  );
});

test('in local mode, which has no https, to no script either', () => {
  const local = { userId: 'usr_1', keyHash: 'hash-of-a-test', consoleHost: 'svc-1.localhost' };
  expect(sessionCookieHeader({ local }, 'token-of-a-test')).toBe(
    `svc_session=token-of-a-test; Max-Age=${TWELVE_HOURS}; Path=/; HttpOnly; SameSite=Lax`,
  );
});
