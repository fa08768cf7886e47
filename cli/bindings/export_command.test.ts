import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

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
    if (url.pathname === '/v1/enterprise') return { status: 200, body: { id: 'ent_1', name: 'E' } };
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

test('svc export writes one line per item with its kind and all fields, from every page', async () => {
  const run = await runCli(home, ['export'], { answer: answers('owner') });
  expect(run.code).toBe(0);
  const lines = linesOf(run.stdout);
  const kinds = [
    'member',
    'invitation',
    'connector',
    'secret',
    'host_binding',
    'tunnel_host',
    'client_certificate',
    'mcp_server',
    'group',
    'share',
    'sidecar',
    'token',
    'approval',
    'approval_grant',
    'audit_event',
  ];
  expect(lines.map(({ kind }) => kind)).toEqual([
    'user',
    'enterprise',
    ...kinds.flatMap((kind) => (kind === 'invitation' ? [kind, kind, 'audit_sink'] : [kind, kind])),
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
  expect(run.calls.map(({ url }) => url.pathname)).not.toContain('/v1/members');
});

test('svc export fails if a list fails, so that a partial export is not taken for a complete one', async () => {
  expect((await runCli(home, ['export'], { answer: withoutApprovals })).code).toBe(1);
});
