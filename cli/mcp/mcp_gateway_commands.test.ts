import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { localServer, remoteServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { snapshotRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { consentOf } from '../../sidecar/mcp/server_directory.ts';
import { PROXY_URL, runCli, TestHome, type Answer, type RunOptions, type RunResult } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const server = localServer({
  registryId: 'io.example/demo',
  env: { TOKEN: `vault://mcp-servers/${SERVER_ID}/TOKEN`, MODE: 'quiet' },
});
const HEALTH = {
  state: 'needs_consent',
  last_error: null,
  checked_at: '2026-01-01T12:00:00.000Z',
  restarts: null,
  tools: null,
  gateways: 0,
};

/** A server in the sidecar's list. */
function listedServer(of: McpServer, more: object = {}): object {
  const hash = consentOf(of)?.hash ?? null;
  const facts = { missing: [], credentials: '', last_consent: null, health: HEALTH };
  const need = hash === null ? 'not_needed' : 'needed';
  return {
    server: snapshotRecord({ server: of, authorization: null }),
    consent: need,
    consent_hash: hash,
    ...facts,
    ...more,
  };
}

function answering(items: readonly object[], problems: readonly object[] = []): Answer {
  return ({ url, method }) => {
    if (url.pathname === '/v1/me') return { status: 200, body: ME };
    if (url.pathname.startsWith('/v1/mcp/logs/')) return { status: 200, body: LOGS };
    return method === 'GET' ? { status: 200, body: { version: 'v', items, problems } } : { status: 204 };
  };
}

const LOGS = {
  items: [
    { gateway: { id: 'g'.repeat(16), kind: 'socket', pid: 7 }, lines: ['up', 'a\u001b[2Jb'] },
    { gateway: { id: 'h'.repeat(16), kind: 'stdio', pid: 8 }, lines: ['down'] },
  ],
};

function consent(items: readonly object[], args: readonly string[] = [], options: RunOptions = {}): Promise<RunResult> {
  return runCli(home, ['mcp', 'consent', ...args], { answer: answering(items), ...options });
}

const listWrites = ({ calls }: RunResult) =>
  calls.filter(({ method }) => method !== 'GET').map(({ method, url, body }) => ({ method, path: url.pathname, body }));
const CONSENT = {
  method: 'POST',
  path: `/v1/mcp/servers/${SERVER_ID}/consent`,
  body: { consent_hash: consentOf(server)?.hash },
};

describe('svc mcp consent', () => {
  test('shows the full configuration and gives consent on yes', async () => {
    const run = await consent([listedServer(server, { missing: [`mcp-servers/${SERVER_ID}/TOKEN`] })], [], {
      terminal: true,
      stdin: 'y\n',
    });
    expect(run.calls.find(({ url }) => url.pathname === '/v1/mcp/servers')?.url.search).toBe('?min_policy_version=42');
    for (const part of [
      'npx -y demo-mcp@1.0.0',
      `TOKEN="vault://mcp-servers/${SERVER_ID}/TOKEN" (a credential`,
      'MODE="quiet"',
      '1.0.0',
      'the registry: io.example/demo',
      'never',
    ]) {
      expect(run.stdout).toContain(part);
    }
    expect(run.stdout).toMatch(/not stored +TOKEN/);
    expect(listWrites(run)).toEqual([CONSENT]);
    expect(run.code).toBe(0);
  });

  test.each(['n\n', '\n', 'yeah\n', ''])('gives no consent on %j', async (stdin) => {
    const run = await consent([listedServer(server)], [], { terminal: true, stdin });
    expect(listWrites(run)).toEqual([]);
    expect(run.code).toBe(1);
  });

  test('gives no consent without a terminal', async () => {
    const run = await consent([listedServer(server)], [], { stdin: 'y\n' });
    expect(listWrites(run)).toEqual([]);
    expect(run).toMatchObject({ code: 1 });
    expect(run.stdout).toContain('npx -y demo-mcp@1.0.0');
    expect(run.stderr).toContain('--yes');
  });

  test('--json prints the configuration and gives no consent', async () => {
    const run = await consent([listedServer(server)], ['--json'], { terminal: true, stdin: 'y\n' });
    expect(JSON.parse(run.stdout)).toMatchObject({
      items: [{ name: 'demo', consent_hash: CONSENT.body.consent_hash }],
    });
    expect(listWrites(run)).toEqual([]);
  });

  test('--yes gives consent without a prompt, to what it shows', async () => {
    const run = await consent([listedServer(server)], ['demo', '--yes']);
    expect(run.stdout).toContain('npx -y demo-mcp@1.0.0');
    expect(listWrites(run)).toEqual([CONSENT]);
  });

  test("computes the hash from what it has shown and ignores the sidecar's", async () => {
    const run = await consent([listedServer(server, { consent_hash: '0'.repeat(64) })], ['--yes']);
    expect(listWrites(run)).toEqual([CONSENT]);
  });

  test('shows the changes since the last consent', async () => {
    const before = consentOf({ ...server, command: ['npx', '-y', 'demo-mcp@0.9.0'], env: { MODE: 'loud', OLD: '1' } });
    const last = { hash: before?.hash, text: before?.text, consented_at: '2026-01-01T11:00:00.000Z' };
    const run = await consent([listedServer(server, { last_consent: last })]);
    const changed = run.stdout.slice(run.stdout.indexOf('changed')).split('\n');
    expect(changed.map((line) => line.replace(/^(changed)? +/, '')).filter((line) => /^[+-]/.test(line))).toEqual([
      '- npx -y demo-mcp@0.9.0',
      '+ npx -y demo-mcp@1.0.0',
      '- MODE="loud"',
      '+ MODE="quiet"',
      '- OLD="1"',
      `+ TOKEN="vault://mcp-servers/${SERVER_ID}/TOKEN"`,
    ]);
  });

  test('never gives consent to a dangerous configuration', async () => {
    const run = await consent([listedServer(localServer({ command: ['bash', '-c', 'true'] }))], ['--yes']);
    expect(listWrites(run)).toEqual([]);
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('REFUSED');
  });

  describe('of unchecked code', () => {
    const unknown = localServer({ command: ['erl', '-eval', 'x'] });
    const both = { ...CONSENT, body: { consent_hash: consentOf(unknown)?.hash, unchecked: true } };

    test.each([
      ['y\n', [], []],
      ['yes\n', [], []],
      ['dem\n', [], []],
      ['\n', [], []],
      ['demo\n', [], [both]],
    ])('%j typed at a terminal gives consent: %#', async (stdin, flags, sent) => {
      const run = await consent([listedServer(unknown)], flags, { terminal: true, stdin });
      expect(listWrites(run)).toEqual(sent);
      expect(run.stdout).toContain('UNCHECKED');
      expect(run.stdout).toContain('runs code that nobody checked: it starts "erl"');
    });

    test.each([
      [['--yes'], []],
      [['--unchecked'], []],
      [['--yes', '--unchecked'], [both]],
    ])('%j without a terminal gives consent: %#', async (flags, sent) => {
      const run = await consent([listedServer(unknown)], flags);
      expect(listWrites(run)).toEqual(sent);
      expect(run.code === 0).toBe(sent.length > 0);
    });

    test('says why it asks again after an earlier consent', async () => {
      const text = JSON.stringify({ command: unknown.command, env: {}, version: '1.0.0', isolation: 'process' });
      const last = { hash: 'a'.repeat(64), text, consented_at: '2026-01-01T11:00:00.000Z' };
      const run = await consent([listedServer(unknown, { last_consent: last })]);
      expect(run.stdout).toContain('now counts as unchecked');
    });

    test('does not mention an earlier consent to another configuration', async () => {
      const run = await consent([listedServer(server)], ['--yes', '--unchecked']);
      expect(listWrites(run)).toEqual([CONSENT]);
    });
  });

  test('escapes hidden characters', async () => {
    const hidden = localServer({ command: ['/usr/bin/demo', 'a\u200bb', 'c\u202ed', '\u001b[2J'] });
    const run = await consent([listedServer(hidden)]);
    expect(run.stdout).toContain('\\u200b');
    expect(run.stdout).toContain('\\u202e');
    expect(['\u200b', '\u202e', '\u001b'].filter((character) => run.stdout.includes(character))).toEqual([]);
  });

  test.each([
    ['has the consent already', listedServer(server, { consent: 'given' }), 'already'],
    ['needs none', listedServer(remoteServer()), 'no program'],
  ])('says so if the server %s', async (_, item, said) => {
    const run = await consent([item], ['demo', '--yes']);
    expect(listWrites(run)).toEqual([]);
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining(said) });
  });

  test('fails for an unknown or ambiguous name and lists candidates', async () => {
    expect(await consent([listedServer(server)], ['dmo', '--yes'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('demo'),
    });
    const other = localServer({ id: `mcp_${'0'.repeat(25)}2`, owner: 'enterprise' });
    const both = await consent([listedServer(server), listedServer(other)], ['demo', '--yes']);
    expect(listWrites(both)).toEqual([]);
    expect(both.stderr).toContain(other.id);
  });

  test('--withdraw withdraws it', async () => {
    const run = await consent([listedServer(server, { consent: 'given' })], ['demo', '--withdraw']);
    expect(listWrites(run)).toMatchObject([{ method: 'DELETE', path: CONSENT.path }]);
    expect(await consent([], ['--withdraw'])).toMatchObject({ code: 2 });
  });
});

describe('svc mcp status', () => {
  test('prints each server with its state, tab-separated for a program', async () => {
    const health = { ...HEALTH, state: 'running', restarts: 2, tools: 17, gateways: 1 };
    const run = await runCli(home, ['mcp', 'status'], { answer: answering([listedServer(server, { health })]) });
    expect(run.stdout).toBe('demo\tlocal\trunning\t1\t2\t17\t\n');
  });

  test('reports servers that this version cannot use', async () => {
    const problems = [{ id: SERVER_ID, message: 'isolation: is not known' }];
    const run = await runCli(home, ['mcp', 'status'], { answer: answering([], problems) });
    expect(run.stderr).toContain('isolation: is not known');
  });
});

test('svc mcp logs prints the output from each gateway, with control characters escaped', async () => {
  const run = await runCli(home, ['mcp', 'logs', 'demo'], { answer: answering([listedServer(server)]) });
  expect(run.stdout.split('\n')).toEqual([
    expect.stringContaining('process 7'),
    'up',
    'a\\x1b[2Jb',
    expect.stringContaining('process 8'),
    'down',
    '',
  ]);
});

describe('svc mcp gateway', () => {
  test('--http prints the URL and the token file', async () => {
    const run = await runCli(home, ['mcp', 'gateway', '--http'], { answer: answering([]) });
    expect(run.stdout).toContain(`${PROXY_URL}/v1/mcp\n`);
    expect(run.stdout).toContain('host.token');
    expect(run.calls).toEqual([]);
  });

  test('says on stderr if svc is not running', async () => {
    const run = await runCli(home, ['--home', `${home.path}/nothing`, 'mcp', 'gateway']);
    expect(run).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('is not running') });
  });
});
