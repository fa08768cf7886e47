import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { SnapshotMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import { reachFailure } from '../reach/reach_failure.ts';
import { identify } from '../../machine/process_identity.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { HOST_TOKEN, LocalApiBench, sandboxInput } from '../testing/local_api_bench.ts';

const SESSIONS = '/v1/sandbox-proxy/sessions';
const CONTAINER = 'c'.repeat(64);
const UNSEALED = {
  env: 'DEMO_KEY',
  reference: 'vault://user/demo',
  host: 'api.example.test',
  reason: 'the client pins its certificate',
};
const NO_PID = 2 ** 31 - 1;

function mcpServer(changes: Partial<McpServer>): SnapshotMcpServer {
  return { server: localServer(changes), authorization: null };
}

let bench: LocalApiBench;

beforeEach(async () => {
  bench = await LocalApiBench.start();
});

afterEach(() => bench.stop());

const account = (path: string, env = 'TOKEN'): HostBinding =>
  sampleBinding({
    id: `bnd_${path}`,
    credential: { owner: 'personal', path },
    emit: { mechanism: 'sentinel-swap', sentinel: `placeholder-of-${path}`, env },
  });

const use = (path: string): object => ({ use_secrets: [{ reference: `vault://${path}`, by: 'option' }] });

describe('a session with a sandbox', () => {
  it("names the proxy's address for its container", async () => {
    const { id, token, body } = await bench.createSession({ sandbox: sandboxInput() });
    expect(body).toMatchObject({
      proxy_url: `http://${id}:${token}@127.0.0.1:7421`,
      listener: 'namespace',
      listener_port: 7421,
    });
    bench.listener = ok({ listener: 'gateway', address: '172.17.0.1', port: 9100 });
    const other = await bench.createSession({ sandbox: sandboxInput() });
    expect(other.body).toMatchObject({
      proxy_url: `http://${other.id}:${other.token}@172.17.0.1:9100`,
      listener: 'gateway',
      listener_port: 9100,
    });
  });

  it('keeps the named MCP servers by id, and shows their names', async () => {
    bench.mcpServers = [mcpServer({ id: 'mcp_1', name: 'files' }), mcpServer({ id: 'mcp_2', name: 'issues' })];
    const { id } = await bench.createSession({ sandbox: sandboxInput(), mcp_servers: ['issues', 'mcp_1'] });
    expect(bench.sessions.get(id)?.mcpServers).toEqual(['mcp_2', 'mcp_1']);
    bench.mcpServers = [mcpServer({ id: 'mcp_3', name: 'issues' }), mcpServer({ id: 'mcp_1', name: 'files' })];
    expect((await bench.call('GET', `${SESSIONS}/${id}`)).body).toMatchObject({
      mcp_servers: [
        { id: 'mcp_2', name: null },
        { id: 'mcp_1', name: 'files' },
      ],
    });
  });

  it.each([
    [[mcpServer({ name: 'issues' })], 'invalid_input', 'mcp_servers: "isues" is no MCP server: did you mean "issues"?'],
    [null, 'control_plane_unavailable', 'mcp_servers: they are not known yet'],
  ] as const)('is not created with a server that does not exist among %j', async (servers, code, message) => {
    bench.mcpServers = servers;
    const reply = await bench.call('POST', SESSIONS, { mcp_servers: ['isues'] });
    expect(reply).toMatchObject({ code, body: { error: { message } } });
    expect(bench.sessions.count).toBe(0);
  });

  it('is not created if its egress mode is not possible', async () => {
    bench.listener = err(reachFailure('egress_unavailable', 'needs root'));
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput({ egress: 'sealed' }) });
    expect([reply.status, reply.code, bench.sessions.count]).toEqual([409, 'egress_unavailable', 0]);
  });

  it.each([
    ['no list, if it is open', { sandbox: sandboxInput() }, null],
    ['no list, if it may reach all public hosts', { sandbox: sandboxInput({ egress: 'sealed,public' }) }, null],
    ['an empty list, if it is sealed', { sandbox: sandboxInput({ egress: 'sealed' }) }, []],
    ['no list, if it has no sandbox', {}, null],
    [
      'the given hosts',
      {
        sandbox: sandboxInput({ egress: 'sealed' }),
        allowed_hosts: ['*.A.test', 'b.test.'],
        named_hosts: ['C.test'],
      },
      ['c.test', '*.a.test', 'b.test'],
    ],
    ['the given hosts, without a sandbox too', { allowed_hosts: ['b.test'] }, ['b.test']],
    [
      'every host, if it only names private ones',
      { sandbox: sandboxInput({ egress: 'sealed,public' }), named_hosts: ['b.test'] },
      null,
    ],
  ] as const)('allows %s', async (_what, body, expected) => {
    const { id } = await bench.createSession(body);
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({ allowed_hosts: expected });
    const session = bench.sessions.get(id);
    expect(session?.allowed?.patterns.length ?? null).toBe(expected?.length ?? null);
    expect([...(session?.named ?? [])]).toEqual(
      'named_hosts' in body ? body.named_hosts.map((host) => host.toLowerCase()) : [],
    );
    expect(session?.sealed).toBe(
      'sandbox' in body && body.sandbox !== undefined && JSON.stringify(body.sandbox).includes('sealed'),
    );
  });

  it.each(['open', 'sealed', 'sealed,public'])('has its hosts for plain http, which it shows: %s', async (egress) => {
    const lists = { plain_http_hosts: ['*.B.test'], plain_http_named: ['C.test'] };
    const { id } = await bench.createSession({ sandbox: sandboxInput({ egress }), ...lists });
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({ plain_http_hosts: ['c.test', '*.b.test'] });
    const session = bench.sessions.get(id);
    expect(session?.plainHttp?.named).toEqual(new Set(['c.test']));
    expect(session?.plainHttp?.allowed.patterns).toHaveLength(2);
    expect(session?.allowed?.patterns.length ?? 0).toBe(0);
    const reach = bench.sink.events.flatMap(({ data }) => data['svc.reach.hosts'] ?? []);
    expect(reach.includes('http://c.test')).toBe(egress === 'sealed');
  });

  it.each(['open', 'sealed', 'sealed,public'])('has its hosts at other ports, which it shows: %s', async (egress) => {
    const lists = { other_port_hosts: ['*.B.test:8443'], other_port_named: ['C.test:8443'] };
    const { id } = await bench.createSession({ sandbox: sandboxInput({ egress }), ...lists });
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({ other_port_hosts: ['c.test:8443', '*.b.test:8443'] });
    const session = bench.sessions.get(id);
    expect(session?.named).toEqual(new Set(['c.test:8443']));
    expect(session?.otherPorts?.patterns).toHaveLength(2);
    expect(session?.allowed?.patterns.length ?? null).toBe(egress === 'sealed' ? 0 : null);
    const reach = bench.sink.events.flatMap(({ data }) => data['svc.reach.hosts'] ?? []);
    expect(reach.includes('c.test:8443')).toBe(egress === 'sealed');
  });

  it.each([
    ['a list that its egress ignores', { sandbox: sandboxInput(), allowed_hosts: ['a.test'] }],
    ['an empty list that its egress ignores', { sandbox: sandboxInput({ egress: 'sealed,public' }), named_hosts: [] }],
    [
      'a list beside the names that its egress takes',
      { sandbox: sandboxInput({ egress: 'sealed,public' }), allowed_hosts: ['a.test'], named_hosts: ['b.test'] },
    ],
    [
      'an unsealed credential for a host that it cannot reach',
      { sandbox: sandboxInput({ egress: 'sealed', unsealed: [UNSEALED] }), allowed_hosts: [`x.${UNSEALED.host}`] },
    ],
    ['every host', { allowed_hosts: ['*'] }],
    ['a wildcard among the typed hosts', { named_hosts: ['*.a.test'] }],
    ['a self-test that reaches hosts', { self_test: true, allowed_hosts: ['a.test'] }],
    ['a self-test that sends plain requests', { self_test: true, plain_http_named: ['a.test'] }],
    ['every host for plain http', { plain_http_hosts: ['*'] }],
    ['a wildcard among the hosts that were typed for plain http', { plain_http_named: ['*.a.test'] }],
    [
      'a plan that sends plain requests',
      { sandbox: sandboxInput({ egress: 'sealed' }), plan: { lock: 'x' }, plain_http_hosts: ['a.test'] },
    ],
    ['a port for plain http', { plain_http_hosts: ['a.test:8080'] }],
    ['a host on port 443 among those at other ports', { other_port_named: ['a.test:443'] }],
    ['a self-test that reaches other ports', { self_test: true, other_port_named: ['a.test:8443'] }],
    [
      'a plan that reaches other ports',
      { sandbox: sandboxInput({ egress: 'sealed' }), plan: { lock: 'x' }, other_port_hosts: ['a.test:8443'] },
    ],
    ['a self-test in a container', { self_test: true, sandbox: sandboxInput() }],
    ['a self-test with a credential', { self_test: true, kept_env: [{ env: 'KEY', reference: 'vault://user/demo' }] }],
    ['a self-test with MCP servers', { self_test: true, mcp_servers: ['issues'] }],
    ['a plan that reaches every host', { sandbox: sandboxInput({ egress: 'sealed,public' }), plan: { lock: 'x' } }],
    [
      'a plan with hosts besides its lock',
      { sandbox: sandboxInput({ egress: 'sealed' }), plan: { lock: 'x' }, allowed_hosts: [] },
    ],
  ])('is not created with %s', async (_what, body) => {
    const reply = await bench.call('POST', SESSIONS, body);
    expect([reply.status, reply.code, bench.sessions.count]).toEqual([400, 'invalid_input', 0]);
  });

  it('is no self-test with a choice of accounts', async () => {
    bench.bindings = [account('user/work')];
    const reply = await bench.call('POST', SESSIONS, { self_test: true, ...use('user/work') });
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('self_test: it reaches nothing')]);
  });

  it('that may reach only some hosts records which ones it could reach at its start', async () => {
    const connector = sampleConnector([sampleOperation({ hosts: ['up.connector.test'] })], {
      hosts: ['connector.test'],
    });
    bench.useConnectors([connector]);
    bench.bindings = [account('user/work'), sampleBinding({ host: '*.bound.test' })];
    const wanted = {
      sandbox: sandboxInput({ egress: 'sealed' }),
      allowed_hosts: ['b.test', 'a.test'],
      named_hosts: [],
    };
    const { id } = await bench.createSession(wanted);
    const bound = bench.bindings.map(({ host }) => host);
    const data = { 'svc.reach.enforced': true, 'svc.reach.egress': 'sealed' };
    const hosts = ['b.test', 'a.test', 'up.connector.test', ...bound].toSorted();
    const event = { type: 'sandbox.proxy.session_reach', session_id: id, actor: 'session' };
    expect(bench.sink.events).toEqual([{ ...event, data: { 'svc.reach.hosts': hosts, ...data } }]);
    bench.isStored = false;
    bench.bindings = [];
    const run = await bench.createSession({ allowed_hosts: ['a.test'] });
    expect(bench.sink.events.slice(1)).toEqual([
      {
        ...event,
        session_id: run.id,
        data: { 'svc.reach.hosts': ['a.test'], 'svc.reach.enforced': true, 'svc.reach.egress': 'open' },
      },
    ]);
    await bench.createSession();
    await bench.createSession({ plain_http_hosts: ['a.test'] });
    await bench.createSession({ sandbox: sandboxInput({ egress: 'sealed,public' }) });
    expect(bench.sink.events).toHaveLength(2);
  });

  it('records at most a thousand hosts of a session, and how many more there are', async () => {
    bench.bindings = Array.from({ length: 1_500 }, (_, at) => sampleBinding({ host: `h${1_000 + at}.test` }));
    await bench.createSession({ sandbox: sandboxInput({ egress: 'sealed' }) });
    const hosts = bench.sink.events[0]?.data['svc.reach.hosts'] ?? [];
    expect([hosts.length, hosts[0], hosts.at(-1)]).toEqual([1_000, 'h1000.test', '… and 501 more']);
  });

  it('uses the chosen account of a host, hands out its placeholder alone, and shows who chose it', async () => {
    const elsewhere = sampleBinding({
      id: 'bnd_b',
      host: 'b.example.test',
      emit: { mechanism: 'sentinel-swap', sentinel: 'placeholder-of-b', env: 'TOKEN' },
    });
    bench.bindings = [elsewhere, account('user/home'), account('user/work')];
    const { id, body } = await bench.createSession(use('user/work'));
    expect(body).toMatchObject({ sentinels: [{ env: 'TOKEN', value: 'placeholder-of-user/work' }] });
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({ used_secrets: [{ reference: 'vault://user/work', by: 'option', from: null }] });
    const decision = { pattern: 'api.example.test', owner: 'personal', paths: ['user/work'], by: 'option' };
    expect(bench.sessions.get(id)?.choice).toMatchObject({ decisions: [decision], exceptions: [] });
    bench.bindings = [account('user/home', 'HOME_TOKEN'), account('user/work')];
    const { body: second } = await bench.createSession(use('user/work'));
    expect(second).toMatchObject({ sentinels: [{ env: 'TOKEN' }] });
    expect(JSON.stringify(second)).not.toContain('HOME_TOKEN');
    for (const wrong of [use('user/wrok'), { ...use('user/work'), plan: { lock: 'x' } }]) {
      const reply = await bench.call('POST', SESSIONS, wrong);
      expect([reply.status, reply.code]).toEqual([400, 'invalid_input']);
    }
  });

  it("may have a sandbox of its launcher's, with an owner and nothing else that runs it", async () => {
    const host_sandbox = { mode: 'bubblewrap', egress: 'sealed', folder: '4711-12345' };
    const owner = identify(process.pid);
    const { id } = await bench.createSession({ host_sandbox, owner, named_hosts: ['api.example.test'] });
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({
      host_sandbox: { mode: 'bubblewrap', egress: 'sealed' },
      sandbox: null,
      allowed_hosts: ['api.example.test'],
    });
    const wrong = [
      { host_sandbox },
      { host_sandbox, owner, sandbox: sandboxInput({ egress: 'sealed' }) },
      { host_sandbox, owner, self_test: true },
      { host_sandbox: { ...host_sandbox, folder: '../sessions' }, owner },
      { host_sandbox: { ...host_sandbox, egress: 'open' }, owner, allowed_hosts: ['api.example.test'] },
      { every_mcp_server: true, owner },
      { every_mcp_server: true, sandbox: sandboxInput({ egress: 'sealed' }) },
      { every_mcp_server: true, host_sandbox, owner, mcp_servers: ['files'] },
    ];
    for (const body of wrong) {
      const reply = await bench.call('POST', SESSIONS, body);
      expect([reply.status, reply.code]).toEqual([400, 'invalid_input']);
    }
  });

  it('of an agent with the gateway may use every MCP server', async () => {
    const host_sandbox = { mode: 'bubblewrap', egress: 'sealed', folder: '4711-12346' };
    const asked = { host_sandbox, owner: identify(process.pid), every_mcp_server: true };
    const { id } = await bench.createSession(asked);
    expect(bench.sessions.get(id)?.mcpServers).toBeNull();
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toMatchObject({ every_mcp_server: true, mcp_servers: [] });
  });

  it('is shown with its sandbox, without tokens or paths', async () => {
    const sandbox = sandboxInput({ egress: 'sealed', unsealed: [UNSEALED] });
    const named_hosts = [UNSEALED.host];
    const { id, token } = await bench.createSession({
      name: 'demo',
      sandbox,
      named_hosts,
      owner: identify(process.pid),
    });
    await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: CONTAINER });
    const shown = await bench.call('GET', `${SESSIONS}/${id}`);
    expect(shown.body).toEqual({
      session_id: id,
      host_sandbox: null,
      name: 'demo',
      state: 'live',
      created_at: '2026-01-02T03:04:05.678Z',
      expires_at: '2026-01-03T03:04:05.678Z',
      renews: true,
      open_tunnels: 0,
      owner_alive: true,
      owner: identify(process.pid),
      plan: null,
      mcp_servers: [],
      every_mcp_server: false,
      sandbox: {
        mode: 'docker',
        image: 'agent-tools:1',
        image_id: expect.any(String),
        container_id: CONTAINER,
        runtime: { program: 'docker', endpoint: 'unix:///var/run/docker.sock' },
        detached: false,
        egress: 'sealed',
        unsealed: [UNSEALED],
      },
      allowed_hosts: [UNSEALED.host],
      plain_http_hosts: [],
      other_port_hosts: [],
      used_secrets: [],
      scopes: [],
      requests_per_minute: null,
      requests_per_day: null,
      bytes_per_day: null,
      masked_replies: [],
    });
    expect(shown.text).not.toContain(token);
    expect((await bench.call('GET', SESSIONS)).body).toEqual({ items: [shown.body], next_cursor: null });
  });

  it('shows how many of its requests may get a credential, and refuses what is no limit', async () => {
    const limits = { requests_per_minute: 60, requests_per_day: 2000, bytes_per_day: 500 };
    const { id } = await bench.createSession(limits);
    expect((await bench.call('GET', `${SESSIONS}/${id}`)).body).toMatchObject(limits);
    expect(bench.sessions.get(id)?.limits).toEqual({ requestsPerMinute: 60, requestsPerDay: 2000, bytesPerDay: 500 });
    const refused = await bench.call('POST', SESSIONS, { requests_per_minute: 0 });
    expect([refused.status, refused.code]).toEqual([400, 'invalid_input']);
    expect(refused.text).toContain('requests_per_minute: must be at least 1');
  });

  it('is refused with an owner process that does not run', async () => {
    const reply = await bench.call('POST', SESSIONS, { owner: { pid: NO_PID, started: null } });
    expect([reply.status, reply.code, bench.sessions.count]).toEqual([400, 'invalid_input', 0]);
    expect(reply.text).toContain('owner: ');
  });

  it.each([
    ['an unknown mode', { mode: 'lxc' }],
    ['a remote engine', { runtime: { program: 'docker', endpoint: 'tcp://10.0.0.1:2375' } }],
    ['the endpoint of another engine', { runtime: { program: 'podman', endpoint: 'unix:///var/run/docker.sock' } }],
    ['podman elsewhere', { runtime: { program: 'podman', endpoint: 'podman:ssh://x' } }],
    ['another program', { runtime: { program: '/bin/sh', endpoint: 'unix:///var/run/docker.sock' } }],
    ['an image that is not an id', { image_id: 'agent-tools:1' }],
    ['an image with a line break', { image: 'a\nb' }],
    ['another egress', { egress: 'closed' }],
    ['egress modes in another order', { egress: 'public,sealed' }],
    ['an unsealed credential without a reason', { unsealed: [{ ...UNSEALED, reason: '  ' }] }],
    ['an unsealed credential for a pattern', { unsealed: [{ ...UNSEALED, host: '*.example.test' }] }],
    ['an unsealed credential that is a value', { unsealed: [{ ...UNSEALED, reference: 'ghp_secret' }] }],
    ['an unsealed credential without a variable', { unsealed: [{ ...UNSEALED, env: 'A=B' }] }],
    ['an unknown field', { network: 'host' }],
  ])('is refused with %s', async (_what, change) => {
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput(change) });
    expect([reply.status, reply.code, bench.sessions.count]).toEqual([400, 'invalid_input', 0]);
    expect(reply.text).not.toContain('ghp_secret');
  });
});

describe('the container of a session', () => {
  it('is recorded in a file, so that it is found after a crash', async () => {
    const { id } = await bench.createSession({ sandbox: sandboxInput() });
    const put = await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: CONTAINER });
    expect(put.status).toBe(204);
    const file = join(bench.home, 'sessions', id, 'container.json');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ session_id: id, container_id: CONTAINER });
  });

  it.each(['c'.repeat(63), 'C'.repeat(64), 'my-container', '../../etc', '', `${'c'.repeat(64)}\n`])(
    'is refused with the id %j',
    async (containerId) => {
      const { id } = await bench.createSession({ sandbox: sandboxInput() });
      const put = await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: containerId });
      expect([put.status, put.code]).toEqual([400, 'invalid_input']);
    },
  );

  it('cannot be changed, and a session without a sandbox has none', async () => {
    const { id } = await bench.createSession({ sandbox: sandboxInput() });
    await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: CONTAINER });
    const other = await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: 'd'.repeat(64) });
    expect(other.code).toBe('conflict');
    const plain = await bench.createSession();
    const put = await bench.call('PUT', `${SESSIONS}/${plain.id}/container`, { container_id: CONTAINER });
    expect(put.code).toBe('conflict');
    expect(existsSync(join(bench.home, 'sessions', plain.id, 'container.json'))).toBe(false);
  });

  it.each(['..%2f..%2fetc', '%2e%2e', `ses_${'0'.repeat(26)}`, 'ses_%00'])('of the session %s is 404', async (id) => {
    const put = await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: CONTAINER });
    expect(put.status).toBe(404);
  });
});

async function withContainer(change: object = {}): Promise<string> {
  const { id } = await bench.createSession({ sandbox: sandboxInput(change), owner: identify(process.pid) });
  await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: CONTAINER });
  return id;
}

describe('the listener in a container', () => {
  it('is opened for the process that the caller names', async () => {
    const id = await withContainer();
    const reply = await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid: 4711, relay: true });
    expect([reply.status, reply.body]).toEqual([201, { listener: 'namespace', listener_port: 7421, relay_port: 7422 }]);
    expect(bench.pids).toEqual([4711]);
    expect(bench.sessions.get(id)?.owner).toEqual(identify(process.pid));
  });

  it('lets a detached session outlive its launcher', async () => {
    const id = await withContainer({ detached: true });
    await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid: 4711 });
    expect(bench.sessions.get(id)?.owner).toBeNull();
  });

  it('is refused for a process outside the container, and the detached session stays bound to its launcher', async () => {
    const id = await withContainer({ detached: true });
    bench.opening = err(reachFailure('not_the_container', 'another process'));
    const reply = await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid: 1 });
    expect([reply.status, reply.code]).toEqual([409, 'not_the_container']);
    expect(bench.sessions.get(id)?.owner).not.toBeNull();
  });

  it('is refused before the container is known, and a second time', async () => {
    const { id } = await bench.createSession({ sandbox: sandboxInput() });
    expect((await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid: 4711 })).code).toBe('conflict');
    const other = await withContainer();
    const session = bench.sessions.get(other);
    if (session !== null) session.container = { pid: 4711, started: '1' };
    expect((await bench.call('POST', `${SESSIONS}/${other}/listener`, { pid: 4711 })).code).toBe('conflict');
    expect(bench.pids).toEqual([]);
  });

  it.each([0, -1, 1.5, '1', 2 ** 40, null])('is refused for the process id %j', async (pid) => {
    const id = await withContainer();
    expect((await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid })).code).toBe('invalid_input');
  });
});

describe('a launch without the proxy', () => {
  it('is recorded and flushed before the reply', async () => {
    const body = { reason: 'preflight_failed', mode: 'docker', image: 'bare:1' };
    const reply = await bench.call('POST', '/v1/sandbox-proxy/disabled', body);
    expect([reply.status, bench.flushed]).toEqual([204, 1]);
    expect(bench.sink.events).toEqual([
      {
        type: 'sandbox.proxy.disabled',
        session_id: null,
        actor: null,
        data: { 'svc.proxy.reason': 'preflight_failed', 'svc.sandbox.mode': 'docker', 'svc.sandbox.image': 'bare:1' },
      },
    ]);
  });

  it('is refused if it cannot be recorded', async () => {
    bench.sink.accepting = false;
    const reply = await bench.call('POST', '/v1/sandbox-proxy/disabled', { reason: 'user_opt_out', mode: 'none' });
    expect([reply.status, reply.code, bench.sink.events]).toEqual([503, 'audit_unavailable', []]);
  });

  it.each([
    { reason: 'because', mode: 'docker' },
    { reason: 'user_opt_out', mode: 'vm' },
    { reason: 'user_opt_out' },
    { reason: 'user_opt_out', mode: 'docker', image: '' },
  ])('is refused as %j', async (body) => {
    const reply = await bench.call('POST', '/v1/sandbox-proxy/disabled', body);
    expect([reply.code, bench.sink.events]).toEqual(['invalid_input', []]);
  });
});

describe('an unsealed credential', () => {
  const path = '/v1/sandbox-proxy/unsealed';

  it('is recorded with its reference, host and reason, shown in its session, and released', async () => {
    const { id } = await bench.createSession({ sandbox: sandboxInput() });
    bench.released = ok(new Secret('s3cret'));
    const reply = await bench.call('POST', path, { session_id: id, ...UNSEALED });
    expect([reply.status, reply.body]).toEqual([200, { value: 's3cret' }]);
    expect(bench.asked).toEqual([{ path: 'user/demo', host: UNSEALED.host, reason: UNSEALED.reason }]);
    expect(bench.sink.events).toEqual([
      {
        type: 'sandbox.proxy.credential_unsealed',
        session_id: id,
        actor: 'session',
        data: {
          'svc.proxy.credential_ref': UNSEALED.reference,
          'svc.proxy.upstream.host': UNSEALED.host,
          'svc.proxy.reason': UNSEALED.reason,
          'svc.sandbox.image': 'agent-tools:1',
        },
      },
    ]);
    expect((await bench.call('GET', `${SESSIONS}/${id}`)).body).toMatchObject({ sandbox: { unsealed: [UNSEALED] } });
  });

  it('is not released if it cannot be recorded, and the control plane is not asked', async () => {
    const { id } = await bench.createSession();
    bench.released = ok(new Secret('s3cret'));
    bench.sink.accepting = false;
    const reply = await bench.call('POST', path, { session_id: id, ...UNSEALED });
    expect([reply.code, bench.asked]).toEqual(['audit_unavailable', []]);
  });

  it('is an error if not stored, and nothing is recorded', async () => {
    const { id } = await bench.createSession();
    const reply = await bench.call('POST', path, { session_id: id, ...UNSEALED });
    expect([reply.code, bench.sink.events]).toEqual(['credential_unavailable', []]);
    bench.released = err(refusal('control_plane_unavailable', 'away'));
    expect((await bench.call('POST', path, { session_id: id, ...UNSEALED })).code).toBe('control_plane_unavailable');
  });

  it('is refused for a session that has ended', async () => {
    const { id } = await bench.createSession();
    bench.released = ok(new Secret('s3cret'));
    await bench.sessions.end(id);
    expect((await bench.call('POST', path, { session_id: id, ...UNSEALED })).code).toBe('not_found');
    expect(bench.asked).toEqual([]);
  });

  it.each(['vault://mcp-servers/x/Y', 'vault://', 'user/demo', 'vault://../x'])(
    'is refused with a reference like %s',
    async (reference) => {
      const { id } = await bench.createSession();
      const reply = await bench.call('POST', path, { session_id: id, ...UNSEALED, reference });
      expect([reply.code, bench.asked]).toEqual(['invalid_input', []]);
    },
  );
});

describe('authentication', () => {
  const hostOnly = [
    ['POST', SESSIONS],
    ['GET', `${SESSIONS}/ses_x`],
    ['DELETE', `${SESSIONS}/ses_x`],
    ['PUT', `${SESSIONS}/ses_x/container`],
    ['POST', `${SESSIONS}/ses_x/listener`],
    ['POST', '/v1/sandbox-proxy/disabled'],
    ['POST', '/v1/sandbox-proxy/unsealed'],
    ['POST', '/v1/sandbox-proxy/plan-locks'],
    ['POST', '/v1/sandbox-proxy/step-scopes'],
    ['DELETE', '/v1/sandbox-proxy/step-scopes/scp_x'],
  ] as const;

  it.each(hostOnly)("%s %s refuses a session's token and no token", async (method, path) => {
    const { token } = await bench.createSession();
    expect(await bench.call(method, path, undefined, token)).toMatchObject({
      status: 403,
      code: 'host_token_required',
    });
    expect(await bench.call(method, path, undefined, null)).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(bench.sink.events).toEqual([]);
  });

  it("the host token and other sessions' tokens are unknown inside a container", async () => {
    const one = await bench.createSession({ sandbox: sandboxInput() });
    const two = await bench.createSession({ sandbox: sandboxInput() });
    const session = bench.sessions.get(one.id);
    if (session === null) throw new Error('no session');
    const from = (path: string, token: string) => bench.callFromContainer(session, path, token);
    expect((await from('/v1/health', one.token)).body).toMatchObject({ session: { session_id: one.id } });
    expect((await from(SESSIONS, one.token)).code).toBe('host_token_required');
    expect((await from('/v1/health', two.token)).code).toBe('unauthenticated');
    expect((await from('/v1/health', HOST_TOKEN)).code).toBe('unauthenticated');
    expect((await from(SESSIONS, HOST_TOKEN)).code).toBe('unauthenticated');
    expect((await from('/metrics', HOST_TOKEN)).code).toBe('unauthenticated');
  });
});

describe('a session for a login', () => {
  const LOGIN = { id: 'plg_00000000000000000000000000', placeholder: 'p'.repeat(60) };
  const OWNER = identify(process.pid);
  const open = () => ({
    id: LOGIN.id,
    program: 'claude',
    tokenUrl: 'https://auth.example.test/token',
    clientId: 'client-of-a-test',
    grants: ['authorization_code'] as const,
    key: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' } as const,
    expiresAt: bench.clock.now() + 600_000,
  });

  it('captures at the endpoint that the control plane names, and ends with the login', async () => {
    bench.openLogin = ok(open());
    const created = await bench.call('POST', SESSIONS, { login: LOGIN, owner: OWNER, ttl_seconds: 86_400 });
    expect(created.status).toBe(201);
    const session = bench.sessions.list()[0];
    expect(session?.login).toMatchObject({ host: 'auth.example.test', path: '/token', state: 'waiting' });
    expect(session?.expiresAt).toBe(bench.clock.now() + 600_000);
    const shown = await bench.call('GET', `${SESSIONS}/${session?.id}`);
    expect(shown.body).toMatchObject({ login: { id: LOGIN.id, state: 'waiting' } });
  });

  it('lasts half an hour at most, also if the clock here is slow', async () => {
    bench.openLogin = ok({ ...open(), expiresAt: bench.clock.now() + 86_400_000 });
    await bench.call('POST', SESSIONS, { login: LOGIN, owner: OWNER, ttl_seconds: 86_400 });
    expect(bench.sessions.list()[0]?.expiresAt).toBe(bench.clock.now() + 1_800_000);
  });

  it.each([
    ['without an owner', { login: LOGIN }],
    ['with a container', { login: LOGIN, owner: OWNER, sandbox: sandboxInput() }],
    [
      'with a placeholder that could be in a request by chance',
      { login: { ...LOGIN, placeholder: 'p' }, owner: OWNER },
    ],
  ])('is not made %s', async (_what, body) => {
    bench.openLogin = ok(open());
    expect(await bench.call('POST', SESSIONS, body)).toMatchObject({ status: 400 });
    expect(bench.sessions.list()).toEqual([]);
  });

  it('is not made if no login is open', async () => {
    expect(await bench.call('POST', SESSIONS, { login: LOGIN, owner: OWNER })).toMatchObject({ status: 404 });
  });

  it('is not made for a login that another session was started for', async () => {
    bench.openLogin = ok(open());
    const ask = () => bench.call('POST', SESSIONS, { login: LOGIN, owner: OWNER });
    const both = await Promise.all([ask(), ask()]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409]);
    expect(await ask()).toMatchObject({ status: 409 });
    expect(bench.sessions.list()).toHaveLength(1);
  });

  it('is not made with the token of a session', async () => {
    bench.openLogin = ok(open());
    const { token } = await bench.createSession({});
    const made = await bench.call('POST', SESSIONS, { login: LOGIN, owner: OWNER }, token);
    expect(made.status).toBe(403);
  });
});
