import { describe, expect, test } from 'vitest';
import { findNamedMcpServers } from './named_mcp_servers.ts';

const SERVERS = [
  { id: 'mcp_1', name: 'github', owner: 'enterprise' },
  { id: 'mcp_2', name: 'github', owner: 'personal' },
  { id: 'mcp_3', name: 'files', owner: 'personal' },
] as const;

describe('the MCP servers that a launch names', () => {
  test.each([
    [['files'], ['mcp_3']],
    [['github'], ['mcp_2']],
    [
      ['mcp_1', 'files', 'files'],
      ['mcp_1', 'mcp_3'],
    ],
    [[], []],
  ])('%j are %j', (wanted, ids) => {
    expect(findNamedMcpServers(wanted, SERVERS)).toEqual({ ok: true, value: ids });
  });

  test.each([
    ['githb', '"githb" is no MCP server: did you mean "github"?'],
    ['zzzzzz', '"zzzzzz" is no MCP server. List them with: svc mcp list'],
    ['toString', '"toString" is no MCP server. List them with: svc mcp list'],
  ])('%s is not among them', (wanted, error) => {
    expect(findNamedMcpServers(['files', wanted], SERVERS)).toEqual({ ok: false, error });
  });

  test('cannot be named while there are none', () => {
    expect(findNamedMcpServers(['x'], [])).toMatchObject({ ok: false, error: expect.stringContaining('svc mcp add') });
  });
});
