import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const event = {
  id: 'evt_01m7yjc1391a5krmyacsgq908t',
  type: 'sandbox.proxy.binding_injected',
  time: '2026-01-01T11:00:00.000Z',
  sidecar_id: 'sdc_01m7yjby3c69shrte2a60bpm60',
  session_id: 'ses_1',
  actor: 'session',
  data: {
    'svc.proxy.method': 'GET',
    'svc.proxy.upstream.host': 'api.example.com',
    'svc.proxy.upstream.path': '/items',
    'svc.proxy.upstream.status': 200,
  },
  writer: 'sdc_01m7yjby3c69shrte2a60bpm60',
  sequence: 1,
  previous_hash: '0'.repeat(64),
  hash: 'a'.repeat(64),
  received_at: '2026-01-01T11:00:01.000Z',
};
const UNKNOWN = { ...event, type: 'control.robot.greeted', data: { ...event.data, 'svc.robot.name': 'r' } };
const list: Answer = () => ({ status: 200, body: { items: [event], next_cursor: null } });

const pages: Answer = ({ url }) => {
  const last = url.searchParams.get('cursor') === 'b';
  const next = url.searchParams.get('cursor') === 'a' ? 'b' : 'a';
  return { status: 200, body: { items: [event], next_cursor: last ? null : next } };
};

const refused = (reason: string) => ({
  ...event,
  type: 'sandbox.proxy.rejected',
  data: { ...event.data, 'svc.proxy.reason': reason },
});

async function count(...flags: string[]): Promise<number> {
  const run = await runCli(home, ['audit', 'list', ...flags], { answer: pages });
  return run.stdout.trimEnd().split('\n').length;
}

describe('svc audit list', () => {
  test('shows events of a newer control plane, which this svc does not know', async () => {
    const answer: Answer = () => ({ status: 200, body: { items: [UNKNOWN], next_cursor: null } });
    const run = await runCli(home, ['audit', 'list', '--json'], { answer });
    expect(JSON.parse(run.stdout)).toMatchObject({ items: [UNKNOWN] });
  });

  test('shows the name of what was changed, not its id', async () => {
    const base = { ...event, type: 'control.binding.created', session_id: null };
    const changes = [
      { 'svc.proxy.binding.host': 'api.example.com', 'svc.control.credential_ref': 'vault://user/demo' },
      { 'svc.control.credential_ref': 'vault://user/demo' },
      { 'svc.connector.fqn': 'acme/items' },
      { 'svc.mcp.server': 'files' },
    ];
    const items = changes.map((data) => ({ ...base, data: { 'svc.control.resource': 'bnd_1', ...data } }));
    const answer: Answer = () => ({ status: 200, body: { items, next_cursor: null } });
    const run = await runCli(home, ['audit', 'list'], { answer });
    const targets = run.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[3]);
    expect(targets).toEqual(['api.example.com', 'vault://user/demo', 'acme/items', 'files']);
  });

  test('fits a terminal of 80 columns', async () => {
    const path = `/repos/somebody/${'a-long-name/'.repeat(20)}`;
    const data = { ...event.data, 'svc.proxy.upstream.path': path, 'svc.proxy.reason': 'x'.repeat(100) };
    const long = { ...event, type: 'sandbox.proxy.foreign_credential_kept', data };
    const answer: Answer = () => ({ status: 200, body: { items: [event, long], next_cursor: null } });
    const run = await runCli(home, ['audit', 'list'], { answer, terminal: true, columns: 80, env: { NO_COLOR: '1' } });
    const widths = run.stdout
      .trimEnd()
      .split('\n')
      .map((line) => Array.from(line).length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(80);
    expect(run.stdout).toContain('binding_injected');
  });

  test('cuts nothing on a terminal of 80 columns that has room for it', async () => {
    const run = await runCli(home, ['audit', 'list'], { answer: list, terminal: true, columns: 80 });
    expect(run.stdout).toContain('api.example.com/items');
    expect(run.stdout).not.toContain('…');
  });

  test('says to a person what the codes of refusals mean, each once', async () => {
    const items = ['host_not_allowed', 'head_too_large', 'host_not_allowed', 'of_a_newer_svc'].map(refused);
    const answer: Answer = () => ({ status: 200, body: { items: [event, ...items], next_cursor: null } });
    const shown = await runCli(home, ['audit', 'list'], { answer, terminal: true });
    expect(shown.stderr).toBe(
      'host_not_allowed: The host is not an allowed host of the binding.\nhead_too_large: The head of the request was larger than the limit.\n',
    );
    for (const flags of [[], ['--json']]) {
      expect((await runCli(home, ['audit', 'list', ...flags], { answer })).stderr).toBe('');
    }
    expect((await runCli(home, ['audit', 'list', '--json'], { answer, terminal: true })).stderr).toBe('');
  });

  test('prints one line for an event', async () => {
    const run = await runCli(home, ['audit', 'list'], { answer: list });
    expect(run.stdout).toBe(
      '2026-01-01T11:00:00.000Z\tsandbox.proxy.binding_injected\tGET\tapi.example.com/items\t200\tses_1\n',
    );
  });

  test.each([
    [
      'connector.proxy.proxied',
      {
        'svc.proxy.method': 'GET',
        'svc.proxy.upstream.host': 'api.example.com',
        'svc.proxy.upstream.path': '/items',
        'svc.proxy.upstream.status': 200,
        'svc.connector.fqn': 'acme/items',
        'svc.connector.operation': 'list-items',
      },
      'GET\tapi.example.com/items\tlist-items: 200',
    ],
    [
      'connector.approval.decided',
      {
        'svc.connector.fqn': 'acme/items',
        'svc.connector.operation': 'delete-item',
        'svc.approval.decision': 'deny',
      },
      '-\tacme/items delete-item\tdeny',
    ],
    [
      'sandbox.proxy.disabled',
      { 'svc.proxy.reason': 'preflight_failed', 'svc.sandbox.mode': 'docker', 'svc.sandbox.image': 'img:1' },
      '-\timg:1\tpreflight_failed',
    ],
    [
      'sandbox.proxy.disabled',
      { 'svc.proxy.reason': 'user_opt_out', 'svc.sandbox.mode': 'none' },
      '-\tnone\tuser_opt_out',
    ],
    [
      'sandbox.proxy.credential_unsealed',
      {
        'svc.proxy.credential_ref': 'vault://a',
        'svc.proxy.upstream.host': 'db.test',
        'svc.proxy.reason': 'two\u001b[31m words',
      },
      '-\tdb.test\tvault://a: two\\x1b[31m words',
    ],
    [
      'flightplan.launch.reach',
      {
        'svc.step.id': 'fetch',
        'svc.reach.effect': 'read',
        'svc.reach.hosts': ['a.test', 'b.test'],
        'svc.reach.enforced': true,
      },
      '-\ta.test,b.test\tstep fetch (read, enforced)',
    ],
    [
      'flightplan.launch.reach',
      { 'svc.step.id': 'think', 'svc.reach.hosts': [], 'svc.reach.enforced': false },
      '-\tno host\tstep think (not enforced)',
    ],
    [
      'sandbox.proxy.trust_denied',
      {
        'svc.proxy.method': 'CONNECT',
        'svc.proxy.upstream.host': 'x.test',
        'svc.proxy.reason': 'step_scope_host_denied',
        'svc.step.id': 'fetch',
      },
      'CONNECT\tx.test\tstep fetch: step_scope_host_denied',
    ],
    [
      'control.credential.released',
      {
        'svc.control.resource': 'sec_1',
        'svc.control.credential_ref': 'vault://a',
        'svc.control.owner': 'personal',
        'svc.proxy.upstream.host': 'db.test',
        'svc.proxy.reason': 'not HTTP',
      },
      '-\tdb.test\tvault://a: not HTTP',
    ],
    [
      'control.secret.stored',
      { 'svc.control.resource': 'sec_1', 'svc.control.credential_ref': 'vault://a', 'svc.control.owner': 'personal' },
      '-\tvault://a\t-',
    ],
  ])('shows the subject of %s: %j', async (type, data, cells) => {
    const answer: Answer = () => ({ status: 200, body: { items: [{ ...event, type, data }], next_cursor: null } });
    const run = await runCli(home, ['audit', 'list'], { answer });
    expect(run.stdout).toBe(`${event.time}\t${type}\t${cells}\tses_1\n`);
  });

  test('passes the filters on', async () => {
    const flags = [
      '--type',
      'sandbox.',
      '--host',
      'api.example.com',
      '--session',
      'ses_1',
      '--connector',
      'acme.items',
      '--since',
      '2h',
      '--limit',
      '7',
    ];
    const { calls } = await runCli(home, ['audit', 'list', ...flags], { answer: list });
    expect(Object.fromEntries(calls[0]?.url.searchParams ?? [])).toEqual({
      type: 'sandbox.',
      host: 'api.example.com',
      session: 'ses_1',
      connector: 'acme.items',
      since: '2026-01-01T10:00:00.000Z',
      limit: '7',
    });
  });

  test('stops at the limit, and reads to the end with --all', async () => {
    expect(await count('--limit', '2')).toBe(2);
    expect(await count('--all')).toBe(3);
  });

  test.each([
    ['--since', 'yesterday'],
    ['--limit', '0'],
    ['--limit', 'many'],
  ])('refuses %s %s', async (flag, value) => {
    const run = await runCli(home, ['audit', 'list', flag, value], { answer: list });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain(`${flag} is "${value}"`);
  });
});

describe('svc audit tail', () => {
  test('prints events of a newer control plane, which this svc does not know', async () => {
    let calls = 0;
    const answer: Answer = () => {
      calls += 1;
      if (calls > 1)
        return { status: 401, body: { error: { code: 'unauthenticated', message: 'no', request_id: 'r' } } };
      return { status: 200, body: `event: audit\nid: 41\ndata: ${JSON.stringify(UNKNOWN)}\n\n` };
    };
    const run = await runCli(home, ['audit', 'tail', '--json'], { answer });
    expect(JSON.parse(run.stdout)).toMatchObject(UNKNOWN);
  });

  test('prints the events of the stream, and an error of a later connection ends it', async () => {
    let calls = 0;
    const answer: Answer = () => {
      calls += 1;
      const error = { code: 'unauthenticated', message: 'no', request_id: 'r' };
      if (calls > 1) return { status: 401, body: { error } };
      return { status: 200, body: `event: audit\nid: 41\ndata: ${JSON.stringify(event)}\n\n` };
    };
    const run = await runCli(home, ['audit', 'tail', '--json', '--backlog', '3'], { answer });
    expect(JSON.parse(run.stdout)).toMatchObject({ id: event.id });
    expect(run.calls.map((call) => call.url.searchParams.get('backlog'))).toEqual(['3', null]);
    expect(run.code).toBe(1);
  });
});

describe('svc audit verify', () => {
  const chain = { writer: 'ent_1', events: 2, removed: 0, beginning_hash: '0'.repeat(64), head_hash: 'f'.repeat(64) };
  const chains = [{ ...chain, begins_at: '2026-01-01T11:00:01.000Z' }];

  test('exits with 0 if every chain is intact', async () => {
    const body = { ok: true, events: 2, removed: 0, chains, first_break: null };
    const run = await runCli(home, ['audit', 'verify'], { answer: () => ({ status: 200, body }) });
    expect(run).toMatchObject({ code: 0, stdout: `ent_1\t2\t${'f'.repeat(64)}\t0\t2026-01-01T11:00:01.000Z\n` });
  });

  test('exits with 1 and names the event where a chain is broken', async () => {
    const first_break = { writer: 'ent_1', sequence: 2, event_id: 'evt_2', reason: 'wrong_hash' };
    const body = { ok: false, events: 2, removed: 0, chains, first_break };
    const run = await runCli(home, ['audit', 'verify'], { answer: () => ({ status: 200, body }) });
    expect(run).toMatchObject({ code: 1, stdout: 'broken\twrong_hash at event 2 of ent_1 (evt_2)\n' });
  });
});

const before = '2025-10-03T12:00:00.000Z';
const reply = { before, dry_run: false, removed: 5_000, finished: true, broken: [] };
const answerPrune: Answer = ({ body }) => ({ status: 200, body: { ...reply, ...z.looseObject({}).parse(body) } });

describe('svc audit prune', () => {
  test('repeats until nothing is left, and prints how many events were removed', async () => {
    let left = 3;
    const answer: Answer = () => ({ status: 200, body: { ...reply, finished: (left -= 1) === 0 } });
    const run = await runCli(home, ['audit', 'prune', '--older-than', '90d'], { answer });
    expect(run).toMatchObject({ code: 0, stdout: `removed 15000 events received before ${before}\n` });
    expect(run.stderr).toContain('removed 5000 events so far');
    expect(run.calls).toHaveLength(3);
    const body = z.object({ before: z.string(), dry_run: z.boolean() }).parse(run.calls[0]?.body);
    expect([Date.parse(body.before) < Date.now() - 89 * 86_400_000, body.dry_run]).toEqual([true, false]);
  });

  test('only counts with --dry-run', async () => {
    const run = await runCli(home, ['audit', 'prune', '--before', before, '--dry-run', '--json'], {
      answer: answerPrune,
    });
    expect(JSON.parse(run.stdout)).toMatchObject({ before, dry_run: true, removed: 5_000 });
  });

  test('exits with 1 and names the broken chain', async () => {
    const broken = [{ writer: 'sdc_1', sequence: 7, event_id: null, reason: 'wrong_hash' }];
    const answer: Answer = () => ({ status: 200, body: { ...reply, broken } });
    const run = await runCli(home, ['audit', 'prune', '--before', before], { answer });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('sdc_1 is broken at event 7 (wrong_hash)');
  });

  test.each([[[]], [['--before', before, '--older-than', '9d']], [['--before', 'soon']], [['--older-than', '9']]])(
    'is a usage error with %j',
    async (flags) => {
      const run = await runCli(home, ['audit', 'prune', ...flags], { answer: list });
      expect([run.code, run.calls.length]).toEqual([2, 0]);
    },
  );
});

test('svc explain prints the decision, the binding and the reasons', async () => {
  const body = {
    decision: 'refused',
    reasons: ['the method is not safe'],
    method: 'POST',
    host: 'api.example.com',
    path: '/x',
    bindings: [
      {
        id: 'bnd_01m7yjc1391a5krmyacsgq908t',
        host: 'api.example.com',
        owner: 'personal',
        scheme: 'bearer',
        emit_mechanism: 'inject',
        credential_ref: 'vault://a',
        credential_stored: false,
        refusal: { code: 'effect_not_allowed', message: 'only reading' },
      },
    ],
    operation: null,
    code: 'effect_not_allowed',
  };
  const run = await runCli(home, ['explain', 'post', 'https://api.example.com/x'], {
    answer: () => ({ status: 200, body }),
  });
  expect(run.calls[0]?.body).toEqual({ method: 'POST', url: 'https://api.example.com/x' });
  expect(run.stdout).toContain('refused  POST api.example.com/x\n');
  expect(run.stdout).toContain('vault://a, not stored yet; refused: only reading\n');
  expect(run.stdout).toContain('  - the method is not safe (effect_not_allowed)\n');
});
