import { afterEach, beforeEach, expect, test } from 'vitest';
import { mcpServerInput, type McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { type Answer, type RunOptions, runCli, type SeenCall, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const time = '2026-01-01T11:59:00.000Z';
const TOOLS = { allow: null, deny: ['write_*'], approval: [] };
const RULES = { sources: ['npm:@acme/*'], isolation: 'process', pinned_only: true, tools: TOOLS };

function serverOf(id: string, name: string, owner: 'personal' | 'enterprise'): McpServerRecord {
  return {
    ...mcpServerInput.parse({ name, owner, command: ['npx', '-y', 'a-package@1.2.3'], tools: TOOLS }),
    id: `mcp_${id.padEnd(26, '0')}`,
    registry_id: null,
    revision: 2,
    status: 'stopped',
    health: null,
    credentials: [],
    authorization: null,
    rule_problem: null,
    warnings: [],
    created_at: time,
    updated_at: time,
  };
}
const FILES = serverOf('1', 'files', 'personal');
const SHARED = serverOf('2', 'shared', 'enterprise');
const STOPPED = { id: FILES.id, name: 'files', owner: 'personal', email: null, problem: 'a rule says no' };

const control: Answer = ({ method, url, body }) => {
  if (url.pathname === '/v1/mcp-rules/check') return { status: 200, body: { items: [STOPPED] } };
  if (url.pathname === '/v1/mcp-rules')
    return { status: 200, body: method === 'PUT' ? body : { ...RULES, revision: 'r1' } };
  if (method === 'GET') return { status: 200, body: { items: [FILES, SHARED], next_cursor: null } };
  return { status: 200, body: url.pathname.endsWith(SHARED.id) ? SHARED : FILES };
};

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runCli(home, ['mcp', 'policy', ...argv], { answer: control, ...options });
const apply = (text: string, ...argv: readonly string[]) =>
  run(['apply', '-f', home.write('policy.yaml', text), ...argv]);
const writes = (calls: readonly SeenCall[]) =>
  calls.filter(({ method }) => method === 'PUT').map(({ url }) => url.pathname);

test('what is exported changes nothing when it is applied', async () => {
  const { stdout } = await run(['export']);
  expect(stdout).toContain('sources:\n    - npm:@acme/*\n');
  const again = await apply(stdout, '--yes');
  expect([again.code, again.stdout, writes(again.calls)]).toEqual([0, 'Nothing differs from the file.\n', []]);
});

test('shows what would change, and which servers that stops, and saves nothing', async () => {
  const text = 'rules: {pinned_only: false, sources: null}\nservers: [{name: files, tools: {deny: [drop_*]}}]\n';
  const { stdout, stderr, calls } = await apply(text, '--dry-run');
  expect(stdout.split('\n')).toEqual([
    '~ rules of the enterprise',
    '    sources: ["npm:@acme/*"] -> null',
    '    pinned_only: true -> false',
    '~ files (personal)',
    '    deny: ["write_*"] -> ["drop_*"]',
    '',
  ]);
  expect(stderr).toContain('a rule says no');
  expect(writes(calls)).toEqual([]);
});

test.each(['sources', 'isolation', 'pinned_only', 'tools'])(
  'a file without %s leaves that rule as it is',
  async (field) => {
    const kept = { sources: ['npm:@acme/*'], isolation: 'process', pinned_only: true, tools: { deny: ['write_*'] } };
    const rules = Object.fromEntries(Object.entries(kept).filter(([name]) => name !== field));
    const { stdout, calls } = await apply(JSON.stringify({ rules }), '--yes');
    expect([stdout, writes(calls)]).toEqual(['Nothing differs from the file.\n', []]);
  },
);

test('a file without a list of a server leaves that list as it is', async () => {
  const { calls } = await apply(
    'servers: [{name: files, tools: {approval: [read_*]}}, {name: shared, owner: enterprise}]',
    '--yes',
  );
  const saved = calls.filter(({ method }) => method === 'PUT').map(({ body }) => body);
  expect(saved).toEqual([expect.objectContaining({ tools: { ...TOOLS, approval: ['read_*'] } })]);
});

test('saves the rules that were read, then servers of the enterprise, then one’s own', async () => {
  const names = ['{name: files, tools: {deny: [a]}}', '{name: shared, owner: enterprise, tools: {deny: [b]}}'];
  const text = `rules: {pinned_only: false}\nservers: [${names.join(', ')}]\n`;
  const { code, calls } = await apply(text, '--yes');
  const paths = ['/v1/mcp-rules', `/v1/mcp-servers/${SHARED.id}`, `/v1/mcp-servers/${FILES.id}`];
  expect([code, writes(calls)]).toEqual([0, paths]);
  const saved = calls.filter(({ method }) => method === 'PUT');
  expect(saved[0]?.body).toMatchObject({ pinned_only: false, revision: 'r1' });
  expect(saved[2]).toMatchObject({ ifMatch: '"2"', body: { command: FILES.command, tools: { deny: ['a'] } } });
  expect(saved[2]?.body).not.toHaveProperty('revision');
});

test.each([
  ['', 'the file is empty'],
  ['rules: {isolation: vm}', 'rules.isolation is "vm", which is none of process, container'],
  ['servers: [{name: files, tool: {}}]', 'servers.0'],
  ['servers: [{name: gone, tools: {deny: [a]}}]', 'there is no server gone with the owner personal'],
  ['servers: [{name: files}, {name: files}]', 'the server files is there twice'],
  ['servers: [\n', 'policy.yaml was not applied'],
])('refuses %j with the place, before it changes anything', async (text, problem) => {
  const { code, stderr, calls } = await apply(text, '--yes');
  expect([code, stderr, writes(calls)]).toEqual([1, expect.stringContaining(problem), []]);
});

test('asks a person, and says what was saved before a change that failed', async () => {
  const text = 'rules: {pinned_only: false}\nservers: [{name: files, tools: {deny: [a]}}]\n';
  const refused = await apply(text);
  expect([refused.code, writes(refused.calls)]).toEqual([2, []]);
  const problem = { error: { code: 'forbidden', message: 'not yours', request_id: 'req_1', details: {} } };
  const file = home.write('policy.yaml', text);
  const half = await run(['apply', '-f', file, '--yes'], {
    answer: (call) =>
      call.method === 'PUT' && call.url.pathname.startsWith('/v1/mcp-servers')
        ? { status: 403, body: problem }
        : control(call),
  });
  expect([half.code, half.stderr]).toEqual([1, expect.stringContaining('saved before that: the rules')]);
});
