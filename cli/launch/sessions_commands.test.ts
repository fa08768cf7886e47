import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CONTAINER_ID, FakeDocker } from '../../sandbox/launch/testing/fake_docker.ts';
import { runCli, TestHome, type Answer, type SeenCall } from '../testing/run_cli.ts';
import { storedEvent } from '../testing/stored_event.ts';

let home: TestHome;
let docker: FakeDocker;
beforeEach(async () => {
  home = new TestHome();
  docker = new FakeDocker();
  await docker.listen();
});
afterEach(async () => {
  home.remove();
  await docker.remove();
});

const plain = {
  session_id: 'ses_1',
  name: 'two',
  state: 'live',
  created_at: '2026-01-01T11:00:00Z',
  expires_at: '2026-01-02T11:00:00Z',
  open_tunnels: 0,
  owner_alive: null,
  sandbox: null,
};
const launchedSession = () => ({
  ...plain,
  session_id: 'ses_2',
  name: 'one',
  open_tunnels: 3,
  owner_alive: true,
  mcp_servers: [
    { id: 'mcp_1', name: 'files' },
    { id: 'mcp_2', name: null },
  ],
  sandbox: {
    mode: 'docker',
    image: 'team/agent',
    image_id: 'sha256:1',
    container_id: CONTAINER_ID,
    egress: 'sealed',
    detached: false,
    runtime: { program: 'docker', endpoint: docker.endpoint },
    unsealed: [{ env: 'DB', reference: 'vault://team/db', host: 'db.example.com', reason: 'no HTTP' }],
  },
});
const answer: Answer = ({ method, url }) => {
  const items = [plain, launchedSession(), { ...plain, session_id: 'ses_3', name: 'two' }];
  if (method === 'DELETE') return { status: 204 };
  const one = items.find(({ session_id }) => url.pathname.endsWith(`/${session_id}`));
  return { status: 200, body: one ?? { items, next_cursor: null } };
};

const hintCalls = (calls: readonly SeenCall[]) => calls.filter(({ url }) => url.pathname === '/v1/audit-events');

describe('svc sessions', () => {
  test('show says that a session without a time limit ends with its launcher', async () => {
    const renewing: Answer = () => ({ status: 200, body: { ...plain, items: [plain], renews: true } });
    expect((await runCli(home, ['sessions', 'show', 'ses_1'], { answer: renewing })).stdout).toContain(
      'expires\twhen its launcher ends\n',
    );
    expect((await runCli(home, ['sessions', 'show', 'ses_1'], { answer })).stdout).toContain(
      `expires\t${plain.expires_at}\n`,
    );
  });

  test('list shows each session with its sandbox and egress', async () => {
    const run = await runCli(home, ['sessions', 'list'], { answer });
    expect(run.stdout.split('\n').slice(0, 2)).toEqual([
      'ses_1\ttwo\tlive\tnone\t\t0\t1h ago',
      'ses_2\tone\tlive\tdocker team/agent\tsealed\t3\t1h ago',
    ]);
  });

  test('list and show have the sandbox of svc run --sandbox', async () => {
    const boxed = { ...plain, host_sandbox: { mode: 'bubblewrap', egress: 'sealed,public' } };
    const shown: Answer = () => ({ status: 200, body: { ...boxed, items: [boxed] } });
    const list = await runCli(home, ['sessions', 'list'], { answer: shown });
    expect(list.stdout).toBe('ses_1\ttwo\tlive\tbubblewrap\tsealed,public\t0\t1h ago\n');
    const one = await runCli(home, ['sessions', 'show', 'ses_1'], { answer: shown });
    expect(one.stdout).toContain('sandbox\tbubblewrap\negress\tsealed,public\n');
    expect(one.stdout).not.toContain('container');
    for (const words of [['list'], ['show', 'ses_1']]) {
      const { stdout } = await runCli(home, ['sessions', ...words, '--json'], { answer: shown });
      expect(stdout).toContain('"host_sandbox":');
    }
  });

  test('show lists unsealed credentials with reasons, and the MCP servers', async () => {
    const run = await runCli(home, ['sessions', 'show', 'one'], { answer });
    expect(run.stdout).toContain('unsealed\tDB holds vault://team/db for db.example.com: no HTTP\n');
    expect(run.stdout).toContain('MCP server\tfiles (mcp_1)\nMCP server\tdeleted (mcp_2)\n');
    const json = await runCli(home, ['sessions', 'show', 'ses_2', '--json'], { answer });
    expect(JSON.parse(json.stdout)).toMatchObject({ sandbox: { unsealed: [{ env: 'DB' }] } });
    const sealed = await runCli(home, ['sessions', 'show', 'ses_1'], { answer });
    expect(sealed.stdout).toContain('unsealed\tno credential\n');
  });

  test.each([
    [{ allowed_hosts: ['a.test', '*.b.test'] }, 'reaches\tbound hosts, a.test, *.b.test\n'],
    [{ allowed_hosts: [] }, 'reaches\tbound hosts\n'],
    [{ allowed_hosts: null }, null],
  ])('show lists the hosts that a session with %j reaches', async (change, line) => {
    const shown: Answer = () => ({ status: 200, body: { ...plain, ...change, items: [{ ...plain, ...change }] } });
    const run = await runCli(home, ['sessions', 'show', plain.session_id], { answer: shown });
    expect(run.code).toBe(0);
    expect(run.stdout.includes('reaches')).toBe(line !== null);
    expect(run.stdout).toContain(line ?? '');
  });

  test('stop ends the named session', async () => {
    const run = await runCli(home, ['sessions', 'stop', 'one'], { answer });
    expect(run.code).toBe(0);
    const deleted = run.calls.filter(({ method }) => method === 'DELETE').map(({ url }) => url.pathname);
    expect(deleted).toEqual(['/v1/sandbox-proxy/sessions/ses_2']);
  });

  test.each(['show', 'stop'])(
    '%s names what a session was refused, for a launch that nobody waited for',
    async (command) => {
      const events = [
        storedEvent({ 'svc.proxy.upstream.host': 'x.test', 'svc.proxy.reason': 'egress_host_not_allowed' }),
        storedEvent({ 'svc.proxy.upstream.host': 'y.test', 'svc.proxy.reason': 'client_refused_certificate' }),
        storedEvent({ 'svc.proxy.upstream.host': 'z.test', 'svc.proxy.reason': 'placeholder_unbound' }),
      ];
      const sealed = { ...plain, allowed_hosts: ['a.test'] };
      const hinted: Answer = ({ method, url }) => {
        if (method === 'DELETE') return { status: 204 };
        if (url.pathname !== '/v1/audit-events') return { status: 200, body: { ...sealed, items: [sealed] } };
        return { status: 200, body: { items: events, next_cursor: null } };
      };
      const run = await runCli(home, ['sessions', command, 'ses_1'], { answer: hinted });
      expect(run.code).toBe(0);
      expect(run.stderr).toContain('svc: bind z.test?');
      expect(run.stderr).toContain('svc: refused a host that the agent chose: x.test (1).');
      expect(run.stderr).toContain('svc tunnel add y.test');
      expect(hintCalls(run.calls)).toHaveLength(1);
    },
  );

  test('show has no empty line for the headings that it has not, and no hints with --json', async () => {
    const shown = await runCli(home, ['sessions', 'show', 'ses_1'], { answer, terminal: true });
    expect(shown.stdout).not.toMatch(/^\s*\n/);
    const json = await runCli(home, ['sessions', 'show', 'ses_1', '--json'], { answer });
    expect(hintCalls(json.calls)).toEqual([]);
  });

  test('logs reads from the engine of the session', async () => {
    docker.on('logs', 'exit 0');
    const run = await runCli(home, ['sessions', 'logs', 'one', '--follow'], { answer, env: docker.env() });
    expect(run.code).toBe(0);
    expect(docker.uses()[0]?.args).toEqual(['--host', docker.endpoint, 'logs', '--follow', '--', CONTAINER_ID]);
  });

  test.each([
    ['logs', 'ses_1', 'has no container'],
    ['show', 'nobody', 'there is no session "nobody"'],
    ['stop', 'two', '2 sessions are named "two"'],
  ])('%s %s: %s', async (command, session, why) => {
    const run = await runCli(home, ['sessions', command, session], { answer });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(why);
    expect(run.calls.filter(({ method }) => method === 'DELETE')).toEqual([]);
  });
});
