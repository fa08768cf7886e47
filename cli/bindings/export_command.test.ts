import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostedUser, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';
import { httpClient } from '../terminal/http_client.ts';
import { exportOwned } from './export_command.ts';
import { LEFT_OUT, LISTS_AFTER, LISTS_BEFORE } from './export_lists.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const me = (role: string) => ({ ...ME, role });

const chain = {
  writer: 'ent_1',
  events: 2,
  removed: 5,
  beginning_hash: 'a'.repeat(64),
  begins_at: '2026-01-01T00:00:00.000Z',
  head_hash: 'b'.repeat(64),
};
const verification = { ok: true, events: 2, removed: 5, chains: [chain], first_break: null };

/** A control plane whose lists have two pages of one item each. */
const answers =
  (role: string): Answer =>
  ({ url }) => {
    if (url.pathname === '/v1/me') return { status: 200, body: me(role) };
    if (url.pathname === '/v1/mcp-rules') return { status: 200, body: { revision: 1 } };
    if (url.pathname === '/v1/enterprise') return { status: 200, body: { id: 'ent_1', name: 'E' } };
    if (/^\/v1\/audit-sinks$|\/revisions$/.test(url.pathname)) {
      return { status: 200, body: { items: [{ id: url.pathname }] } };
    }
    if (url.pathname.startsWith('/v1/connectors/'))
      return { status: 200, body: { id: 'con_1', spec: { any: 'thing' } } };
    if (url.pathname === '/v1/audit-events/verify') return { status: 200, body: verification };
    const second = url.searchParams.get('cursor') === 'next';
    const item = { id: `${url.pathname}${second ? '#2' : '#1'}`, unknown_field: 1 };
    return { status: 200, body: { items: [item], next_cursor: second ? null : 'next' } };
  };

const withoutApprovals: Answer = (call) =>
  call.url.pathname === '/v1/approvals'
    ? { status: 503, body: { error: { code: 'database_unavailable', message: 'try again', request_id: 'req_1' } } }
    : answers('owner')(call);

const linesOf = (stdout: string): Record<string, unknown>[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

test('svc export from a control plane of an earlier version leaves out what that does not have', async () => {
  const error = { code: 'not_found', message: 'this path does not exist: /docs lists the API', request_id: 'req_1' };
  const without =
    (path: string): Answer =>
    (call) =>
      call.url.pathname === path ? { status: 404, body: { error } } : answers('owner')(call);
  const run = await runCli(home, ['export'], { answer: without('/v1/client-certificates') });
  expect(run.code).toBe(0);
  const kinds = linesOf(run.stdout).map(({ kind }) => kind);
  expect(kinds).toContain('tunnel_host');
  expect(kinds).toContain('audit_verification');
  expect(kinds).not.toContain('client_certificate');
  expect((await runCli(home, ['export'], { answer: without('/v1/tunnel-hosts') })).code).toBe(1);
});

/** The kinds of two items of a list, each with two of the lists below it. */
const twice = (kind: string, ...below: string[]) => [1, 2].flatMap(() => [kind, ...below.flatMap((it) => [it, it])]);

test('svc export writes one line per item with its kind and all fields, from every page', async () => {
  const run = await runCli(home, ['export'], { answer: answers('owner') });
  expect(run.code).toBe(0);
  const lines = linesOf(run.stdout);
  expect(lines.map(({ kind }) => kind)).toEqual([
    'user',
    'enterprise',
    'mcp_rules',
    ...['member', 'invitation', 'join_request', 'scim_token'].flatMap((kind) => twice(kind)),
    'audit_sink',
    'audit_sink_dead_letter',
    'audit_sink_dead_letter',
    ...twice('service_account', 'service_account_secret', 'service_account_host_binding'),
    ...twice('connector'),
    ...['secret', 'secret_source', 'host_binding', 'tunnel_host', 'client_certificate'].flatMap((kind) => twice(kind)),
    ...[1, 2].flatMap(() => ['mcp_server', 'mcp_server_revision']),
    ...twice('mcp_client'),
    ...twice('group', 'group_member'),
    ...['share', 'received_share', 'identity', 'session', 'sidecar', 'token'].flatMap((kind) => twice(kind)),
    ...['approval', 'approval_rule', 'approval_grant', 'audit_event'].flatMap((kind) => twice(kind)),
    'audit_chain',
    'audit_verification',
  ]);
  expect(lines).toContainEqual({ kind: 'audit_chain', ...chain });
  expect(lines).toContainEqual({ kind: 'secret', id: '/v1/secrets#2', unknown_field: 1 });
  expect(lines).toContainEqual({ kind: 'connector', id: 'con_1', spec: { any: 'thing' } });
  expect(new Set(run.calls.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('svc export leaves out admin-only lists for a member', async () => {
  const run = await runCli(home, ['export'], { answer: answers('member') });
  expect(run.code).toBe(0);
  const called = run.calls.map(({ url }) => url.pathname);
  const ofAdmins = ['members', 'mcp-rules', 'scim-tokens', 'service-accounts', 'join-requests', 'audit-sinks'];
  expect(called.filter((path) => ofAdmins.some((name) => path === `/v1/${name}`))).toEqual([]);
});

const HERE = { origin: 'https://svc.test', token: null, name: 'the control plane', startFix: '' };

function pathOf({ pathname, search }: URL): string {
  return pathname + search;
}

const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});

describe('with a control plane', () => {
  let control: InProcess;
  beforeAll(async () => {
    control = await startHosted();
  });
  afterAll(() => control.stop());

  test('every list of the API is exported, or left out with a reason', async () => {
    const { paths, components } = await parseReply(openApi, control.send('/openapi.json'));
    const isList = (operation: unknown) => {
      const name = /"200":.*?"\$ref":"#\/components\/schemas\/(\w+)"/.exec(JSON.stringify(operation))?.[1] ?? '';
      return JSON.stringify(components.schemas[name] ?? operation).includes('"items":{"type":"array"');
    };
    const lists = Object.entries(paths).flatMap(([path, { get }]) =>
      path.startsWith('/v1/') && get !== undefined && isList(get) ? [path] : [],
    );
    const exported = [...LISTS_BEFORE, ...LISTS_AFTER].flatMap(({ path, below = [] }) => [
      path,
      ...below.map((each) => `${path}/{id}/${each.path}`),
    ]);
    const known = new Set([...exported, '/v1/connectors', ...Object.keys(LEFT_OUT)]);
    expect(lists.filter((path) => !known.has(path))).toEqual([]);
    expect([...known].filter((path) => !lists.includes(path))).toEqual([]);
  });

  test.each(['owner', 'member'])('the lists are readable for the role %s', async (role) => {
    const { caller, call } = await hostedUser(control);
    const { database } = control.context;
    await database.client.execute({ sql: 'UPDATE users SET role = ? WHERE id = ?', args: [role, caller.userId] });
    expect((await call('POST', '/v1/groups', { name: 'g' })).status).toBe(role === 'owner' ? 201 : 403);
    await call('POST', '/v1/mcp-servers', { name: 'exported', command: ['x'] });
    const lines: string[] = [];
    const client = httpClient({ ...HERE, fetch: (url, { method }) => call(method, pathOf(url)) });
    await exportOwned(client, (line) => lines.push(line));
    const exported = linesOf(lines.join(''));
    expect(exported.find(({ kind }) => kind === 'session')).toMatchObject({ session_kind: 'program' });
    const kinds = exported.map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(['mcp_server', 'mcp_server_revision', 'session', 'audit_chain']));
  });
});

test('svc export fails if a list fails, so that a partial export is not taken for a complete one', async () => {
  expect((await runCli(home, ['export'], { answer: withoutApprovals })).code).toBe(1);
});
