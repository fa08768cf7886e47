import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identify } from '../../../machine/process_identity.ts';
import { UpLock } from '../../up/up_lock.ts';
import { storedEvent } from '../../testing/stored_event.ts';
import { runCli, TestHome, type Answer, type RunOptions } from '../../testing/run_cli.ts';
import { refusedHostsLine, listTriedHosts } from './refused_hosts.ts';

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
  return runCli(home, ['allow', ...argv], { workingDirectory: project, userHome: '/nonexistent', ...options });
}

function stored(): unknown {
  return JSON.parse(readFileSync(join(home.path, FILE), 'utf8'));
}

const refused = (host: string) =>
  storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'egress_host_not_allowed' });
const refusedPort = (host: string) =>
  storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'connect_port_not_allowed' });
const passed = (host: string) => storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.mediation': 'passthrough' });
const TRIED = [refused('a.test'), passed('b.test'), refused('a.test'), refused('10.0.0.1'), refused('c.test')];
const answer: Answer = () => ({ status: 200, body: { items: TRIED, next_cursor: null } });
const answerMore: Answer = () => ({
  status: 200,
  body: { items: [...TRIED, refused('x.d.test')], next_cursor: null },
});

describe('svc allow', () => {
  test('keeps hosts for plain http apart from those of sealed sessions', async () => {
    expect((await allow(['a.test'])).code).toBe(0);
    expect((await allow(['--plain-http', 'A.test', '*.b.test'])).code).toBe(0);
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['a.test', 'http://*.b.test', 'http://a.test'] } });
    expect((await allow([])).stdout).toContain('http://a.test');
    const missing = await allow(['--remove', '--plain-http', 'c.test']);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('http://c.test is not on the list')]);
    const above = await allow(['--remove', '--plain-http', 'a.test'], { workingDirectory: join(project, 'below') });
    expect(above.stderr).toContain(`svc allow --remove --plain-http a.test --folder ${project}`);
    expect((await allow(['--remove', '--plain-http', 'a.test'])).code).toBe(0);
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['a.test', 'http://*.b.test'] } });
    expect((await allow(['--plain-http'])).code).toBe(2);
    expect((await allow(['http://a.test'])).code).toBe(2);
  });

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

  test('--remove --all takes away every host of the folder, also of one that is gone, and of no other', async () => {
    await allow(['c.test'], { workingDirectory: home.path });
    await allow(['a.test', 'b.test']);
    rmSync(project, { recursive: true });
    const gone = ['--folder', project];
    const list = await allow([...gone, '--json'], { workingDirectory: home.path });
    expect(JSON.parse(list.stdout)).toMatchObject({ items: [{ host: 'a.test' }, { host: 'b.test' }, {}] });
    expect((await allow([...gone, '--remove', '--all'], { workingDirectory: home.path })).code).toBe(0);
    expect(stored()).toEqual({ version: 1, folders: { [realpathSync(home.path)]: ['c.test'] } });
    const added = await allow([...gone, 'd.test'], { workingDirectory: home.path });
    expect([added.code, added.stderr]).toEqual([1, expect.stringContaining('does not exist')]);
  });

  test('--all is only for --remove without hosts', async () => {
    await allow(['a.test']);
    expect((await allow(['--all'])).code).toBe(2);
    expect((await allow(['--remove', '--all', 'a.test'])).code).toBe(2);
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['a.test'] } });
  });

  test('stores no more hosts for a folder, with its parents, than a session may have', async () => {
    const many = Array.from({ length: 999 }, (_each, n) => `h${n}.test`);
    expect((await allow(['above.test'], { workingDirectory: home.path })).code).toBe(0);
    expect((await allow(many)).code).toBe(0);
    const one = await allow(['more.test']);
    expect([one.code, one.stderr]).toEqual([1, expect.stringContaining('1001 allowed hosts')]);
    const above = await allow(['more.test'], { workingDirectory: home.path });
    expect([above.code, above.stderr]).toEqual([1, expect.stringContaining(`${project} would have 1001`)]);
    expect(readFileSync(join(home.path, FILE), 'utf8')).not.toContain('more.test');
    expect((await allow(['--remove', 'h1.test'])).code).toBe(0);
    expect((await allow(['more.test'])).code).toBe(0);
  });

  test.each([
    '*',
    '*.test',
    'https://a.test',
    'a.test:80',
    'a.test:x',
    '127.0.0.1',
    '127.0.0.1:8443',
    '10.1.2.3',
    '[::1]',
    'a b',
    '',
  ])('refuses %j', async (host) => {
    expect((await allow([host])).code).toBe(2);
    expect(() => stored()).toThrow('ENOENT');
  });

  test('names the folder whose list has a host that is to be removed', async () => {
    await allow(['a.test'], { workingDirectory: project });
    const run = await allow(['--remove', 'a.test'], { workingDirectory: join(project, 'below') });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`--remove a.test --folder ${project}`)]);
  });

  test.each(['/', 'the home directory', 'a folder of everybody'])(
    'asks for --folder before it changes %s',
    async (what) => {
      const folder = { '/': '/', 'the home directory': realpathSync(home.path) }[what] ?? project;
      if (folder === project) chmodSync(project, 0o1777);
      const userHome = join(home.path, ...(folder === '/' ? ['x'] : []));
      const options = { workingDirectory: folder, userHome };
      const run = await allow(['a.test'], options);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('unless you name it')]);
      const learned = await allow(['--from-session', 'ses_1'], { ...options, answer, terminal: true, typed: ['all'] });
      expect(learned.code).toBe(1);
      expect((await allow(['--from-session', 'ses_1', '--json'], { ...options, answer })).code).toBe(0);
      expect(existsSync(join(home.path, FILE))).toBe(false);
      expect((await allow(['a.test', '--folder', '.'], options)).code).toBe(0);
      expect(stored()).toEqual({ version: 1, folders: { [folder]: ['a.test'] } });
      expect((await allow(['--remove', 'a.test'], options)).code).toBe(0);
    },
  );

  test('--all-folders shows every list, also of a folder that is gone', async () => {
    await allow(['a.test']);
    rmSync(project, { recursive: true });
    const run = await allow(['--all-folders'], { workingDirectory: home.path });
    expect(run.stdout).toMatch(/project \(does not exist\)\s+a\.test/);
    expect((await allow(['--all-folders', 'b.test'], { workingDirectory: home.path })).code).toBe(2);
  });

  test('changes nothing while another command changes the list', async () => {
    const held = UpLock.take(home.path, process.ppid, 'allowed_hosts.lock');
    const run = await allow(['a.test']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('another command is changing the list')]);
    expect(existsSync(join(home.path, FILE))).toBe(false);
    if (held.kind === 'taken') held.lock.release();
    expect((await allow(['a.test'])).code).toBe(0);
  });

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

  test.each([
    ['{', 'its content is not as expected'],
    ['{"version":2,"folders":{}}', 'version is not as expected'],
    ['{"version":1,"folders":{},"more":1}', 'more is not known'],
    ['{"version":1,"folders":{"/p":["a.test",7]}}', 'folders./p.1 is not as expected'],
    ['{"version":1,"folders":{"/p":{"0":"a.test"}}}', 'folders./p is not as expected'],
    ['{"version":1,"folders":{"/p":["*"]}}', 'folders has "*" for "/p", which is not a host'],
    ['{"version":1,"folders":{"__proto__":["a.test"]}}', 'folders has "__proto__", which is not an absolute path'],
  ])('never replaces a damaged list: %s', async (text, problem) => {
    home.write(FILE, text);
    const run = await allow(['a.test']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`is damaged: ${problem}\n`)]);
    expect(readFileSync(join(home.path, FILE), 'utf8')).toBe(text);
  });
});

describe('svc allow --from-session', () => {
  const argv = ['--from-session', 'ses_1'];

  test('refuses what is no id of a session', async () => {
    const run = await allow(['--from-session', 'work'], { answer });
    expect(run).toMatchObject({ code: 2, calls: [], stderr: expect.stringContaining('--from-session is "work"') });
  });

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
  ])('the answer %j allows %j', async (typed, expected) => {
    await allow(argv, { answer, terminal: true, typed: [typed] });
    const folders = expected === null ? null : { [project]: expected };
    expect(existsSync(join(home.path, FILE)) ? stored() : { version: 1, folders: null }).toEqual({
      version: 1,
      folders,
    });
  });

  test.each(['yes', '4', '1-3,2', '1;2', '01', '0', '2 4', 'all,1', '1 x'])(
    'the answer %j is an error, and nothing is allowed',
    async (typed) => {
      const run = await allow(argv, { answer, terminal: true, typed: [typed] });
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('nothing was changed')]);
      expect(() => stored()).toThrow('ENOENT');
    },
  );

  test('shows 50 hosts, says that there are more, and takes no `all`', async () => {
    const many = Array.from({ length: 60 }, (_each, n) => refused(`h${String(n).padStart(2, '0')}.test`));
    const flood: Answer = () => ({ status: 200, body: { items: many, next_cursor: null } });
    const run = await allow(argv, { answer: flood, terminal: true, typed: ['all'] });
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('h49.test');
    expect(run.stdout).not.toContain('h50.test');
    expect(run.stderr).toContain('10 more hosts are not shown');
    expect(run.stderr).toContain('The agent chose these names');
    expect(run.stderr).not.toContain('or all');
    expect(() => stored()).toThrow('ENOENT');
    await allow(argv, { answer: flood, terminal: true, typed: ['51'] });
    expect(() => stored()).toThrow('ENOENT');
    await allow(argv, { answer: flood, terminal: true, typed: ['50'] });
    expect(stored()).toEqual({ version: 1, folders: { [project]: ['h49.test'] } });
  });

  test('says when the session has more events than were read', async () => {
    const page = Array.from({ length: 500 }, () => refused('a.test'));
    const endless: Answer = () => ({ status: 200, body: { items: page, next_cursor: 'more' } });
    const run = await allow(argv, { answer: endless, terminal: true, typed: [''] });
    expect(run.stderr).toContain('more events than were read');
    expect((await allow(argv, { answer, terminal: true, typed: [''] })).stderr).not.toContain('more events');
  });

  test('proposes only what is not allowed yet', async () => {
    await allow(['a.test', '*.d.test'], { workingDirectory: home.path });
    const run = await allow([...argv, '--json'], { answer: answerMore });
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

const ENDED = { sessionId: 'ses_1', folder: "/work/it's" };

describe('the last line of a session', () => {
  test('names the hosts that were refused, with the command that proposes them', () => {
    expect(refusedHostsLine(listTriedHosts(TRIED.slice(0, 3)), ENDED)).toBe(
      "refused a host that the agent chose: a.test (2). To allow some of them here: svc allow --from-session ses_1 --folder '/work/it'\\''s'",
    );
    expect(refusedHostsLine(listTriedHosts([passed('b.test')]), ENDED)).toBeNull();
  });

  test('adds what an event stands for, and names no host that cannot be allowed', () => {
    const summed = storedEvent({ ...refused('a.test').data, 'svc.proxy.count': 40 });
    expect(listTriedHosts([refused('a.test'), summed, refused('10.0.0.1'), refused('--from-session')])).toEqual([
      { host: 'a.test', refused: 41, passed: 0 },
    ]);
  });

  test('a port that was refused is part of the host', () => {
    const tried = ['a.test:8443', 'a.test', 'a.test:80', '10.0.0.1:8443'].map(refusedPort);
    expect(listTriedHosts([...tried, passed('a.test')])).toEqual([
      { host: 'a.test', refused: 0, passed: 1 },
      { host: 'a.test:8443', refused: 1, passed: 0 },
    ]);
  });

  test('a look-alike stands beside the host that it imitates, however often each was tried', () => {
    const names = ['registry.test.cdn.example', 'registry-npm.test', 'z.test', 'registry.test', 'z.test'];
    expect(listTriedHosts(names.map(refused)).map(({ host }) => host)).toEqual([
      'registry-npm.test',
      'registry.test',
      'registry.test.cdn.example',
      'z.test',
    ]);
  });

  test('an agent that tries many hosts fills no screen', () => {
    const many = Array.from({ length: 100 }, (_each, n) => refused(`h${n}.test`));
    expect(refusedHostsLine(listTriedHosts(many), ENDED)).toContain('h12.test (1) and 95 more. To allow');
  });
});
