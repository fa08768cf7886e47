import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { FakeDocker, imageReply } from '../../sandbox/launch/testing/fake_docker.ts';
import { localServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import type { Bubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { snapshotRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { consentOf } from '../../sidecar/mcp/server_directory.ts';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

const TIME = '2026-01-01T12:00:00.000Z';
const written = z.looseObject({ isolation: z.string() });

let home: TestHome;
let docker: FakeDocker;
let env: Readonly<Record<string, string>>;
let isolation: object;
let sandbox: Result<Bubblewrap, string>;

const IMAGES = 'GET /images/*/json';

beforeEach(async () => {
  home = new TestHome();
  isolation = { sealed: true, message: null, node_image: null };
  sandbox = err('bubblewrap is not installed');
  docker = new FakeDocker().replies(IMAGES, 200, imageReply(`sha256:${'a'.repeat(64)}`));
  await docker.listen();
  env = docker.env();
});
afterEach(async () => {
  await docker.remove();
  home.remove();
});

const answerAdd: Answer = ({ url, method }) => {
  if (url.pathname === '/v1/mcp/isolation') return { status: 200, body: isolation };
  return method === 'POST'
    ? { status: 400, body: { error: { code: 'invalid_input', message: 'enough' } } }
    : { status: 404 };
};

async function add(...words: string[]) {
  const options = { answer: answerAdd, env, findServerSandbox: () => sandbox };
  const done = await runCli(home, ['mcp', 'add', 'box', ...words], options);
  const post = done.calls.find(({ method }) => method === 'POST');
  return {
    ...done,
    isolation: post === undefined ? null : (written.safeParse(post.body).data?.isolation ?? 'not given'),
  };
}

function forgetImage(): void {
  docker.replies(IMAGES, 404, 'No such image').on('pull', 'echo no route to the registry >&2; exit 1');
}

function stopEngine(): void {
  env = { ...env, DOCKER_HOST: 'unix:///nonexistent.sock' };
}

describe('a new server', () => {
  test('runs in a container where the machine can close its network', async () => {
    const done = await add('--', 'npx', '-y', 'box@1.0.0');
    expect([done.isolation, done.stderr]).toEqual(['container', expect.not.stringContaining('runs code as you')]);
  });

  test('waits for an image that is not there yet', async () => {
    docker.replies(IMAGES, 404, 'No such image');
    const done = await add('--', 'npx', '-y', 'box@1.0.0');
    expect(done.stderr).toContain('fetching the image node:24-slim');
    expect(done.isolation).toBe('container');
  });

  test('has the image with Node fetched too where its own may have none', async () => {
    isolation = { sealed: true, message: null, node_image: 'node:24-slim' };
    docker.replies(IMAGES, 404, 'No such image');
    const done = await add('--', 'uvx', 'box@1.0.0');
    expect(done.stderr).toMatch(/fetching the image astral.uv:\S+ for[^]*fetching the image node:24-slim for/);
    expect(done.isolation).toBe('container');
  });

  test.each<readonly [string, () => void, readonly string[], string]>([
    [
      'its network cannot be closed',
      () => (isolation = { sealed: false, message: 'needs root', node_image: null }),
      [],
      'needs root',
    ],
    ['the image cannot be had', forgetImage, [], 'no route to the registry'],
    ['there is neither an engine nor bubblewrap', stopEngine, [], 'nonexistent.*; bubblewrap is not installed'],
    ['the engine is elsewhere', () => (env = { ...env, DOCKER_HOST: 'tcp://10.0.0.1:2375' }), [], '10.0.0.1'],
    ['an argument is a path of this machine', () => undefined, ['/etc'], '/etc'],
    ['an option has a path of this machine', () => undefined, ['--root=/etc'], '/etc'],
  ])('runs as a process if %s, which is said', async (_, prepare, args, why) => {
    prepare();
    const done = await add('--', 'npx', '-y', 'box@1.0.0', ...args);
    expect(done.isolation).toBe('process');
    expect(done.stderr).toMatch(new RegExp(`box runs code as you, not in a container: .*${why}`));
  });

  test('runs as a process if no image is known for its program', async () => {
    const done = await add('--', 'my-server');
    expect(done.isolation).toBe('process');
    expect(done.stderr).toContain('no image is known for "my-server"');
  });

  test.each<readonly [string, () => void]>([
    ['no engine', stopEngine],
    ['an image cannot be had', forgetImage],
    ['a network cannot be closed', () => (isolation = { sealed: false, message: 'needs root', node_image: null })],
  ])('runs in a sandbox where %s', async (_, prepare) => {
    prepare();
    sandbox = ok({ program: '/usr/bin/bwrap', machine: 'x64' });
    const done = await add('--', 'npx', '-y', 'box@1.0.0');
    expect([done.isolation, done.stderr]).toEqual(['container', expect.not.stringContaining('runs code as you')]);
    expect(done.stderr).toContain('box runs in a sandbox of bubblewrap, not in a container: ');
  });

  test('is a process if it is a program of the machine, which may need files of its person', async () => {
    sandbox = ok({ program: '/usr/bin/bwrap', machine: 'x64' });
    const done = await add('--', 'python3', '-m', 'my_server');
    expect(done.isolation).toBe('process');
    expect(done.stderr).toContain('box runs code as you, not in a container: no image is known for "python3"');
  });

  test('never runs in a sandbox with a path of this machine, which it would not have', async () => {
    stopEngine();
    sandbox = ok({ program: '/usr/bin/bwrap', machine: 'x64' });
    expect((await add('--', 'npx', '-y', 'box@1.0.0', '/etc')).isolation).toBe('process');
  });

  test.each(['process', 'container'])(
    'runs as it is told with --isolation %s, and nothing is looked up',
    async (given) => {
      const done = await add('--isolation', given, '--', 'npx', '-y', 'box@1.0.0', '/etc');
      expect([done.isolation, done.calls.length, done.stderr]).toEqual([given, 1, 'svc: enough (400 invalid_input)\n']);
    },
  );

  test('of an own docker run or a URL is left as it is', async () => {
    expect(await add('--', 'docker', 'run', '-i', '--rm', 'acme/mcp:1.2')).toMatchObject({ isolation: 'process' });
    expect(await add('--url', 'https://mcp.example.com/mcp')).toMatchObject({ isolation: 'not given' });
  });

  test.each([
    ['--isolation', 'process'],
    ['--url', 'https://mcp.example.com/mcp'],
  ])('takes no --allow with %s %s', async (...flags) => {
    const words = flags[0] === '--url' ? [] : ['--', 'npx', '-y', 'box@1.0.0'];
    const done = await add('--allow', 'api.example.com', ...flags, ...words);
    expect([done.code, done.isolation]).toEqual([2, null]);
  });

  test.each([['*.*'], ['10.0.0.1'], ['a b']])('takes no host %j', async (host) => {
    const done = await add('--allow', host, '--', 'npx', '-y', 'box@1.0.0');
    expect([done.code, done.isolation]).toEqual([2, null]);
  });

  test('gets no host from inside a session', async () => {
    env = { ...env, SVC_SESSION_ID: 'ses_x' };
    const done = await add('--allow', 'api.example.com', '--', 'npx', '-y', 'box@1.0.0');
    expect([done.code, done.isolation]).toEqual([1, null]);
    expect(done.stderr).toContain('runs inside a session');
  });
});

describe('svc mcp allow', () => {
  const boxed = localServer({ id: SERVER_ID, name: 'box', isolation: 'container' });

  async function allow(
    words: readonly string[],
    hosts: readonly string[] | null = ['a.test'],
    server: McpServer = boxed,
  ) {
    const health = { state: 'stopped', last_error: null, checked_at: TIME, restarts: null, tools: null, gateways: 0 };
    const item = {
      server: snapshotRecord({ server, authorization: null }),
      consent: 'given',
      consent_hash: consentOf(server)?.hash ?? null,
      last_consent: null,
      missing: [],
      credentials: '',
      allowed_hosts: hosts,
      refused_hosts: ['b.test', 'c.test'],
      health,
    };
    const answer: Answer = ({ method, url }) => {
      if (method === 'POST') return { status: 204 };
      if (url.pathname === '/v1/me') return { status: 200, body: ME };
      return url.pathname === '/v1/mcp/servers'
        ? { status: 200, body: { version: 'v', items: [item], problems: [] } }
        : { status: 404 };
    };
    const done = await runCli(home, ['mcp', 'allow', 'box', '--json', ...words], { answer, env });
    return { ...done, posted: done.calls.find(({ method }) => method === 'POST')?.body ?? null };
  }

  test.each<readonly [readonly string[], readonly string[] | null]>([
    [['B.test'], ['a.test', 'b.test']],
    [
      ['a.test', '*.c.test'],
      ['*.c.test', 'a.test'],
    ],
    [['--remove', 'a.test'], []],
    [[], null],
  ])('%j sends the list %j', async (words, list) => {
    const done = await allow(words);
    expect([done.code, done.posted]).toEqual([0, list && { allowed_hosts: list }]);
  });

  test('shows what is allowed, and what was refused and is not allowed', async () => {
    expect(JSON.parse((await allow([])).stdout)).toEqual({
      server: 'box',
      allowed_hosts: ['a.test'],
      refused_hosts: ['b.test', 'c.test'],
    });
    expect(JSON.parse((await allow(['b.test', 'c.test'])).stdout)).toMatchObject({ refused_hosts: [] });
  });

  test.each<readonly [string, readonly string[], readonly string[] | null, Partial<McpServer>, string]>([
    ['a host that is not allowed', ['--remove', 'x.test'], ['a.test'], {}, 'x.test is not allowed for box'],
    ['a process', ['b.test'], null, { isolation: 'process' }, 'svc mcp update box --isolation container'],
    ['an open network', ['b.test'], null, {}, 'has an open network'],
  ])('refuses to change %s', async (_, words, hosts, more, said) => {
    const done = await allow(words, hosts, { ...boxed, ...more });
    expect([done.code, done.posted]).toEqual([1, null]);
    expect(done.stderr).toContain(said);
  });
});
