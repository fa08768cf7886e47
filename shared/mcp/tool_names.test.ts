import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MCP_SERVER_NAME } from '../model/mcp_server.ts';
import { formatToolName, splitToolName } from './tool_names.ts';

const sha256Hex = (text: string) => createHash('sha256').update(text).digest('hex');
const name = (server: string, tool: string) => formatToolName(server, tool, sha256Hex);

const serverName = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,47}$/);
const toolName = fc.oneof(
  fc.string({ maxLength: 80 }),
  fc.stringMatching(/^[A-Za-z0-9_-]{1,80}$/),
  fc.stringMatching(/^[a-z]{0,3}_[0-9a-f]{12}$/),
);

describe('tool names for clients', () => {
  test('are the server, two underscores and the tool', () => {
    expect(name('github', 'create_issue')).toBe('github__create_issue');
    expect(splitToolName('github__create_issue')).toEqual({ server: 'github', tool: 'create_issue' });
    expect(splitToolName('a___b')).toEqual({ server: 'a', tool: '_b' });
  });

  test('have no prefix without a server', () => {
    expect([name('', 'create_issue'), name('', 'a__b')]).toEqual(['create_issue', 'a__b']);
    expect(name('', 'x'.repeat(100))).toHaveLength(64);
  });

  test('one that is too long, or has other characters, ends with its digest', () => {
    const long = name('github', 'x'.repeat(100));
    expect(long).toBe(`github__${'x'.repeat(43)}_${sha256Hex('x'.repeat(100)).slice(0, 12)}`);
    expect(long).toHaveLength(64);
    expect(name('s', 'a.b/c')).toBe(`s__a_b_c_${sha256Hex('a.b/c').slice(0, 12)}`);
    expect(name('s', '')).toBe(`s___${sha256Hex('').slice(0, 12)}`);
  });

  test("a tool cannot take another's shortened name", () => {
    const shortened = name('s', 'a.b');
    expect(name('s', shortened.slice('s__'.length))).not.toBe(shortened);
  });

  test('every name is accepted by providers, belongs to its server, and is deterministic', () => {
    fc.assert(
      fc.property(serverName, toolName, (server, tool) => {
        const exposed = name(server, tool);
        expect(exposed).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(splitToolName(exposed)?.server).toBe(server);
        expect(name(server, tool)).toBe(exposed);
      }),
    );
  });

  test('two tools never share a name', () => {
    fc.assert(
      fc.property(serverName, serverName, toolName, toolName, (serverA, serverB, toolA, toolB) => {
        fc.pre(serverA !== serverB || toolA !== toolB);
        expect(name(serverA, toolA)).not.toBe(name(serverB, toolB));
      }),
      { numRuns: 300 },
    );
  });

  test.each(['', 'github', '__x', 'a__', 'A__x', 'a_b__x', `${'a'.repeat(49)}__x`])('%s is not a tool name', (text) => {
    expect(splitToolName(text)).toBeNull();
  });

  test('a server name has no underscore', () => {
    expect(MCP_SERVER_NAME.test('a_b')).toBe(false);
  });
});
