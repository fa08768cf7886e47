import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { mcpReference } from '../../shared/mcp/references.ts';
import type { LearnedTools, LearnTools, TrialStart } from '../../gateway/trial/learn_tools.ts';
import type { Npm } from '../../gateway/packages/npm_program.ts';
import { KeptLists } from '../../gateway/routing/kept_lists.ts';
import { localServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import { snapshotRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { mcpServerInput } from '../../shared/wire/mcp/mcp_servers.ts';
import { consentOf } from '../../sidecar/mcp/server_directory.ts';
import { runCli, TestHome, type Answer, type RunResult } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

const HASH = `sha512-${'A'.repeat(86)}==`;
const TIME = '2026-01-01T12:00:00.000Z';
const server = localServer();
const KEY = mcpReference(SERVER_ID, 'KEY');

let home: TestHome;
let npmCalls: string[];
beforeEach(() => {
  home = new TestHome();
  npmCalls = [];
});
afterEach(() => home.remove());

function lock(): string {
  const own = { version: '1.0.0', resolved: 'https://r.example/demo.tgz', integrity: HASH, hasInstallScript: true };
  const other = { version: '2.0.0', resolved: 'https://r.example/\u001b[2J', integrity: HASH };
  const packages = { '': {}, 'node_modules/demo-mcp': own, 'node_modules/other': other };
  return JSON.stringify({ lockfileVersion: 3, packages });
}

const npm: Npm = (args, folder) => {
  npmCalls.push(args.join(' '));
  if (args[0] === 'install') writeFileSync(join(folder, 'package-lock.json'), lock());
  else if (args[0] === 'ci') {
    mkdirSync(join(folder, 'node_modules/demo-mcp'), { recursive: true });
    mkdirSync(join(folder, 'node_modules/.bin'));
    writeFileSync(join(folder, 'node_modules/demo-mcp/package.json'), JSON.stringify({ bin: 'cli.js' }));
    writeFileSync(join(folder, 'node_modules/demo-mcp/cli.js'), 'x'.repeat(1_500_000));
    symlinkSync('../demo-mcp/cli.js', join(folder, 'node_modules/.bin/demo-mcp'));
  }
  return Promise.resolve({ ok: true, value: undefined });
};

const gone: Npm = () => Promise.resolve({ ok: false, error: 'no \u001b[2Jregistry' });

function answering(
  consent: 'needed' | 'given',
  seen: string[],
  of = server,
  last: object | null = null,
  reviewed: readonly string[] | null = null,
): Answer {
  const health = { state: 'stopped', last_error: null, checked_at: TIME, restarts: null, tools: null, gateways: 0 };
  const item = {
    server: snapshotRecord({ server: of, authorization: null }),
    consent,
    consent_hash: consentOf(of)?.hash ?? null,
    last_consent: last,
    missing: [],
    credentials: '',
    reviewed,
    health,
  };
  return ({ url, method }) => {
    if (url.pathname === '/v1/me') return { status: 200, body: ME };
    if (url.host === 'r.example') return { status: 200, body: '' };
    if (method === 'GET') return { status: 200, body: { version: 'v', items: [item], problems: [] } };
    // The package is installed before the consent, because a gateway starts the server right after it.
    seen.push(existsSync(packagesFolder()) ? `consent, ${readdirSync(packagesFolder()).length} entries` : 'consent');
    return { status: 204 };
  };
}

const packagesFolder = () => join(home.path, 'mcp', 'packages');
const seen: string[] = [];
beforeEach(() => seen.splice(0));

function consentTo(
  of: { readonly npm: Npm; readonly consent?: 'given' },
  typed?: readonly string[],
): Promise<RunResult> {
  const answer = answering(of.consent ?? 'needed', seen);
  const more = typed === undefined ? {} : { terminal: true, typed };
  return runCli(home, ['mcp', 'consent', ...(typed === undefined ? ['--yes'] : [])], { answer, npm: of.npm, ...more });
}

describe('a consent to a server from a package', () => {
  test('says what is installed, and installs it before the consent is given', async () => {
    const done = await consentTo({ npm });
    expect(done.stdout).toContain('  installs   demo-mcp@1.0.0, 2 packages, ');
    expect(done.stdout).toContain('their install scripts are not run: demo-mcp@1.0.0\n');
    expect(done.stderr).toContain('installing demo-mcp@1.0.0: 2 packages\n');
    expect(done.stderr).toContain('installed demo-mcp@1.0.0 (2 packages, 1.5 MB on disk)\n');
    expect(done.stderr).toContain('install scripts were not run: demo-mcp@1.0.0\n');
    expect([done.code, seen, npmCalls]).toEqual([0, ['consent, 2 entries'], ['install --package-lock-only', 'ci']]);
  });

  test('installs nothing if the person says no', async () => {
    const done = await consentTo({ npm }, ['n']);
    expect(done.stdout).toContain('installs   demo-mcp@1.0.0');
    expect([done.code, seen, npmCalls]).toEqual([1, [], ['install --package-lock-only']]);
    expect(readdirSync(packagesFolder())).toEqual([]);
  });

  test('is given also if the package cannot be installed now, and says why', async () => {
    const done = await consentTo({ npm: gone });
    expect(done.stdout).toContain('installs   could not be looked up: ');
    expect(done.stderr).toContain('warning: not installed: the package demo-mcp@1.0.0 could not be resolved: no ');
    expect(`${done.stdout}${done.stderr}`).not.toContain('\u001b');
    expect([done.code, seen]).toEqual([0, ['consent, 0 entries']]);
  });

  test('installs nothing twice; asked again, it installs what is missing', async () => {
    await consentTo({ npm: gone });
    const again = await consentTo({ npm, consent: 'given' });
    expect([again.stdout, npmCalls]).toEqual(['', []]);
    const named = await runCli(home, ['mcp', 'consent', 'demo'], {
      answer: answering('given', seen),
      npm,
      terminal: true,
      typed: [],
    });
    expect(named.stderr).toContain('installed demo-mcp@1.0.0');
    npmCalls = [];
    const third = await consentTo({ npm });
    expect(third.stdout).toContain('installs   nothing: demo-mcp@1.0.0 (2 packages, 1.5 MB on disk) is there\n');
    expect(npmCalls).toEqual([]);
  });

  test.each([
    ['in a container that had an open network', { isolation: 'container' as const }],
    ['of another program', { command: ['/usr/bin/node', '/opt/server.js'] }],
  ])('installs nothing for a server %s', async (_, more) => {
    const last = { hash: 'a'.repeat(64), text: JSON.stringify(more), consented_at: TIME };
    const answer = answering('needed', seen, localServer({ id: SERVER_ID, ...more }), last);
    const done = await runCli(home, ['mcp', 'consent', '--yes'], { answer, npm });
    expect([done.code, npmCalls]).toEqual([0, []]);
    expect(done.stdout).not.toContain('installs');
  });

  test('installs it for a server that is new in a container, which has no registry', async () => {
    const answer = answering('needed', seen, localServer({ id: SERVER_ID, isolation: 'container' }));
    const env = { DOCKER_HOST: `unix://${home.path}/none.sock` };
    const done = await runCli(home, ['mcp', 'consent', '--yes'], { answer, npm, env });
    expect([done.code, npmCalls]).toEqual([0, ['install --package-lock-only', 'ci']]);
    expect(done.stdout).toContain(
      'isolation  in a container; it reaches no host until you allow one: svc mcp allow demo HOST',
    );
  });

  test('starts no npm for a server that is never run', async () => {
    const env = { npm_config_registry: 'https://evil.example' };
    const answer = answering('needed', seen, localServer({ id: SERVER_ID, env }));
    const done = await runCli(home, ['mcp', 'consent', '--yes'], { answer, npm });
    expect([done.code, npmCalls]).toEqual([1, []]);
    expect(done.stderr).toContain('svc never runs');
  });
});

const tool = (name: string) => ({ name, inputSchema: { type: 'object' as const }, _meta: { build: 7 } });

describe('the tools of a server whose package is installed', () => {
  const learned = ok({ tools: [tool('read'), tool('write')], place: 'sandbox' as const });
  let told: unknown[];
  let starts: TrialStart[];
  beforeEach(() => {
    told = [];
    starts = [];
  });

  const consentWith = (result: Result<LearnedTools, string>, of = server, isRefused = false) => {
    const plain = answering('needed', seen, of, null, ['a'.repeat(64)]);
    const answer: Answer = (call) => {
      if (!call.url.pathname.endsWith('/v1/mcp/tools')) return plain(call);
      told.push(...seen, call.body);
      return isRefused
        ? { status: 503, body: { error: { code: 'unavailable', message: 'no control plane' } } }
        : { status: 204 };
    };
    const learnTools: LearnTools = (start) => {
      starts.push(start);
      return Promise.resolve(result);
    };
    return runCli(home, ['mcp', 'consent', '--yes'], { answer, npm, learnTools });
  };

  test('are learned before the consent, and told to the control plane', async () => {
    const done = await consentWith(learned);
    const members = ['read', 'write'].map((name) => ({ name, inputSchema: { type: 'object' } }));
    expect([done.code, told, seen]).toEqual([0, [{ server_id: SERVER_ID, tools: members }], ['consent, 2 entries']]);
    expect(starts[0]?.program.command[0]).toMatch(/\/demo-mcp$/);
    expect(done.stderr).toContain('demo lists 2 tools in a sandbox without network: read, write\n');
    const kept = new KeptLists(join(home.path, 'mcp')).read('tools', server, '');
    expect(kept?.map(({ name }) => name)).toEqual(['read', 'write']);
  });

  test.each([
    ['the server does not start there', err('it ended \u001b[2J'), server, false],
    ['they cannot be stored', learned, server, true],
    ['an argument holds a credential', learned, localServer({ command: [...server.command, KEY] }), false],
  ])('are learned at the first start if %s, which is said', async (_, result, of, isRefused) => {
    const done = await consentWith(result, of, isRefused);
    expect([done.code, seen]).toEqual([0, ['consent, 2 entries']]);
    expect(done.stderr).toContain('the tools of demo are learned at its first start: ');
    expect(done.stderr).not.toContain('\u001b');
    expect(starts).toHaveLength(of === server ? 1 : 0);
  });
});

const consent = (words: readonly string[], of: 'needed' | 'given', typed?: readonly string[], env = {}) => {
  const more = typed === undefined ? {} : { terminal: true, typed };
  return runCli(home, ['mcp', 'consent', ...words], { answer: answering(of, seen), npm, env, ...more });
};

test('an agent in a session consents to nothing, and installs nothing', async () => {
  const env = { SVC_SESSION_ID: 'ses_1' };
  const done = await runCli(home, ['mcp', 'consent', '--yes'], { answer: answering('needed', seen), npm, env });
  expect([done.code, seen, npmCalls]).toEqual([1, [], []]);
  expect(done.stderr).toContain('this runs inside a session, which may not consent to what runs on this machine');
});

describe('svc mcp consent --scripts', () => {
  test('runs the scripts of the named package, and says so before', async () => {
    const done = await consent(['demo', '--scripts', 'demo-mcp', '--yes'], 'needed');
    expect(done.stdout).toContain('; runs install scripts as you, with your files and network: demo-mcp@1.0.0\n');
    expect(done.stderr).toContain('install scripts were run: demo-mcp@1.0.0\n');
    expect([done.code, npmCalls.at(-1)]).toEqual([0, 'rebuild demo-mcp@1.0.0']);
  });

  test('adds them to a server that was installed without, after a question', async () => {
    const first = await consent(['--yes'], 'needed');
    expect(first.stderr).toContain('If demo needs them: svc mcp consent demo --scripts demo-mcp\n');
    npmCalls = [];
    const no = await consent(['demo', '--scripts', 'demo-mcp'], 'given', ['n']);
    expect([no.code, npmCalls]).toEqual([1, []]);
    const yes = await consent(['demo', '--scripts', 'demo-mcp'], 'given', ['y']);
    expect([yes.code, npmCalls]).toEqual([0, ['ci', 'rebuild demo-mcp@1.0.0']]);
    npmCalls = [];
    const again = await consent(['demo', '--scripts', 'demo-mcp', '--yes'], 'given');
    expect([again.code, npmCalls]).toEqual([0, []]);
  });

  test.each([
    ['a package without scripts', ['demo', '--scripts', 'other', '--yes'], {}, 'These have: demo-mcp@1.0.0'],
    ['no server', ['--scripts', 'demo-mcp', '--yes'], {}, 'needs the name of the server'],
    ['nobody who confirms', ['demo', '--scripts', 'demo-mcp'], {}, 'Add --yes.'],
    ['an agent', ['demo', '--scripts', 'demo-mcp', '--yes'], { SVC_SESSION_ID: 'ses_1' }, 'runs inside a session'],
  ])('refuses %s, and runs nothing', async (_, words, env, why) => {
    const done = await consent(words, 'needed', undefined, env);
    expect(done.code).not.toBe(0);
    expect(done.stderr).toContain(why);
    expect([seen, npmCalls.filter((call) => call !== 'install --package-lock-only')]).toEqual([[], []]);
  });
});

const record = (command: readonly string[]): object => ({
  ...mcpServerInput.parse({ name: 'demo', command: [...command] }),
  id: SERVER_ID,
  registry_id: null,
  revision: 1,
  status: 'stopped',
  health: null,
  credentials: [],
  authorization: null,
  warnings: [],
  created_at: TIME,
  updated_at: TIME,
});
const updateDemo = (typed: readonly string[] | null, command = ['npx', '-y', 'demo-mcp']): Promise<RunResult> => {
  const answer: Answer = ({ url }) => {
    if (url.host === 'r.example') return { status: 200, body: '' };
    return { status: 200, body: { items: [record(command)], next_cursor: null } };
  };
  const more = typed === null ? {} : { terminal: true, typed };
  const words = ['mcp', 'update', 'demo', '--newest', ...(typed === null ? ['--yes'] : [])];
  return runCli(home, words, { answer, npm, ...more });
};

describe('svc mcp update --newest', () => {
  test('shows both releases, asks, and installs', async () => {
    const first = await updateDemo(['n']);
    expect([first.code, npmCalls]).toEqual([1, ['install --package-lock-only']]);
    expect(first.stderr).toContain('not installed -> demo-mcp@1.0.0, 2 packages, ');
    const second = await updateDemo(['y']);
    expect([second.code, npmCalls.slice(1)]).toEqual([0, ['install --package-lock-only', 'ci']]);
    expect(second.stderr).toContain('installed demo-mcp@1.0.0 (2 packages, 1.5 MB on disk)');
    const third = await updateDemo(null);
    expect(third.stderr).toContain('demo has the newest release: demo-mcp@1.0.0');
    expect(npmCalls.filter((call) => call === 'ci')).toHaveLength(1);
  });

  test.each([
    [['npx', '-y', 'demo-mcp@1.0.0'], 'names one release, demo-mcp@1.0.0'],
    [['dnx', 'demo-mcp'], 'runs no package that svc installs'],
  ])('refuses %j', async (command, why) => {
    const done = await updateDemo(null, command);
    expect([done.code, npmCalls]).toEqual([1, []]);
    expect(done.stderr).toContain(why);
  });
});
