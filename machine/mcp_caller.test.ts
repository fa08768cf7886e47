import { expect, test } from 'vitest';
import { callerHeader, HOST_CALLER, mayUse, readCallerHeader } from './mcp_caller.ts';
import { qualifyUri, readQualifiedUri } from '../gateway/routing/qualified_uri.ts';
import { isLargerThan } from '../gateway/routing/json_size.ts';

test('a caller round-trips', () => {
  for (const caller of [
    HOST_CALLER,
    { sessionId: 'ses_1', servers: ['a', 'b'] },
    { sessionId: 'ses_1', servers: [] },
  ]) {
    expect(readCallerHeader(callerHeader(caller))).toEqual(caller);
  }
});

test('invalid input is no caller, never the host', () => {
  const texts = [
    '',
    '{}',
    '{"session_id":null}',
    '{"servers":null}',
    '{"session_id":1,"servers":null}',
    '{"session_id":null,"servers":"a"}',
    '{"session_id":null,"servers":[1]}',
    'null',
  ];
  for (const text of texts) expect(readCallerHeader(Buffer.from(text).toString('base64url'))).toBeNull();
  expect([readCallerHeader(null), readCallerHeader('%%')]).toEqual([null, null]);
});

test('a caller may use its servers, and the host all', () => {
  expect([mayUse({ sessionId: 's', servers: ['a'] }, 'a'), mayUse({ sessionId: 's', servers: ['a'] }, 'b')]).toEqual([
    true,
    false,
  ]);
  expect([mayUse(HOST_CALLER, 'b'), mayUse({ sessionId: null, servers: [] }, 'b')]).toEqual([true, false]);
});

test('a qualified URI round-trips', () => {
  for (const uri of ['file:///a b', 'demo://x/{id}?q=1#f', 'ü']) {
    expect(readQualifiedUri(qualifyUri('git-2', uri))).toEqual({ server: 'git-2', uri });
  }
  for (const text of ['file:///x', 'svc-mcp://', 'svc-mcp://a/b/c', 'svc-mcp://A/b', 'svc-mcp://a/%E0']) {
    expect(readQualifiedUri(text)).toBeNull();
  }
});

test('estimates the JSON size of a value', () => {
  const value = { a: ['x'.repeat(100), { b: 1 }], c: null };
  expect([isLargerThan(value, 200), isLargerThan(value, 90), isLargerThan('x'.repeat(9), 5)]).toEqual([
    false,
    true,
    true,
  ]);
});
