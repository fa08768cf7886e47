import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOCAL_KEY, runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = 'apr_01m7yjbz4dz98vffmftfxp52e5';
const record = {
  id: ID,
  state: 'pending',
  connector_id: 'con_01m7yjbz4dz98vffmftfxp52e5',
  connector_fqn: 'catalog/github',
  connector_version: '1.0.0',
  owner: 'personal',
  operation: 'merge-pull',
  summary: 'GitHub REST API: Merge a pull request (PUT api.github.com: repo "x")',
  fingerprint: 'a'.repeat(64),
  user_id: 'usr_01m7yjbz4dz98vffmftfxp52e5',
  sidecar_id: null,
  session_id: 'ses_1',
  requested_at: '2026-01-01T11:59:00.000Z',
  expires_at: '2026-01-01T12:59:00.000Z',
  decided_by: null,
  decided_at: null,
  valid_until: null,
  used_at: null,
};
const page =
  (items: readonly unknown[]): Answer =>
  () => ({ status: 200, body: { items, next_cursor: null } });

describe('svc approvals list', () => {
  test('shows pending approvals, tab-separated for a program', async () => {
    const run = await runCli(home, ['approvals', 'list'], { answer: page([record]) });
    expect(run.calls.map(({ url }) => `${url.pathname} ${url.searchParams.get('state')}`)).toEqual([
      '/v1/approvals pending',
    ]);
    expect(run.calls[0]?.authorization).toBe(`Bearer ${LOCAL_KEY}`);
    expect(run.stdout).toBe(`${ID}\tpending\t1m ago\tcatalog/github merge-pull\tses_1\t${record.summary}\n`);
  });

  test.each([
    [['--all'], null],
    [['--state', 'denied'], 'denied'],
  ])('%j asks for state %s', async (flags, state) => {
    const run = await runCli(home, ['approvals', 'list', ...flags], { answer: page([]) });
    expect(run.calls[0]?.url.searchParams.get('state')).toBe(state);
  });

  test.each([[['--all', '--state', 'denied']], [['--state', 'gone']]])('refuses %j', async (flags) => {
    const run = await runCli(home, ['approvals', 'list', ...flags], { answer: page([]) });
    expect(run).toMatchObject({ code: 2, calls: [] });
  });

  test('escapes control characters in a summary', async () => {
    const evil = { ...record, summary: 'delete\u001b[2J\u202e' };
    const run = await runCli(home, ['approvals', 'list'], { answer: page([evil]), terminal: true });
    expect(run.stdout).toContain('delete\\x1b[2J\\u202e');
  });

  test('says so when nothing is pending', async () => {
    const run = await runCli(home, ['approvals', 'list'], { answer: page([]), terminal: true });
    expect(run.stdout).toBe('No requests are waiting for an approval.\n');
  });
});

test('svc approvals show prints the fields that are set', async () => {
  const run = await runCli(home, ['approvals', 'show', ID], { answer: () => ({ status: 200, body: record }) });
  expect(run.calls[0]?.url.pathname).toBe(`/v1/approvals/${ID}`);
  expect(run.stdout).toContain('connector:       catalog/github 1.0.0 (personal)\n');
  expect(run.stdout).not.toContain('decided');
});

const toolCall = {
  ...record,
  connector_id: null,
  connector_fqn: null,
  connector_version: null,
  operation: null,
  mcp_server_id: 'mcp_01m7yjbz4dz98vffmftfxp52e5',
  mcp_server: 'files',
  mcp_server_version: '1.2.3',
  tool: 'delete_file',
  summary: 'files: delete_file (path)',
};

test('shows the server and the tool of a tool call', async () => {
  const list = await runCli(home, ['approvals', 'list'], { answer: page([toolCall]) });
  expect(list.stdout).toContain('\tfiles delete_file\t');
  const show = await runCli(home, ['approvals', 'show', ID], { answer: () => ({ status: 200, body: toolCall }) });
  expect(show.stdout).toContain('MCP server:      files 1.2.3 (personal)\ntool:            delete_file\n');
  expect(show.stdout).not.toContain('connector:');
});

const answerApproved: Answer = () => ({ status: 200, body: { ...record, state: 'approved' } });

describe('svc approvals', () => {
  test.each([
    ['approve', 'approved'],
    ['deny', 'denied'],
  ])('%s sends the decision and prints the request', async (decision, word) => {
    const answerDecision: Answer = () => ({ status: 200, body: { ...record, state: word } });
    const run = await runCli(home, ['approvals', decision, ID], { answer: answerDecision });
    expect(run.calls).toMatchObject([{ method: 'POST', body: { decision } }]);
    expect(run.calls[0]?.url.pathname).toBe(`/v1/approvals/${ID}/decide`);
    expect(run).toMatchObject({ code: 0, stdout: `${word} ${ID}: ${record.summary}\n`, stderr: '' });
  });

  test.each([
    [['--for', 'session'], { seconds: 28_800, times: null }],
    [['--for', '30m'], { seconds: 1_800, times: null }],
    [['--for', '1h', '--times', '5'], { seconds: 3_600, times: 5 }],
    [['--times', '5'], { seconds: 28_800, times: 5 }],
  ])('approve %s also gives a grant', async (flags, grant) => {
    const run = await runCli(home, ['approvals', 'approve', ID, ...flags], { answer: answerApproved });
    expect(run.calls).toMatchObject([{ body: { decision: 'approve', grant } }]);
    expect(run.code).toBe(0);
  });

  test.each([
    [['--for', '9h'], '--for takes "session" or a time from 1m to 8h'],
    [['--for', 'ever'], 'use a length such as'],
    [['--times', 'many'], '--times takes a whole number from 2 to 100'],
    [['--times', '1'], '--times takes a whole number from 2 to 100'],
  ])('approve %s is refused before anything is sent', async (flags, why) => {
    const run = await runCli(home, ['approvals', 'approve', ID, ...flags], { answer: page([]) });
    expect([run.code, run.calls]).toEqual([2, []]);
    expect(run.stderr).toContain(why);
  });

  test('an agent in a session cannot approve what it asks for', async () => {
    const env = { SVC_SESSION_ID: 'ses_1' };
    const run = await runCli(home, ['approvals', 'approve', ID], { answer: page([]), env });
    expect([run.code, run.calls]).toEqual([1, []]);
    expect(run.stderr).toContain('this runs inside a session, which may not approve what it asks for');
  });

  test('grants lists what is open, and revokes one', async () => {
    const grant = {
      ...record,
      id: 'apg_01m7yjbz4dz98vffmftfxp52e5',
      state: 'open',
      identical_only: false,
      session_name: 'claude',
      mcp_server_id: null,
      mcp_server: null,
      mcp_server_version: null,
      tool: null,
      times: 5,
      used: 2,
      last_used_at: record.requested_at,
      given_at: record.requested_at,
      ends_at: record.expires_at,
      revoked_at: null,
    };
    const listed = await runCli(home, ['approvals', 'grants'], { answer: page([grant, { ...grant, state: 'over' }]) });
    expect(listed.calls[0]?.url.pathname).toBe('/v1/approval-grants');
    expect(listed.stdout.trim().split('\n')).toHaveLength(1);
    expect(listed.stdout).toContain('2 of 5');
    const revoked = await runCli(home, ['approvals', 'grants', 'revoke', grant.id], {
      answer: () => ({ status: 204 }),
    });
    expect(revoked.calls).toMatchObject([{ method: 'DELETE' }]);
    expect(revoked.stdout).toContain('the next request asks again');
  });

  test('approve fails if a decision was already made', async () => {
    const error = { code: 'approval_not_pending', message: 'it was denied', request_id: 'req_1' };
    const run = await runCli(home, ['approvals', 'approve', ID], { answer: () => ({ status: 409, body: { error } }) });
    expect(run).toMatchObject({ code: 1, stdout: '', stderr: 'svc: it was denied (409 approval_not_pending)\n' });
  });

  test('an id is escaped in the path', async () => {
    const run = await runCli(home, ['approvals', 'show', '../secrets'], { answer: () => ({ status: 404 }) });
    expect(run.calls[0]?.url.pathname).toBe('/v1/approvals/..%2Fsecrets');
  });
});

/** The stream ends after two events; on the second read the approval is decided. */
function answerWatch(): Answer {
  let looks = 0;
  return ({ url }) => {
    if (url.pathname === '/v1/audit-events/stream') {
      return { status: 200, body: 'event: audit\ndata: {}\n\nevent: audit\ndata: {}\n\n' };
    }
    if (url.pathname === '/v1/approvals') {
      looks += 1;
      if (looks > 2) return { status: 403, body: { error: { code: 'x', message: 'enough', request_id: 'r' } } };
      return { status: 200, body: { items: looks === 1 ? [record] : [], next_cursor: null } };
    }
    return {
      status: 200,
      body: { ...record, state: 'approved', decided_by: 'usr_2', decided_at: '2026-01-01T12:00:00.000Z' },
    };
  };
}

describe('svc approvals watch', () => {
  test('shows pending requests, then their decisions', async () => {
    const run = await runCli(home, ['approvals', 'watch'], { answer: answerWatch() });
    expect(run.stdout.split('\n').slice(0, 2)).toEqual([
      `${record.requested_at}  ${ID}  waits  ${record.summary}`,
      `2026-01-01T12:00:00.000Z  ${ID}  approved by usr_2  ${record.summary}`,
    ]);
    expect(run.calls[0]?.url.search).toBe('?type=connector.approval.&backlog=0');
  });

  test('prints one JSON document per line with --json', async () => {
    const run = await runCli(home, ['approvals', 'watch', '--json'], { answer: answerWatch() });
    const states = run.stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => Reflect.get(Object(JSON.parse(line)), 'state'));
    expect(states).toEqual(['pending', 'approved']);
  });
});
