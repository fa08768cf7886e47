import { describe, expect, test } from 'vitest';
import { mcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { formOfServer, readServerForm } from './console_mcp_form.ts';

const ID = 'mcp_01k0000000000000000000000a';
const ownReference = (name: string) => `vault://mcp-servers/${ID}/${name}`;
const TIME = '2026-01-02T03:04:05.000Z';

const server = (fields: object) =>
  mcpServerRecord.parse({
    id: ID,
    owner: 'personal',
    name: 'odd',
    description: '',
    mode: 'local',
    version: null,
    registry_id: null,
    command: ['npx', '-y', 'a-package@1.2.3'],
    env: {},
    url: null,
    transport: null,
    headers: {},
    enabled: true,
    isolation: 'process',
    revision: 3,
    status: 'stopped',
    health: null,
    credentials: [],
    authorization: null,
    warnings: [],
    created_at: TIME,
    updated_at: TIME,
    ...fields,
  });
const remote = (fields: object) =>
  server({ mode: 'remote', command: [], transport: 'sse', url: 'https://mcp.example.com/mcp', ...fields });

const fresh = { mode: 'local', name: 'files', program: 'npx', owner: 'personal' };
const problemsOf = (fields: object) => readServerForm({ ...fresh, ...fields }, null).form.problems;

describe('a configuration as a form', () => {
  test.each([
    [{ command: ['npx', '', ' spaced ', '"quoted"', 'two\nlines', 'back\rslash\\', '{braces}', ownReference('KEY')] }],
    [
      {
        env: {
          EMPTY: '',
          QUOTED: '"x"',
          LINES: 'a\nb',
          SPACED: ' a ',
          TEXT: 'a=b',
          KEY: ownReference('KEY'),
          AUTH: `B ${ownReference('K')}`,
        },
      },
    ],
  ])('is read back unchanged: %j', (fields) => {
    const before = server(fields);
    // Another line, so that the others are parsed and not kept.
    const { arguments: words, env, ...rest } = formOfServer(before);
    const again = readServerForm({ ...rest, arguments: `${words}\n--more`, env: `${env}\nMORE=1` }, before);
    const settled = JSON.stringify(again.input).replaceAll('{id}', ID);
    expect(again.form.problems).toEqual([]);
    expect(JSON.parse(settled)).toMatchObject({
      command: [...before.command, '--more'],
      env: { ...before.env, MORE: '1' },
    });
  });

  test('stays unchanged in an untouched field, even if the form would parse it differently', () => {
    const before = remote({ url: 'https://mcp.example.com/mcp?t={not_a_name}', headers: { 'X-Text': 'a {word}' } });
    const { input } = readServerForm({ ...formOfServer(before), description: 'new' }, before);
    expect(input).toMatchObject({ url: before.url, headers: before.headers, description: 'new', transport: 'sse' });
  });

  test('keeps what the form does not show', () => {
    const tools = { allow: ['read_*'], deny: [], approval: ['*'] };
    const before = server({ tools, enabled: false, registry_id: 'io.example/odd', owner: 'enterprise' });
    const { input } = readServerForm({ ...formOfServer(before), version: '2.0.0' }, before);
    expect(input).toMatchObject({
      tools,
      enabled: false,
      registry_id: 'io.example/odd',
      owner: 'enterprise',
      version: '2.0.0',
    });
  });
});

describe('a typed secret is not in the form again', () => {
  test.each([
    [{ env: 'API_KEY=planted' }, 'env', 'API_KEY'],
    [{ env: 'export API_KEY=planted' }, 'env', 'API_KEY'],
    [{ env: 'A=1\nAPI_KEY="planted\\n"' }, 'env', 'A=1\nAPI_KEY'],
    [{ arguments: '--token\nplanted' }, 'arguments', '--token\nvault://mcp-servers/{id}/TOKEN'],
    [{ mode: 'remote', url: 'https://me:planted@a.example/mcp' }, 'url', 'https://a.example/mcp'],
    [{ mode: 'remote', url: 'https://me:planted@a.example/?token=planted' }, 'url', 'https://a.example/?token={token}'],
    [
      { mode: 'remote', url: 'https://a.example/', headers: 'Authorization: planted' },
      'headers',
      'Authorization: {Authorization}',
    ],
  ])('%j', (fields, field, shown) => {
    const { input, form } = readServerForm({ ...fresh, ...fields }, null);
    expect(input).toBeNull();
    expect(form.values[field]).toBe(shown);
    expect(JSON.stringify(form)).not.toContain('planted');
  });
});

describe('a problem is shown at its field', () => {
  test.each([
    [{ program: '' }, 'program', 'is missing'],
    [{ arguments: 'a\n"b' }, 'arguments', 'has line 2'],
    [{ arguments: 'vault://user/github' }, 'arguments', 'has argument 1, which contains a reference'],
    [{ env: 'NO-NAME=1' }, 'env', 'has NO-NAME, which is not a variable name'],
    [{ env: 'A=1\nA=2' }, 'env', 'has A twice'],
    [{ env: 'A=vault://mcp-servers/mcp_01k0000000000000000000000b/A\u0000' }, 'env', 'has A, which'],
    [{ deny: 'bad*name' }, 'deny', 'is not a tool name'],
    [{ mode: 'remote', url: '' }, 'url', 'is missing'],
    [{ mode: 'remote', url: 'https://a.example/', headers: 'no header' }, 'headers', 'has line 1'],
    [{ mode: 'remote', url: 'https://a.example/', headers: 'Accept: x' }, 'headers', 'has Accept, which belongs to'],
  ])('%j', (fields, field, message) => {
    expect(problemsOf(fields)).toMatchObject([{ field, message: expect.stringContaining(message) }]);
  });

  test('problems are in the order of the form', () => {
    const fields = { name: '', program: '', env: 'API_KEY=abc', deny: '*x' };
    expect(problemsOf(fields).map(({ field }) => field)).toEqual(['name', 'program', 'env', 'deny']);
  });
});
