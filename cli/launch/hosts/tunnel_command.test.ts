import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, type RunOptions, type RunResult, TestHome } from '../../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ENTRY = {
  id: 'tnl_01m7yjc1391a5krmyacsgq908t',
  host: 'pinned.example.com',
  owner: 'personal',
  created_at: '2026-01-01T11:59:00.000Z',
};

/** A control plane whose list has one entry of either owner; it returns a written entry as a record. */
const control: Answer = ({ method, url, body }) => {
  if (method === 'DELETE') return { status: 204 };
  if (method === 'POST') return { status: 201, body: { ...ENTRY, ...(typeof body === 'object' ? body : {}) } };
  const owner = url.searchParams.get('owner') ?? ENTRY.owner;
  return { status: 200, body: { items: [{ ...ENTRY, owner }], next_cursor: null } };
};

const empty: Answer = () => ({ status: 200, body: { items: [], next_cursor: null } });

const tunnel = (argv: readonly string[], options: RunOptions = {}): Promise<RunResult> =>
  runCli(home, ['tunnel', ...argv], { answer: control, ...options });

function listCalls(run: RunResult): unknown[] {
  return run.calls.map(({ method, url, body }) => [method, url.pathname + url.search, body]);
}

describe('svc tunnel add', () => {
  test('adds a host in canonical form to the own list, and says what is given up', async () => {
    const run = await tunnel(['add', 'Pinned.Example.com.'], { terminal: true });
    expect(run.code).toBe(0);
    expect(listCalls(run)).toEqual([['POST', '/v1/tunnel-hosts', { host: 'pinned.example.com', owner: 'personal' }]]);
    expect(run.stdout).toContain('carried unread from now on: pinned.example.com');
    expect(run.stderr).toMatch(/not recorded, checked or given a credential.*sealed session must also allow/);
  });

  test('adds a pattern to the list of the enterprise', async () => {
    const run = await tunnel(['add', '*.example.com', '--owner', 'enterprise', '--json']);
    expect(listCalls(run)).toEqual([['POST', '/v1/tunnel-hosts', { host: '*.example.com', owner: 'enterprise' }]]);
    expect(JSON.parse(run.stdout)).toMatchObject({ host: '*.example.com', owner: 'enterprise' });
  });

  test.each(['*', '*.com', '10.0.0.1', '[::1]', 'host.example.com:8443', 'https://host.example.com', ''])(
    'takes %j for a mistake, and asks nobody',
    async (host) => {
      const run = await tunnel(['add', host]);
      expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('the host is')]);
      expect(run.calls).toEqual([]);
    },
  );

  test('passes on the refusal for a host that has a binding', async () => {
    const message = 'host: pinned.example.com has a binding: svc binding rm pinned.example.com';
    const answer: Answer = () => ({ status: 409, body: { error: { code: 'conflict', message } } });
    const run = await tunnel(['add', 'pinned.example.com'], { answer });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('svc binding rm pinned.example.com')]);
  });
});

describe('svc tunnel list', () => {
  test('shows the hosts of both owners, or of one', async () => {
    const all = await tunnel(['list'], { terminal: true });
    expect(all.stdout).toMatch(/HOST[^]*OWNER[^]*pinned\.example\.com +personal/);
    const own = await tunnel(['ls', '--owner', 'enterprise', '--json']);
    expect(JSON.parse(own.stdout)).toEqual({ items: [{ ...ENTRY, owner: 'enterprise' }] });
    expect(own.calls[0]?.url.searchParams.get('owner')).toBe('enterprise');
  });

  test('says of an empty list that every host is intercepted', async () => {
    const run = await tunnel(['list'], { answer: empty, terminal: true });
    expect(run.stdout + run.stderr).toContain('Connections to every host are intercepted: svc tunnel add HOST');
  });
});

describe('svc tunnel rm', () => {
  test.each([
    [[], 'personal'],
    [['--owner', 'enterprise'], 'enterprise'],
  ])('%j removes the entry of the %s list', async (options, owner) => {
    const run = await tunnel(['rm', 'PINNED.example.com', ...options], { terminal: true });
    expect(run.code).toBe(0);
    expect(run.calls.map(({ method, url }) => [method, url.pathname, url.searchParams.get('owner')])).toEqual([
      ['GET', '/v1/tunnel-hosts', owner],
      ['DELETE', `/v1/tunnel-hosts/${ENTRY.id}`, null],
    ]);
    expect(run.stdout).toContain('intercepted again: pinned.example.com');
  });

  test('says that a host is not on the list, and deletes nothing', async () => {
    const run = await tunnel(['rm', 'other.example.com']);
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining('other.example.com is not on the personal list'),
    ]);
    expect(run.calls.map(({ method }) => method)).toEqual(['GET']);
  });
});

test.each(['add', 'rm'])('svc tunnel %s changes nothing from inside a session', async (command) => {
  const run = await tunnel([command, 'pinned.example.com'], { env: { SVC_SESSION_ID: 'ses_1' } });
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('this runs inside a session')]);
  expect(run.calls).toEqual([]);
});
