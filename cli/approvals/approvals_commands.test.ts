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

const RULE = {
  id: 'apu_01m7yjbz4dz98vffmftfxp52e5',
  subject: 'connector',
  name: 'acme/*',
  action: 'delete-item',
  effects: ['delete'],
  role: null,
  group_id: 'grp_01m7yjbz4dz98vffmftfxp52e5',
  group_name: 'Payments',
  persons: 2,
  excludes_requester: true,
  approvers: 1,
  created_at: '2026-01-01T11:59:00.000Z',
};
const NEED = {
  rule_id: RULE.id,
  role: null,
  group_id: RULE.group_id,
  group_name: 'Payments',
  persons: 2,
  given: 1,
  missing: 1,
  excludes_requester: true,
};
const NEEDS_ONE = '1 of 2 approved, needs 1 more person of the group Payments, not the one who asks';

const voted = {
  ...record,
  needs: [NEED],
  votes: [{ user_id: record.user_id, voted_at: RULE.created_at, grant: null }],
};
const answerVoted: Answer = () => ({ status: 200, body: voted });
const answerToolRule: Answer = () => ({ status: 201, body: { ...RULE, subject: 'mcp_server', effects: null } });

describe('what rules are about', () => {
  test('is shown with what it needs', async () => {
    const run = await runCli(home, ['approvals', 'show', ID], { answer: () => ({ status: 200, body: voted }) });
    expect(run.stdout).toContain(
      `approved by:     ${record.user_id}, ${RULE.created_at}\nneeds:           ${NEEDS_ONE}\n`,
    );
  });

  test('waits on after one person has approved it, and says for whom', async () => {
    const run = await runCli(home, ['approvals', 'approve', ID], { answer: answerVoted, terminal: true });
    expect(run.stdout).toBe(`recorded your approval of ${ID}: ${record.summary}\n`);
    expect(run.stderr).toContain(`It waits on: ${NEEDS_ONE}.`);
    expect(run.stderr).not.toContain('covers this one request');
  });
});

describe('svc approvals approve --for', () => {
  const approved = { ...record, state: 'approved' };
  test.each([
    ['says that there is a grant', 'apg_01m7yjbz4dz98vffmftfxp52e5', 'Further requests like it are allowed.'],
    ['says that others allowed no more', null, 'No further requests are allowed'],
  ])('%s', async (_, granted, words) => {
    const answer: Answer = () => ({ status: 200, body: { ...approved, grant_id: granted } });
    const run = await runCli(home, ['approvals', 'approve', ID, '--for', '1h'], { answer, terminal: true });
    expect(run.stdout).toBe(`approved ${ID}: ${record.summary}\n`);
    expect(run.stderr).toContain(words);
  });
});

describe('svc approvals rules', () => {
  test('lists who approves what', async () => {
    const run = await runCli(home, ['approvals', 'rules'], { answer: page([RULE]) });
    expect(run.calls.map(({ url }) => url.pathname)).toEqual(['/v1/approval-rules']);
    expect(run.stdout).toBe(
      `${RULE.id}\tconnector acme/* delete-item (delete)\t2 different persons of the group Payments, not the one who asks\t1\n`,
    );
  });

  test('adds one for a group by its name, and says when too few people are in it', async () => {
    const group = { id: RULE.group_id, name: 'Payments', members: 1, created_at: RULE.created_at };
    const answer: Answer = ({ method }) =>
      method === 'GET' ? { status: 200, body: { items: [group], next_cursor: null } } : { status: 201, body: RULE };
    const flags = ['--connector', 'acme/*', '--operation', 'delete-item', '--effect', 'delete', '--persons', '2'];
    const run = await runCli(home, ['approvals', 'rules', 'add', ...flags, '--group', 'payments'], {
      answer,
      terminal: true,
    });
    expect(run.calls.at(-1)).toMatchObject({
      method: 'POST',
      body: {
        subject: 'connector',
        name: 'acme/*',
        action: 'delete-item',
        effects: ['delete'],
        role: null,
        group_id: RULE.group_id,
        persons: 2,
        excludes_requester: true,
      },
    });
    expect(run.stderr).toContain('Too few people fit it: 1 could approve a request of one of them, which needs 2.');
  });

  test('adds one for the tools of a server', async () => {
    const flags = ['--server', 'files', '--tool', 'delete_*', '--role', 'admin', '--count-requester'];
    const run = await runCli(home, ['approvals', 'rules', 'add', ...flags], { answer: answerToolRule });
    expect(run.calls).toMatchObject([
      { body: { subject: 'mcp_server', name: 'files', action: 'delete_*', role: 'admin', excludes_requester: false } },
    ]);
  });

  test.each([
    [['--connector', 'acme/items'], '--role or a group has to be given, and not both'],
    [['--role', 'admin', '--persons', '3'], '--persons'],
    [['--role', 'admin', '--persons', '2', '--count-requester'], '--count-requester does not go with two persons'],
    [['--role', 'admin', '--tool', 'x', '--effect', 'read'], '--server and --tool do not go with'],
    [['--role', 'boss'], 'Allowed choices are owner, admin, member'],
  ])('add %j is refused before anything is sent', async (flags, why) => {
    const run = await runCli(home, ['approvals', 'rules', 'add', ...flags], { answer: page([]) });
    expect([run.code, run.calls]).toEqual([2, []]);
    expect(run.stderr).toContain(why);
  });

  test('removes one', async () => {
    const run = await runCli(home, ['approvals', 'rules', 'rm', RULE.id], {
      answer: () => ({ status: 204, body: null }),
    });
    expect(run.calls).toMatchObject([{ method: 'DELETE' }]);
    expect(run.stdout).toBe(`removed ${RULE.id}: what was allowed under it is over\n`);
  });

  test.each([[['add', '--role', 'member']], [['rm', RULE.id]]])(
    '%j is nothing for an agent in a session',
    async (args) => {
      const env = { SVC_SESSION_ID: 'ses_1' };
      const run = await runCli(home, ['approvals', 'rules', ...args], { answer: page([]), env });
      expect([run.code, run.calls]).toEqual([1, []]);
      expect(run.stderr).toContain('which may not change who approves what it asks for');
    },
  );
});
