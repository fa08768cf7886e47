import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CLIENTS, outcomeOf } from '../launch/client_trust.ts';
import {
  anchorFinding,
  connectorFindings,
  controlFindings,
  credentialFindings,
  homeFindings,
  portFindings,
  settingFindings,
  sidecarFindings,
  trustFindings,
} from './doctor_checks.ts';
import { runCli, TestHome } from '../testing/run_cli.ts';
import type { ControlHealth, SidecarHealth } from './status_command.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const AT = '2026-01-01T11:00:00.000Z';
const context = { version: '4.0.0', now: () => NOW };
const control: ControlHealth = { status: 'ok', version: '4.0.0', time: '2026-01-01T12:00:00.000Z', mode: 'local' };
const sidecar: SidecarHealth = {
  status: 'ok',
  version: '4.0.0',
  snapshot: { version: 3, age_seconds: 1, usable: true },
  spool: { bytes: 0, events: 0, accepting: true },
  channel: { state: 'up', last_error: null },
  sessions: 0,
};
const findingsOf = (log: SidecarHealth['audit_log']) =>
  sidecarFindings({ ok: true, value: { ...sidecar, audit_log: log } }, context);

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

describe('svc doctor', () => {
  test('every failed finding has a fix', () => {
    chmodSync(join(home.path, 'local.key'), 0o644);
    const findings = [
      ...settingFindings({ SVC_MAX_HEADER: '5' }),
      ...homeFindings(home.path, process.getuid?.()),
      ...homeFindings('/nonexistent', 0),
      ...controlFindings({ ok: false, problem: 'gone' }, context),
      ...sidecarFindings({ ok: false, problem: 'gone' }, context),
      ...controlFindings({ ok: true, value: { ...control, status: 'unavailable', version: '3.0.0' } }, context),
      ...sidecarFindings({ ok: true, value: { ...sidecar, snapshot: null } }, context),
    ].filter((finding) => finding.level !== 'ok');
    expect(findings.length).toBeGreaterThanOrEqual(7);
    expect(findings.filter((finding) => finding.fix === undefined)).toEqual([]);
  });

  test.runIf(process.platform === 'linux')('reports a full disk', () => {
    // A file system of the kernel has no free space.
    const text = 'the disk of /proc is full: 0 KiB are free';
    expect(homeFindings('/proc', undefined)).toContainEqual(expect.objectContaining({ level: 'problem', text }));
    expect(homeFindings(home.path, undefined)).toMatchObject([{ level: 'ok' }]);
  });

  test('names the files that hold a credential, without its value', async () => {
    const value = ['ghp', 'a1B2'.repeat(9)].join('_');
    home.write('.git-credentials', `https://octo:${value}@github.com\n`);
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const searched = { env: { GH_TOKEN: value }, userHome: home.path, workingDirectory: home.path, root };
    const findings = await credentialFindings(searched);
    expect(findings).toMatchObject([
      { level: 'warning', text: 'the variable GH_TOKEN holds a credential of github in plaintext', fix: 'svc seal' },
      {
        level: 'warning',
        text: expect.stringContaining('.git-credentials:1 (github.com) holds a credential of github'),
      },
    ]);
    expect(JSON.stringify(findings)).not.toContain(value);
    expect(await credentialFindings(searched, [value])).toMatchObject([{ level: 'ok' }]);
    const nothing = { ...searched, env: {}, userHome: '/nonexistent', workingDirectory: '/nonexistent' };
    expect(await credentialFindings(nothing)).toMatchObject([{ level: 'ok' }]);
  });

  test('reports a port that another program uses', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(await portFindings([[port, '--proxy-port']])).toMatchObject([
      { level: 'problem', text: expect.stringContaining('is in use'), fix: expect.stringContaining('--proxy-port') },
    ]);
    server.close();
    await once(server, 'close');
    expect(await portFindings([[port, '--proxy-port']])).toMatchObject([{ level: 'ok' }]);
  });

  test('reports a key that others can read', () => {
    expect(homeFindings(home.path, process.getuid?.())).toMatchObject([{ level: 'ok' }]);
    chmodSync(join(home.path, 'sidecar', 'host.token'), 0o640);
    expect(homeFindings(home.path, process.getuid?.())).toMatchObject([
      { level: 'problem', fix: expect.stringContaining('chmod 600') },
    ]);
  });

  test('suggests the nearest setting for a mistyped one', () => {
    expect(settingFindings({ SVC_MAX_HEADER: '5' })).toMatchObject([
      { level: 'warning', fix: 'did you mean SVC_MAX_HEADERS?' },
    ]);
    expect(settingFindings({ SVC_MAX_HEADERS: 'x' })).toMatchObject([{ level: 'problem' }]);
    expect(settingFindings({ PATH: '/bin', SVC_HOME: '/x' })).toMatchObject([{ level: 'ok' }]);
  });

  test.each([
    [5, 'ok'],
    [-30, 'warning'],
    [61, 'problem'],
    [-3_600, 'problem'],
  ])('reports a clock that is off by %d s as %s', (seconds, level) => {
    const time = new Date(NOW + seconds * 1000).toISOString();
    expect(controlFindings({ ok: true, value: { ...control, time } }, context).at(-1)).toMatchObject({
      check: 'clock',
      level,
    });
  });

  test.each([
    ['no policy', { snapshot: null }],
    ['a policy that is too old', { snapshot: { version: 1, age_seconds: 90_000, usable: false } }],
    [
      'a broken channel',
      { channel: { state: 'down', last_error: { reason: 'clock_skew', message: 'clocks differ' } } },
    ],
    ['a full spool', { spool: { bytes: 9, events: 1, accepting: false } }],
  ])('reports %s as a problem', (_name, changed) => {
    expect(sidecarFindings({ ok: true, value: { ...sidecar, ...changed } }, context)).toMatchObject([
      { level: 'problem' },
    ]);
    expect(sidecarFindings({ ok: true, value: sidecar }, context)).toMatchObject([{ level: 'ok' }]);
  });

  test('reports an audit log that was rolled back or whose heads are lost', () => {
    const hash = 'f'.repeat(64);
    const went = {
      writer: 'sdc_1',
      standing: 'behind',
      remembered: { sequence: 9, hash },
      found: { sequence: 4, hash },
    };
    const mismatches = [{ ...went, noticed_at: '2026-01-01T11:00:00.000Z' }];
    expect(findingsOf({ remembers: true, mismatches: [] })).toMatchObject([{ level: 'ok' }]);
    expect(findingsOf({ remembers: false, mismatches: [] })).toMatchObject([{ level: 'problem' }]);
    expect(findingsOf({ remembers: true, mismatches })).toMatchObject([
      { check: 'audit log', level: 'problem', fix: expect.stringContaining('svc audit accept') },
    ]);
  });

  test('reports late audit heads as a problem and one failed attempt as a warning', () => {
    const anchor = {
      way: 'webhook',
      hours: 24,
      sent_at: AT,
      late: false,
      failures: 0,
      failed_at: null,
      problem: null,
    } as const;
    const failed = { ...anchor, failures: 3, failed_at: AT, problem: 'status_503' };
    expect(anchorFinding(anchor)).toMatchObject({ level: 'ok', text: expect.stringContaining(`last at ${AT}`) });
    expect(anchorFinding(failed)).toMatchObject({ level: 'warning', text: expect.stringContaining('status_503') });
    expect(anchorFinding({ ...failed, late: true })).toMatchObject({ level: 'problem' });
    expect(anchorFinding({ ...anchor, sent_at: null, late: true })).toMatchObject({
      level: 'problem',
      text: expect.stringContaining('never yet: not attempted'),
    });
  });

  test('exits with 1 on a problem, and prints JSON with --json', async () => {
    const run = await runCli(home, ['doctor', '--json']);
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout)).toMatchObject({ ok: false, findings: expect.any(Array) });
  });
});

describe("a client's probe", () => {
  test.each([
    ['403', 'trusted'],
    ["fatal: unable to access 'https://self-test.svc.invalid/': The requested URL returned error: 403", 'trusted'],
    ['curl: (60) SSL certificate problem: unable to get local issuer certificate', 'untrusted'],
    ['Error: UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'untrusted'],
    ['[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed', 'untrusted'],
    ["Hostname/IP does not match certificate's altnames", 'past_the_proxy'],
    ['curl: (6) Could not resolve host: self-test.svc.invalid', 'past_the_proxy'],
    ['Error: getaddrinfo EAI_AGAIN self-test.svc.invalid', 'past_the_proxy'],
    ['<urlopen error [Errno -2] Name or service not known>', 'past_the_proxy'],
    ['<urlopen error [Errno -3] Temporary failure in name resolution>', 'past_the_proxy'],
    ["ModuleNotFoundError: No module named 'requests'", 'not_installed'],
    ['', 'unclear'],
  ])('%j means %s', (output, outcome) => {
    expect(outcomeOf(output)).toBe(outcome);
  });

  test('does not report clients that are not installed', () => {
    const [client] = CLIENTS;
    if (client === undefined) throw new Error('no clients');
    expect(trustFindings(client, 'not_installed')).toEqual([]);
    expect(trustFindings(client, 'untrusted')).toMatchObject([{ level: 'warning', fix: client.fix }]);
  });
});

test('connectors: an inactive one is a warning, an active one without a usable credential a problem', () => {
  const credential = {
    kind: 'api_key' as const,
    ref: 'vault://connectors/acme/items',
    state: 'missing' as const,
    updated_at: null,
    expires_at: null,
    client_id: null,
    token_url: null,
    scopes: [],
    renewable: false,
  };
  const fqn = 'acme/items';
  const revoked = { ...credential, kind: 'oauth2' as const, state: 'reauthorisation_required' as const };
  expect(
    connectorFindings([
      { owner: 'personal', fqn, active: false, credential },
      { owner: 'enterprise', fqn, active: true, credential },
      { owner: 'personal', fqn, active: true, credential: revoked },
      { owner: 'personal', fqn: 'login/claude', active: true, credential: revoked },
      { owner: 'personal', fqn, active: true, credential: { ...credential, state: 'ready' } },
    ]).map(({ level, text, fix }) => [level, text, fix?.split('  #')[0]]),
  ).toEqual([
    [
      'warning',
      'acme/items is inactive: it has no credential yet, so it changes nothing',
      `svc connector credential set ${fqn}`,
    ],
    [
      'problem',
      'acme/items of the enterprise has no usable credential (missing): its operations are refused',
      `svc connector credential set ${fqn} --owner enterprise`,
    ],
    [
      'problem',
      'acme/items has no usable credential (reauthorisation required): its operations are refused',
      `svc connector authorize ${fqn}`,
    ],
    [
      'problem',
      'login/claude has no usable credential (reauthorisation required): its operations are refused',
      'svc login claude --import',
    ],
  ]);
});
