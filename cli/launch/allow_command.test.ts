import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identify } from '../../machine/process_identity.ts';
import { storedEvent } from '../testing/stored_event.ts';
import { runCli, TestHome, type Answer, type RunOptions } from '../testing/run_cli.ts';
import { refusedHostsLine, triedHosts } from './refused_hosts.ts';

let home: TestHome;
let project: string;
beforeEach(() => {
  home = new TestHome();
  project = join(realpathSync(home.path), 'project');
  mkdirSync(join(project, 'below'), { recursive: true });
});
afterEach(() => home.remove());

const FILE = 'allowed_hosts.json';

function allow(argv: readonly string[], options: RunOptions = {}): ReturnType<typeof runCli> {
  return runCli(home, ['allow', ...argv], { workingDirectory: project, ...options });
}

function stored(): unknown {
  return JSON.parse(readFileSync(join(home.path, FILE), 'utf8'));
}

const refused = (host: string) =>
  storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'egress_host_not_allowed' });
const passed = (host: string) => storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.mediation': 'passthrough' });
const TRIED = [refused('a.test'), passed('b.test'), refused('a.test'), refused('10.0.0.1'), refused('c.test')];
const answer: Answer = () => ({ status: 200, body: { items: TRIED, next_cursor: null } });

describe('svc allow', () => {
  test('stores hosts for the folder and lists them there and below', async () => {
    expect((await allow(['B.test.', '*.a.test'])).code).toBe(0);
    expect((await allow(['b.test', 'münchen.test'])).code).toBe(0);
    expect(stored()).toEqual({
      version: 1,
      folders: { [project]: ['*.a.test', 'b.test', 'xn--mnchen-3ya.test'] },
    });
    expect(statSync(join(home.path, FILE)).mode & 0o777).toBe(0o600);
    const below = await allow(['--json'], { workingDirectory: join(project, 'below') });
    expect(JSON.parse(below.stdout)).toMatchObject({ items: [{ host: '*.a.test', folder: project }, {}, {}] });
    const beside = await allow(['--json'], { workingDirectory: home.path });
    expect(JSON.parse(beside.stdout)).toMatchObject({ items: [] });
  });

  test('belongs to the folder that a link leads to', async () => {
    symlinkSync(project, join(home.path, 'link'));
    await allow(['a.test'], { workingDirectory: join(home.path, 'link') });
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['a.test'] } });
  });

  test('--remove takes hosts away, and says if there is no such host', async () => {
    await allow(['a.test', 'b.test']);
    expect((await allow(['--remove', 'A.test'])).code).toBe(0);
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['b.test'] } });
    const again = await allow(['--remove', 'a.test']);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('a.test is not on the list')]);
    expect((await allow(['--remove'])).code).toBe(2);
  });

  test.each(['*', '*.test', 'https://a.test', 'a.test:443', '127.0.0.1', '10.1.2.3', '[::1]', 'a b', ''])(
    'refuses %j',
    async (host) => {
      expect((await allow([host])).code).toBe(2);
      expect(() => stored()).toThrow('ENOENT');
    },
  );

  test('changes nothing from inside a session', async () => {
    const run = await allow(['a.test'], { env: { SVC_SESSION_ID: 'ses_1' } });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('this runs inside a session')]);
    expect(() => stored()).toThrow('ENOENT');
  });

  test('changes nothing below the launcher of a session, whatever the environment says', async () => {
    const folder = join(home.path, 'sessions', `ses_${'0'.repeat(26)}`);
    mkdirSync(folder, { recursive: true });
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const payload = Buffer.from(JSON.stringify({ bootId: boot, owner: identify(process.ppid) })).toString('base64url');
    writeFileSync(join(folder, 'session.jws'), `x.${payload}.x`);
    const run = await allow(['a.test']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('this runs inside a session')]);
    expect(() => stored()).toThrow('ENOENT');
  });

  test.each(['{', '{"version":2,"folders":{}}', '{"version":1,"folders":{"/p":["*"]}}'])(
    'never replaces a damaged list: %s',
    async (text) => {
      home.write(FILE, text);
      const run = await allow(['a.test']);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('is damaged')]);
      expect(readFileSync(join(home.path, FILE), 'utf8')).toBe(text);
    },
  );
});

describe('svc allow --from-session', () => {
  const argv = ['--from-session', 'ses_1'];

  test('allows what a person picks from the list', async () => {
    const run = await allow(argv, { answer, terminal: true, typed: ['1,3'] });
    expect(run.code).toBe(0);
    expect(run.calls[0]?.url.searchParams.get('session')).toBe('ses_1');
    expect(run.stdout).toMatch(/1 +a\.test +2 +0\n2 +b\.test +0 +1\n3 +c\.test +1 +0\n/);
    expect(run.stdout).not.toContain('10.0.0.1');
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['a.test', 'c.test'] } });
  });

  test.each([
    ['all', ['a.test', 'b.test', 'c.test']],
    ['2', ['b.test']],
    ['', null],
    ['yes', null],
    ['4', null],
  ])('the answer %j allows %j', async (typed, expected) => {
    await allow(argv, { answer, terminal: true, typed: [typed] });
    const folders = expected === null ? null : { [project]: expected };
    expect(existsSync(join(home.path, FILE)) ? stored() : { version: 1, folders: null }).toEqual({
      version: 1,
      folders,
    });
  });

  test('proposes only what is not allowed yet', async () => {
    await allow(['a.test'], { workingDirectory: home.path });
    const run = await allow([...argv, '--json'], { answer });
    expect(JSON.parse(run.stdout)).toEqual({
      session_id: 'ses_1',
      folder: project,
      items: [
        { host: 'b.test', refused: 0, passed: 1 },
        { host: 'c.test', refused: 1, passed: 0 },
      ],
    });
  });

  test.each([
    ['with --json', ['--json'], { terminal: true, typed: ['all'] }],
    ['without a terminal', [], { stdin: 'all\n' }],
  ])('lists, and changes nothing, %s', async (_name, flags, options) => {
    const run = await allow([...argv, ...flags], { answer, ...options });
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('a.test');
    expect(() => stored()).toThrow('ENOENT');
  });

  test('changes nothing from inside a session', async () => {
    const env = { SVC_SESSION_ID: 'ses_1' };
    const run = await allow(argv, { answer, terminal: true, typed: ['all'], env });
    expect(run.code).toBe(1);
    expect(() => stored()).toThrow('ENOENT');
  });

  test('takes neither hosts nor --remove', async () => {
    expect((await allow([...argv, 'a.test'])).code).toBe(2);
    expect((await allow([...argv, '--remove'])).code).toBe(2);
  });
});

describe('the last line of a session', () => {
  test('names the hosts that were refused, with the command that proposes them', () => {
    expect(refusedHostsLine(triedHosts(TRIED.slice(0, 3)), 'ses_1')).toBe(
      'refused a host: a.test (2). To allow some of them here: svc allow --from-session ses_1',
    );
    expect(refusedHostsLine(triedHosts([passed('b.test')]), 'ses_1')).toBeNull();
  });

  test('an agent that tries many hosts fills no screen', () => {
    const many = Array.from({ length: 100 }, (_each, n) => refused(`h${n}.test`));
    expect(refusedHostsLine(triedHosts(many), 'ses_1')).toContain('h4.test (1) and 95 more. To allow');
  });
});
