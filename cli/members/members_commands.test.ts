import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const ENDS = '2026-01-08T12:00:00.000Z';
const invitation = {
  id: `inv_${ID}`,
  email: 'pat@acme.test',
  role: 'admin',
  state: 'open',
  created_at: '2026-01-01T12:00:00.000Z',
  expires_at: ENDS,
};
const URL_OF_LINK = 'https://control.test/invitations/abc';
const created: Answer = () => ({ status: 201, body: { ...invitation, url: URL_OF_LINK, mailed: false } });
const page =
  (items: readonly unknown[]): Answer =>
  () => ({ status: 200, body: { items, next_cursor: null } });

describe('svc members', () => {
  test('invite prints the link alone on stdout', async () => {
    const args = ['members', 'invite', 'pat@acme.test', '--role', 'admin', '--days', '7'];
    const run = await runCli(home, args, { answer: created });
    expect(run.calls).toMatchObject([
      { method: 'POST', body: { email: 'pat@acme.test', role: 'admin', expires_in_days: 7 } },
    ]);
    expect(run.stdout).toBe(`${URL_OF_LINK}\n`);
    expect(run.stderr).toContain('Pass the link on yourself');
  });

  test('invite refuses days that are no number', async () => {
    const run = await runCli(home, ['members', 'invite', 'pat@acme.test', '--days', 'x'], { answer: created });
    expect(run).toMatchObject({ code: 2, calls: [] });
  });

  test('invitations lists them, and revoke ends one', async () => {
    const listed = await runCli(home, ['members', 'invitations'], { answer: page([invitation]) });
    expect(listed.stdout).toBe(`inv_${ID}\tpat@acme.test\tadmin\topen\t2026-01-08\n`);
    const revoked = await runCli(home, ['members', 'revoke', `inv_${ID}`], { answer: () => ({ status: 204 }) });
    expect(revoked.calls.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
      `DELETE /v1/invitations/inv_${ID}`,
    ]);
  });

  test('list shows the people', async () => {
    const member = {
      id: `usr_${ID}`,
      email: null,
      display_name: 'Pat',
      role: 'member',
      created_at: ENDS,
      suspended_at: null,
    };
    const run = await runCli(home, ['members', 'list'], { answer: page([member]) });
    expect(run.stdout).toBe(`usr_${ID}\tPat\t-\tmember\tactive\n`);
  });
});

test('svc enterprise list marks the one of the sign-in', async () => {
  const item = { id: `ent_${ID}`, slug: 'acme', user_id: `usr_${ID}`, suspended_at: null };
  const items = [
    { ...item, name: 'Acme', role: 'member', current: true },
    { ...item, name: 'Home', role: 'owner', current: false },
  ];
  const run = await runCli(home, ['enterprise', 'list'], { answer: () => ({ status: 200, body: { items } }) });
  expect(run.stdout).toBe(`*\tAcme\tmember\tent_${ID}\n\tHome\towner\tent_${ID}\n`);
});

const deleted = (calls: readonly { method: string; url: URL }[]) =>
  calls.filter(({ method }) => method === 'DELETE').map(({ url }) => url.pathname);

describe('who goes', () => {
  const counts = {
    secrets: 2,
    host_bindings: 0,
    tunnel_hosts: 0,
    connectors: 0,
    mcp_servers: 0,
    tokens: 1,
    sidecars: 0,
    sign_ins: 0,
    mcp_clients: 0,
  };
  const me = {
    id: `usr_${ID}`,
    enterprise_id: `ent_${ID}`,
    email: null,
    display_name: 'Pat',
    role: 'member',
    policy_version: 0,
    created_at: ENDS,
  };
  const answer: Answer = ({ method, url }) => {
    if (method === 'DELETE') return { status: 204 };
    return { status: 200, body: url.pathname === '/v1/me' ? me : counts };
  };
  test.each([[['members', 'remove', `usr_${ID}`]], [['enterprise', 'leave']]])(
    '%j says what goes, and asks for the name',
    async (args) => {
      const told = await runCli(home, [...args, '--yes'], { answer });
      expect(told.stderr).toContain('secrets: 2, personal tokens: 1');
      expect(deleted(told.calls)).toEqual([`/v1/members/usr_${ID}`]);
      expect(await runCli(home, args, { answer })).toMatchObject({ code: 2 });
      const wrong = await runCli(home, args, { answer, terminal: true, typed: ['yes'] });
      expect([wrong.code === 0, deleted(wrong.calls)]).toEqual([false, []]);
      const typed = args[0] === 'members' ? `usr_${ID}` : `ent_${ID}`;
      const right = await runCli(home, args, { answer, terminal: true, typed: [typed] });
      expect(deleted(right.calls)).toEqual([`/v1/members/usr_${ID}`]);
    },
  );
});

const file = () => join(home.path, 'out.ndjson');
const deletions = (calls: readonly { readonly method: string; readonly url: URL }[]) =>
  calls.filter(({ method }) => method === 'DELETE').map(({ url }) => url.pathname + url.search);

/** A control plane with one member. */
const withMember =
  (before: object): Answer =>
  ({ method, body }) =>
    method === 'GET'
      ? { status: 200, body: { items: [before], next_cursor: null } }
      : { status: 200, body: { ...before, ...(typeof body === 'object' && body), suspended_at: null } };

describe('svc members suspend and resume', () => {
  const member = { id: `usr_${ID}`, email: null, display_name: 'Pat', role: 'admin', created_at: ENDS };
  const suspended = { ...member, suspended_at: ENDS };
  test('leave the role as somebody changed it while the question waited', async () => {
    let reads = 0;
    const answer: Answer = (call) => {
      reads += call.method === 'GET' ? 1 : 0;
      return withMember({ ...member, role: reads > 1 ? 'member' : 'admin', suspended_at: null })(call);
    };
    const { calls } = await runCli(home, ['members', 'suspend', `usr_${ID}`], {
      answer,
      typed: [`usr_${ID}`],
      terminal: true,
    });
    expect(calls.at(-1)).toMatchObject({ method: 'PUT', body: { role: 'member', suspended: true } });
  });

  test.each([
    ['suspend', '--yes', null],
    ['resume', '--json', ENDS],
    ['role', 'owner', ENDS],
  ])('svc members %s changes what was read, and nothing later', async (verb, last, suspendedAt) => {
    const args = ['members', verb, `usr_${ID}`, last];
    const before = { ...member, suspended_at: suspendedAt };
    const run = await runCli(home, args, { answer: withMember({ ...before, revision: 'r1' }) });
    expect(run.calls.at(-1)).toMatchObject({ method: 'PUT', ifMatch: '"r1"' });
    const older = await runCli(home, args, { answer: withMember(before) });
    expect(older.calls.at(-1)).toMatchObject({ method: 'PUT', ifMatch: null });
    const conflict = { code: 'conflict', message: 'the member changed meanwhile: read again', request_id: 'r' };
    const late = await runCli(home, args, {
      answer: (call) => (call.method === 'PUT' ? { status: 409, body: { error: conflict } } : withMember(before)(call)),
    });
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('the member changed meanwhile: read again')]);
  });

  test('keep the role, and ask before a suspension', async () => {
    const args = ['members', 'suspend', `usr_${ID}`];
    const answer = withMember({ ...member, suspended_at: null });
    const run = await runCli(home, [...args, '--yes'], { answer });
    expect(run.calls.at(-1)).toMatchObject({ method: 'PUT', body: { role: 'admin', suspended: true } });
    expect(run.stdout).toBe('Pat is suspended\n');
    const wrong = await runCli(home, args, { answer, terminal: true, typed: ['yes'] });
    expect([wrong.code, wrong.calls.filter(({ method }) => method === 'PUT')]).toEqual([1, []]);
    expect(await runCli(home, args, { answer })).toMatchObject({ code: 2 });
    const resumed = await runCli(home, ['members', 'resume', `usr_${ID}`], { answer: withMember(suspended) });
    expect(resumed.calls.at(-1)).toMatchObject({ method: 'PUT', body: { role: 'admin', suspended: false } });
    const unknown = await runCli(home, ['members', 'resume', 'usr_x'], { answer: withMember(suspended) });
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('there is no member "usr_x"')]);
  });
});

describe('svc enterprise delete', () => {
  const enterprise = {
    id: `ent_${ID}`,
    slug: 'pat-acme',
    name: 'Acme',
    created_at: ENDS,
    billing_email: null,
    allowed_domains: [],
    allowed_providers: null,
    sso_required: false,
    oidc: null,
    saml: null,
  };
  const departing = { host_bindings: 1, tunnel_hosts: 0, connectors: 0, mcp_servers: 0, tokens: 0, sidecars: 2 };
  const deletion = { members: 3, secrets: 4, sign_ins: 1, mcp_clients: 0, ...departing };
  const verification = { ok: true, events: 0, removed: 0, chains: [], first_break: null };
  const answer: Answer = (call) => {
    if (call.method === 'DELETE') return { status: 204 };
    const bodies: Record<string, unknown> = {
      '/v1/me': ME,
      '/v1/enterprise': enterprise,
      '/v1/enterprise/deletion': deletion,
      '/v1/audit-events/verify': verification,
    };
    return { status: 200, body: bodies[call.url.pathname] ?? { items: [], next_cursor: null } };
  };

  test('shows what goes, exports it into a private file, and repeats the slug', async () => {
    const run = await runCli(home, ['enterprise', 'delete', '--export', file(), '--yes'], { answer });
    expect([run.code, run.stderr]).toEqual([0, expect.stringContaining('secrets: 4, host bindings: 1, sidecars: 2')]);
    expect(deletions(run.calls)).toEqual(['/v1/enterprise?confirm=pat-acme']);
    expect(readFileSync(file(), 'utf8')).toContain('"kind":"enterprise"');
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const again = await runCli(home, ['enterprise', 'delete', '--export', file(), '--yes'], { answer });
    expect([again.code, deletions(again.calls)]).toEqual([1, []]);
  });

  test('account delete exports first, and repeats the address', async () => {
    const account = { ...departing, secrets: 4, sign_ins: 1, mcp_clients: 0 };
    const ofAccount: Answer = (call) =>
      call.url.pathname === '/v1/me/deletion'
        ? { status: 200, body: { ...account, confirm: 'pat@acme.test', deletes_enterprise: true } }
        : answer(call);
    const args = ['account', 'delete', '--export', file()];
    const wrong = await runCli(home, args, { answer: ofAccount });
    expect([wrong.code, wrong.calls]).toEqual([2, []]);
    const run = await runCli(home, args, { answer: ofAccount, terminal: true, typed: ['pat@acme.test'] });
    expect([run.code, run.stderr]).toEqual([0, expect.stringContaining('Nobody else is in your enterprise')]);
    expect(deletions(run.calls)).toEqual(['/v1/me?confirm=pat%40acme.test']);
    expect(readFileSync(file(), 'utf8')).toContain('"kind":"user"');
  });

  test('exports nothing with --no-export, and deletes nothing without a terminal or --yes', async () => {
    const run = await runCli(home, ['enterprise', 'delete', '--no-export', '--yes'], { answer });
    expect([run.code, deletions(run.calls)]).toEqual([0, ['/v1/enterprise?confirm=pat-acme']]);
    expect(existsSync(file())).toBe(false);
    const unasked = await runCli(home, ['enterprise', 'delete', '--no-export'], { answer });
    expect([unasked.code, deletions(unasked.calls)]).toEqual([2, []]);
  });
});
