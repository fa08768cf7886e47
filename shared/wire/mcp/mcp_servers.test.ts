import { describe, expect, it } from 'vitest';
import { fieldProblems } from '../errors.ts';
import { withOwnId } from './mcp_references.ts';
import {
  mcpHealthReport,
  mcpServerInput,
  readSnapshotMcpServers,
  type SnapshotMcpServerRecord,
} from './mcp_servers.ts';

const ID = 'mcp_00000000000000000000000001';
const OTHER_ID = 'mcp_00000000000000000000000002';
const LOCAL = { name: 'files', command: ['npx', '-y', 'a-package@1.2.3'] };
const REMOTE = { name: 'hub', mode: 'remote', url: 'https://mcp.example.com/mcp' };

function problems(input: unknown): Record<string, string> {
  const parsed = mcpServerInput.safeParse(input);
  if (parsed.success) return {};
  return Object.fromEntries(fieldProblems(parsed.error).map(({ field, message }) => [field, message]));
}

describe('MCP server input', () => {
  it('accepts a program, and fills in the defaults', () => {
    expect(mcpServerInput.parse(LOCAL)).toEqual({
      owner: 'personal',
      name: 'files',
      description: '',
      mode: 'local',
      version: null,
      command: ['npx', '-y', 'a-package@1.2.3'],
      env: {},
      url: null,
      transport: null,
      headers: {},
      tools: { allow: null, deny: [], approval: [] },
      enabled: true,
      isolation: 'process',
    });
  });

  it('accepts a URL and headers with references', () => {
    const headers = { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' };
    const url = 'https://mcp.example.com:8443/mcp?key=vault://mcp-servers/{id}/KEY&x=1';
    expect(problems({ ...REMOTE, url, headers })).toEqual({});
    expect(problems({ ...REMOTE, url: 'http://127.0.0.1:3000/mcp' })).toEqual({});
  });

  const BAD: Readonly<Record<string, readonly [object, string, RegExp]>> = {
    'a line instead of a list': [{ ...LOCAL, command: 'npx -y x' }, 'command', /must be a list.*no shell/],
    'a program that is a reference': [
      { ...LOCAL, command: ['vault://mcp-servers/{id}/X'] },
      'command.0',
      /is a reference: write the program in full/,
    ],
    'a NUL in an argument': [{ ...LOCAL, command: ['a', 'b\0c'] }, 'command.1', /NUL/],
    'a hidden character in the program': [{ ...LOCAL, command: ['npx\u200b'] }, 'command.0', /hidden/],
    'no program': [{ ...LOCAL, command: [] }, 'command', /needs its program/],
    'a url without the mode': [{ name: 'a', url: REMOTE.url }, 'command', /is of mode "remote"/],
    "another secret's reference": [{ ...LOCAL, env: { A: 'x vault://user/demo' } }, 'env.A', /not the server's own/],
    'a reference in capitals': [
      { ...LOCAL, env: { A: 'VAULT://mcp-servers/{id}/A' } },
      'env.A',
      /not the server's own/,
    ],
    "the service's own name": [{ ...LOCAL, env: { A: 'vault://mcp-servers/{id}/SVC_OAUTH' } }, 'env.A', /own/],
    'a variable of the service': [{ ...LOCAL, env: { SVC_TOKEN: 'x' } }, 'env.SVC_TOKEN', /begins with "SVC_"/],
    'a variable that is none': [{ ...LOCAL, env: { 'A=B': 'x' } }, 'env.A=B', /not a variable name/],
    'a name with capitals': [{ ...LOCAL, name: 'Files' }, 'name', /not a server name/],
    'a missing name': [{ command: ['x'] }, 'name', /is missing/],
    'a field that is shown alone': [{ ...LOCAL, id: 'x', status: 'running' }, 'status', /^is read-only: leave it out$/],
    'one beside an unknown field': [
      { ...LOCAL, status: 'running', x: 1 },
      'x',
      /^is read-only or unknown: leave it out$/,
    ],
    'an unknown field': [{ ...LOCAL, comand: ['x'] }, 'comand', /did you mean "command"/],
    'headers of a local server': [{ ...LOCAL, headers: { A: 'x' } }, 'headers', /belongs to mode "remote"/],
    'a command of a remote server': [{ ...REMOTE, command: ['x'] }, 'command', /belongs to mode "local"/],
    'plain http': [{ ...REMOTE, url: 'http://mcp.example.com/mcp' }, 'url', /is not https/],
    'a password in the URL': [
      { ...REMOTE, url: 'https://a:b@mcp.example.com/' },
      'url',
      /put the credential in a header/,
    ],
    'a reference as the host': [
      { ...REMOTE, url: 'https://vault://mcp-servers/{id}/A/' },
      'url',
      /has a reference before its query/,
    ],
    'a line break in a header': [{ ...REMOTE, headers: { 'X-A': 'a\r\nX-B: c' } }, 'headers.X-A', /line break/],
    'a header that frames': [{ ...REMOTE, headers: { Host: 'x' } }, 'headers.Host', /frames or routes/],
    'a header of the protocol': [
      { ...REMOTE, headers: { 'Mcp-Session-Id': 'x' } },
      'headers.Mcp-Session-Id',
      /protocol/,
    ],
    'a header twice': [{ ...REMOTE, headers: { 'X-A': 'x', 'x-a': 'y' } }, 'headers.x-a', /twice/],
    'a star inside a tool': [{ ...LOCAL, tools: { deny: ['a*b'] } }, 'tools.deny.0', /only at the end/],
  };
  it.each(Object.entries(BAD))('refuses %s, naming the field and the fix', (_, [input, field, message]) => {
    expect(problems(input)[field]).toMatch(message);
  });
});

describe('references', () => {
  const fields = { command: ['x', '--key=vault://mcp-servers/{id}/KEY'], env: {}, url: null, headers: {} };

  it("get their server's id", () => {
    const settled = withOwnId(fields, ID);
    expect(settled).toMatchObject({ ok: true, value: { command: ['x', `--key=vault://mcp-servers/${ID}/KEY`] } });
  });

  it('to another server are refused', () => {
    const env = { A: `vault://mcp-servers/${OTHER_ID}/KEY` };
    expect(withOwnId({ ...fields, env }, ID)).toMatchObject({ ok: false, error: [{ field: 'env.A' }] });
  });
});

describe('the servers of a snapshot', () => {
  const record: SnapshotMcpServerRecord = {
    ...mcpServerInput.parse(LOCAL),
    registry_id: null,
    id: ID,
    revision: 1,
    authorization: null,
  };

  it('are parsed as the sidecar needs them', () => {
    const { servers, problems: found } = readSnapshotMcpServers([record]);
    expect(found).toEqual([]);
    expect(servers).toMatchObject([{ server: { id: ID, registryId: null, revision: 1 }, authorization: null }]);
  });

  it('stay if one of them cannot be read', () => {
    const foreign = { ...record, id: OTHER_ID, env: { A: `vault://mcp-servers/${ID}/A` } };
    const { servers, problems: found } = readSnapshotMcpServers([{ ...record, sandboxed: true }, 7, foreign, record]);
    expect(servers.map(({ server }) => server.id)).toEqual([ID]);
    expect(found.map(({ index, id }) => [index, id])).toEqual([
      [0, ID],
      [1, null],
      [2, OTHER_ID],
    ]);
    expect(found[2]?.message).toMatch(/^env\.A refers to a credential of another server/);
  });
});

describe('a health report', () => {
  it('is one plain line per server, whatever the program printed', () => {
    const entry = { id: ID, state: 'failed', last_error: 'it\n\u001b[31mdied', checked_at: '2026-01-01T00:00:00.000Z' };
    expect(mcpHealthReport.parse({ servers: [entry] }).servers[0]?.last_error).toBe('it <U+001B>[31mdied');
  });
});
