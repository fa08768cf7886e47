import { expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { argumentsHash, callSummary } from './call_summary.ts';

const server = localServer({ name: 'files', description: 'Files of mine' });

test('contains the tool and argument names and sizes, never a value', () => {
  const args = { path: '/secret/place', lines: [1, 2], deep: { a: 1 }, count: 7, none: null };
  expect(callSummary(server, 'write_file', args)).toBe(
    'MCP server files (Files of mine): tool "write_file" with "path" (13 characters), "lines" (2 items), "deep" (1 members), "count" (number), "none" (null)',
  );
  expect(callSummary(server, 'x', {})).toContain('without arguments');
});

test('is one line of limited length without control characters', () => {
  const summary = callSummary(
    server,
    'a\u001B[2J\nb\u202E',
    Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`k${i}\u0007`, 'v'])),
  );
  expect(summary).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(summary.length).toBeLessThanOrEqual(500);
});

test('equal calls have equal hashes in any argument order; different calls differ', () => {
  const hash = argumentsHash(server, 't', { a: 1, b: { c: [2] } });
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(argumentsHash(server, 't', { b: { c: [2] }, a: 1 })).toBe(hash);
  const others = [
    argumentsHash(server, 't', { a: 1, b: { c: [3] } }),
    argumentsHash(server, 'u', { a: 1, b: { c: [2] } }),
    argumentsHash({ ...server, revision: 2 }, 't', { a: 1, b: { c: [2] } }),
    argumentsHash(server, 't', { a: '\uD800' }),
  ];
  expect(new Set([hash, ...others]).size).toBe(5);
});
