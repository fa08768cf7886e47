import { expect, test } from 'vitest';
import { parsePlainTarget } from './plain_target.ts';

test.each([
  ['http://a.test', 'GET', { host: 'a.test', port: 80, origin: '/' }],
  ['HTTP://A.test.:80/x?y#z', 'GET', { host: 'a.test', port: 80, origin: '/x?y#z' }],
  ['http://a.test?q', 'GET', { host: 'a.test', port: 80, origin: '/?q' }],
  ['http://a.test:8080//b', 'GET', { host: 'a.test', port: 8080, origin: '//b' }],
  ['http://[::1]/', 'GET', { host: '[::1]', port: 80, origin: '/' }],
  ['http://a.test', 'OPTIONS', { host: 'a.test', port: 80, origin: '*' }],
  ['http://a.test/', 'OPTIONS', { host: 'a.test', port: 80, origin: '/' }],
])('reads %s of %s', (target, method, expected) => {
  expect(parsePlainTarget(target, method)).toEqual({ ok: true, value: expected });
});

test.each(['http://', 'http:///x', 'http://u@a.test/', 'http://a.test:0/', 'http://a..test/', 'http://a%2etest/'])(
  'refuses %s',
  (target) => expect(parsePlainTarget(target, 'GET')).toMatchObject({ ok: false, error: { reason: 'invalid_target' } }),
);

test.each(['https://a.test/', '/http://a.test/', 'a.test:443', 'http:/a.test', '*'])('%s is none', (target) => {
  expect(parsePlainTarget(target, 'GET')).toBeNull();
});
