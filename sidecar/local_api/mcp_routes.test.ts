import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { identify } from '../../machine/process_identity.ts';
import { localServer, remoteServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { type McpHealthState, mcpOAuthRef, type McpServer } from '../../shared/model/mcp_server.ts';
import { readSnapshotMcpServers } from '../../shared/wire/mcp/mcp_servers.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { consentOf } from '../mcp/server_directory.ts';
import { reachFailure } from '../reach/reach_failure.ts';
import { HOST_TOKEN, LocalApiBench, sandboxInput } from '../testing/local_api_bench.ts';
import { type McpBench, mcpOptions } from '../testing/mcp_options.ts';
import { createLocalApi } from './app.ts';

let bench: LocalApiBench;
let mcp: McpBench;
let api: ReturnType<typeof createLocalApi>;

beforeEach(async () => {
  bench = await LocalApiBench.start();
  mcp = mcpOptions(bench);
  api = createLocalApi({ ...bench.options, mcp });
});
afterEach(() => bench.stop());

const TOKEN_PATH = `mcp-servers/${SERVER_ID}/TOKEN`;
const SECRET = 'the-value-of-the-token';
const withToken = localServer({ env: { TOKEN: `vault://${TOKEN_PATH}`, MODE: 'quiet' } });
const changed = localServer({ ...withToken, command: ['npx', '-y', 'other-mcp@1.0.0'], revision: 2 });
const REMOTE_WITH_TOKEN = remoteServer({ headers: { Authorization: `Bearer vault://${TOKEN_PATH}` } });
const GATEWAY = { id: 'gateway-0123456789', kind: 'stdio', pid: 1 } as const;

const IMAGE = `sha256:${'a'.repeat(64)}`;

const anyObject = z.record(z.string(), z.unknown());
const refusalBody = z.object({ error: z.object({ code: z.string() }) });

interface Reply {
  readonly status: number;
  readonly code: string;
  readonly body: Record<string, unknown>;
}

async function call(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Reply> {
  const headers = { host: '127.0.0.1:9100', authorization: `Bearer ${HOST_TOKEN}` };
  const more = { ...(body && { body: JSON.stringify(body) }), ...(signal && { signal }) };
  const reply = await api.request(`http://127.0.0.1:9100${path}`, { method, headers, ...more });
  const text = await reply.text();
  const json = anyObject.parse(text === '' ? {} : JSON.parse(text));
  return { status: reply.status, code: refusalBody.safeParse(json).data?.error.code ?? '', body: json };
}

function use(server: McpServer, authorization: 'ready' | 'authorisation_required' | null = null): void {
  mcp.use([{ server, authorization }]);
}

const hashOf = (server: McpServer): string => consentOf(server)?.hash ?? '';
const consent = (server: McpServer) =>
  call('POST', `/v1/mcp/servers/${SERVER_ID}/consent`, { consent_hash: hashOf(server) });
const consentTo = (server: McpServer, more: object = {}) =>
  call('POST', `/v1/mcp/servers/${SERVER_ID}/consent`, { consent_hash: hashOf(server), ...more });
const allow = (...hosts: string[]) => call('POST', `/v1/mcp/servers/${SERVER_ID}/hosts`, { allowed_hosts: hosts });
const sentinel = (host: string, env: string) =>
  sampleBinding({
    id: `bnd_${env}`,
    host,
    emit: { mechanism: 'sentinel-swap', sentinel: `placeholder-of-${env}`, env },
  });
const release = (hash: string | null, url: string | null = null) =>
  call('POST', `/v1/mcp/servers/${SERVER_ID}/release`, { consent_hash: hash, url });
const store = (version = '1') => mcp.credentials.set({ owner: 'personal', path: TOKEN_PATH }, SECRET, version);

async function list(query = ''): Promise<{ readonly version: string; readonly first: Record<string, unknown> }> {
  const { body } = await call('GET', `/v1/mcp/servers${query}`);
  const [first] = z.array(anyObject).parse(body['items']);
  return { version: String(body['version']), first: first ?? {} };
}

const tell = (...events: object[]) => call('POST', '/v1/mcp/events', { gateway: GATEWAY, events });
const ask = (more: object = {}) =>
  call('POST', '/v1/mcp/approvals', {
    server_id: SERVER_ID,
    tool: 'delete_file',
    arguments_hash: 'a'.repeat(64),
    summary: 'demo: delete_file (path)',
    session_id: null,
    ...more,
  });

const event = (number: number, more: object = {}) => ({
  number,
  type: 'mcp.tool.called',
  server_id: SERVER_ID,
  server: 'demo',
  registry_id: null,
  version: '1.0.0',
  session_id: null,
  tool: 'echo',
  outcome: 'ok',
  duration_ms: 12.6,
  ...more,
});

describe('tools that a gateway has seen', () => {
  const tools = [{ name: 'read', description: 'Reads.' }];

  test('are passed on, and answered once the list has what the policy says then', async () => {
    use(localServer());
    const body = { server_id: SERVER_ID, tools };
    expect((await call('POST', '/v1/mcp/tools', body)).status).toBe(204);
    const before = await list();
    mcp.reviewed = new Map([[SERVER_ID, ['a'.repeat(64)]]]);
    await call('POST', '/v1/mcp/tools', body);
    expect(mcp.reports).toEqual([body, body]);
    const after = await list();
    expect([before.first['reviewed'], after.first['reviewed']]).toEqual([null, ['a'.repeat(64)]]);
    expect(after.version).not.toBe(before.version);
  });

  test('of a server that this machine does not have are refused', async () => {
    const body = { server_id: `mcp_${'0'.repeat(26)}`, tools };
    expect((await call('POST', '/v1/mcp/tools', body)).status).toBe(404);
    expect(mcp.reports).toEqual([]);
  });
});

describe('the MCP servers of this machine', () => {
  test("are listed as in the snapshot, with this machine's state", async () => {
    use(withToken);
    const { first } = await list();
    expect(readSnapshotMcpServers([first['server']])).toEqual({
      servers: [{ server: withToken, authorization: null }],
      problems: [],
    });
    expect(first).toMatchObject({
      consent: 'needed',
      consent_hash: hashOf(withToken),
      last_consent: null,
      missing: [TOKEN_PATH],
      health: { state: 'needs_consent', restarts: null, tools: null, gateways: 0 },
    });
  });

  test('need no consent if they are remote', async () => {
    use(remoteServer());
    expect((await list()).first).toMatchObject({ consent: 'not_needed', consent_hash: null });
  });

  test('are unknown before there is a policy, which is not an empty list', async () => {
    mcp.use(null);
    expect(await call('GET', '/v1/mcp/servers')).toMatchObject({ status: 503, code: 'control_plane_unavailable' });
  });

  test.each([
    ['a consent', () => consent(withToken)],
    [
      'a consent that is taken back elsewhere',
      async () => rmSync(join(bench.home, 'mcp'), { recursive: true, force: true }),
    ],
    ['a changed configuration', async () => use(changed)],
    ['a removed server', async () => mcp.use([])],
    ['a stored credential', async () => (store(), use(withToken))],
    ['a credential replaced by another', async () => (store('2'), use(withToken))],
  ])('are listed again after %s, and not before', async (what, change) => {
    use(withToken);
    if (what.includes('taken back')) await consent(withToken);
    if (what.includes('in the place')) store('1');
    const { version } = await list();
    const next = list(`?wait=25&version=${version}`);
    expect(await Promise.race([next, new Promise((resolve) => setImmediate(() => resolve('waits')))])).toBe('waits');
    await change();
    if (what.includes('elsewhere')) use(withToken);
    expect((await next).version).not.toBe(version);
  });

  test('do not count a health report as news for a gateway', async () => {
    use(remoteServer());
    const { version } = await list();
    await report('running');
    expect((await list()).version).toBe(version);
  });
});

describe('consent to unchecked code', () => {
  const unknown = localServer({ command: ['erl', '-eval', 'x'] });
  const agree = (body: object) =>
    call('POST', `/v1/mcp/servers/${SERVER_ID}/consent`, { consent_hash: hashOf(unknown), ...body });

  test('needs an explicit confirmation, and applies to nothing else', async () => {
    use(unknown);
    expect(await agree({})).toMatchObject({ status: 403, code: 'unchecked_code' });
    expect(await agree({ unchecked: false })).toMatchObject({ status: 403, code: 'unchecked_code' });
    expect(await release(hashOf(unknown))).toMatchObject({ status: 403, code: 'consent_needed' });
    expect(await agree({ unchecked: true })).toMatchObject({ status: 204 });
    expect(await release(hashOf(unknown))).toMatchObject({ status: 200 });
    use({ ...unknown, command: ['erl', '-eval', 'y'] });
    expect(await release(hashOf({ ...unknown, command: ['erl', '-eval', 'y'] }))).toMatchObject({
      code: 'consent_needed',
    });
  });

  test('is requested again after an earlier consent without it', async () => {
    use(unknown);
    const { unchecked: _, ...before } = JSON.parse(consentOf(unknown)?.text ?? '{}');
    const text = JSON.stringify(before);
    const hash = createHash('sha256').update(text).digest('hex');
    await mcp.consents.give({ server_id: SERVER_ID, name: unknown.name, hash, text });
    expect((await list()).first).toMatchObject({ consent: 'needed', last_consent: { hash } });
    expect(await release(hash)).toMatchObject({ status: 403, code: 'consent_needed' });
    expect(await release(hashOf(unknown))).toMatchObject({ status: 403, code: 'consent_needed' });
  });
});

describe('a consent', () => {
  test('applies only to the configuration in force', async () => {
    use(withToken);
    expect(await consent(changed)).toMatchObject({ status: 409, code: 'conflict' });
    expect(await consent(withToken)).toMatchObject({ status: 204 });
    expect((await list()).first).toMatchObject({ consent: 'given' });
    use(changed);
    expect((await list()).first).toMatchObject({ consent: 'needed', last_consent: { hash: hashOf(withToken) } });
    use({ ...withToken, revision: 3, description: 'Told otherwise', tools: { allow: [], deny: [], approval: [] } });
    expect((await list()).first).toMatchObject({ consent: 'given' });
  });

  test('can be withdrawn, and is not needed for a remote server', async () => {
    use(withToken);
    await consent(withToken);
    expect((await call('DELETE', `/v1/mcp/servers/${SERVER_ID}/consent`)).status).toBe(204);
    expect((await list()).first).toMatchObject({ consent: 'needed' });
    expect((await call('DELETE', `/v1/mcp/servers/${SERVER_ID}/consent`)).status).toBe(404);
    use(remoteServer());
    expect(await consent(withToken)).toMatchObject({ code: 'conflict' });
  });

  test('to an unknown server is refused', async () => {
    expect(await consent(withToken)).toMatchObject({ status: 404 });
  });
});

describe("the image of a server's own docker run", () => {
  const own = localServer({ command: ['docker', 'run', '-i', 'acme/mcp:1.2'] });
  const OTHER = `sha256:${'b'.repeat(64)}`;

  test('is part of the consent, and a new one changes what a gateway has to act on', async () => {
    use(own);
    expect(await consentTo(own, { image: IMAGE })).toMatchObject({ status: 204 });
    const before = await list();
    expect(before.first).toMatchObject({ consent: 'given', image: IMAGE });
    await consentTo(own, { image: OTHER });
    const after = await list();
    expect(after.first).toMatchObject({ consent: 'given', image: OTHER });
    expect(after.version).not.toBe(before.version);
  });

  test.each([
    ['none', {}, 409],
    ['a tag', { image: 'acme/mcp:1.2' }, 400],
    ['a short id', { image: 'sha256:abc' }, 400],
  ])('has to be named by its id: %s', async (_, body, status) => {
    use(own);
    expect(await consentTo(own, body)).toMatchObject({ status });
    expect((await list()).first).toMatchObject({ consent: 'needed', image: null });
  });

  test('is asked about once if an earlier version recorded a consent without it', async () => {
    use(own);
    const { hash, text } = consentOf(own) ?? { hash: '', text: '' };
    await mcp.consents.give({ server_id: SERVER_ID, name: own.name, hash, text });
    expect((await list()).first).toMatchObject({ consent: 'needed', last_consent: { hash }, image: null });
    expect(await release(hash)).toMatchObject({ status: 403, code: 'consent_needed' });
    await consentTo(own, { image: IMAGE });
    expect((await list()).first).toMatchObject({ consent: 'given', image: IMAGE });
  });

  test('does not cover another tag, and is not kept for a server without one', async () => {
    use(own);
    await consentTo(own, { image: IMAGE });
    use(localServer({ command: ['docker', 'run', '-i', 'acme/mcp:1.3'] }));
    expect((await list()).first).toMatchObject({ consent: 'needed', image: IMAGE });
    use(localServer());
    await consentTo(localServer(), { image: IMAGE });
    expect((await list()).first).toMatchObject({ consent: 'given', image: null });
  });
});

describe('the hosts of a server in a container', () => {
  const boxed = localServer({ isolation: 'container' });

  test('are none at first, and change what a gateway has to act on', async () => {
    use(boxed);
    expect((await list()).first).toMatchObject({ allowed_hosts: null });
    await consentTo(boxed);
    const before = await list();
    expect(before.first).toMatchObject({ allowed_hosts: [], refused_hosts: [] });
    expect(await allow('b.test', '*.A.test', 'b.test')).toMatchObject({ status: 204 });
    const after = await list();
    expect(after.first).toMatchObject({ allowed_hosts: ['*.a.test', 'b.test'] });
    expect(after.version).not.toBe(before.version);
  });

  test('are kept by a new consent in the same isolation, and so is a network that was open', async () => {
    const other = localServer({ ...boxed, command: ['npx', '-y', 'other-mcp@1.0.0'] });
    use(boxed);
    await consentTo(boxed, { allowed_hosts: ['a.test'] });
    use(other);
    await consentTo(other);
    expect((await list()).first).toMatchObject({ allowed_hosts: ['a.test'] });
    await consentTo(other, { allowed_hosts: null });
    use(boxed);
    await consentTo(boxed);
    expect((await list()).first).toMatchObject({ allowed_hosts: null });
    expect(await allow('a.test')).toMatchObject({ status: 409, code: 'conflict' });
  });

  test('are a closed list again after another isolation, and none without a container', async () => {
    const plain = localServer();
    use(boxed);
    await consentTo(boxed, { allowed_hosts: null });
    use(plain);
    await consentTo(plain, { allowed_hosts: ['a.test'] });
    expect((await list()).first).toMatchObject({ allowed_hosts: null });
    use(boxed);
    await consentTo(boxed);
    expect((await list()).first).toMatchObject({ allowed_hosts: [] });
  });

  test("are none for a configuration's own container", async () => {
    const own = localServer({ isolation: 'container', command: ['docker', 'run', '-i', 'acme/mcp:1.2'] });
    use(own);
    await consentTo(own, { allowed_hosts: ['a.test'], image: IMAGE });
    expect((await list()).first).toMatchObject({ allowed_hosts: null });
  });

  test('that were refused are listed until they are allowed, and are no news for a gateway', async () => {
    use(boxed);
    await consentTo(boxed);
    const before = await list();
    for (const host of ['a.test', 'b.test', 'a.test']) mcp.refused.note(SERVER_ID, host);
    const after = await list();
    expect(after).toMatchObject({ version: before.version, first: { refused_hosts: ['a.test', 'b.test'] } });
    await allow('a.test');
    expect((await list()).first).toMatchObject({ refused_hosts: ['b.test'] });
    for (let index = 0; index < 200; index += 1) mcp.refused.note(SERVER_ID, `h${index}.test`);
    expect((await list()).first['refused_hosts']).toHaveLength(50);
  });

  test.each([
    ['not a host', ['*.*']],
    ['too many', Array.from({ length: 201 }, (_, index) => `h${index}.test`)],
  ])('are refused if they are %s', async (_, hosts) => {
    use(boxed);
    await consentTo(boxed);
    expect(await allow(...hosts)).toMatchObject({ status: 400 });
  });

  test('can be closed only where the sidecar can enter the network', async () => {
    const path = '/v1/mcp/isolation?endpoint=unix:///run/docker.sock';
    expect((await call('GET', path)).body).toEqual({ sealed: true, message: null, node_image: null });
    bench.inVirtualMachine = ok(true);
    expect((await call('GET', path)).body).toMatchObject({ sealed: true, node_image: 'node:24-slim' });
    bench.inVirtualMachine = err(reachFailure('engine_unavailable', 'no answer'));
    expect((await call('GET', path)).body).toEqual({ sealed: false, message: 'no answer', node_image: null });
    bench.listener = err(reachFailure('egress_unavailable', 'needs root'));
    expect((await call('GET', path)).body).toMatchObject({ sealed: false, message: 'needs root' });
    expect(await call('GET', '/v1/mcp/isolation?endpoint=tcp://1.2.3.4')).toMatchObject({ status: 400 });
  });
});

describe('the session of a server in a container', () => {
  const boxed = localServer({ isolation: 'container' });
  const SEALED = { sandbox: sandboxInput({ egress: 'sealed' }), mcp_server: SERVER_ID };
  const openSession = (body: object = SEALED) => call('POST', '/v1/sandbox-proxy/sessions', body);
  const opened = z.object({ session_id: z.string(), token: z.string(), sentinels: z.array(anyObject) });
  beforeEach(() => use(boxed));
  const consentWith = (hosts: readonly string[] | null) => consentTo(boxed, { allowed_hosts: hosts });

  test('has the hosts of the consent, and placeholders of their bindings only', async () => {
    bench.bindings = [
      sentinel('api.example.test', 'API'),
      sentinel('bound.example.test', 'BOUND'),
      sentinel('*.wide.test', 'WIDE'),
      sentinel('a.narrow.test', 'NARROW'),
    ];
    const hosts = ['*.narrow.test', 'api.example.test', 'x.wide.test'];
    await consentWith(hosts);
    const { session_id: id, sentinels } = opened.parse((await openSession()).body);
    expect(sentinels.map(({ env }) => env)).toEqual(['API', 'WIDE', 'NARROW']);
    expect(bench.sessions.get(id)?.allowList).toEqual({ hosts, named: [] });
    const reach = bench.sink.events.find(({ type }) => type === 'sandbox.proxy.session_reach');
    expect(reach?.data).toMatchObject({ 'svc.reach.hosts': hosts, 'svc.reach.egress': 'sealed' });
  });

  const folder = '7-123456-2';
  const host_sandbox = { mode: 'bubblewrap', egress: 'sealed', folder };
  const owner = identify(process.pid);
  const BOXED = { host_sandbox, owner, mcp_server: SERVER_ID };

  test('has the hosts of the consent in a sandbox too, where its socket is', async () => {
    await consentWith(['api.example.test']);
    const { session_id: id } = opened.parse((await openSession(BOXED)).body);
    const session = bench.sessions.get(id);
    expect(session).toMatchObject({ egress: 'sealed', hostSandbox: host_sandbox, mcpServers: [] });
    expect(session?.allowList).toEqual({ hosts: ['api.example.test'], named: [] });
    expect(session?.mcpServer).toMatchObject({ id: SERVER_ID });
  });

  test.each([
    ['container', SEALED],
    ['sandbox', BOXED],
  ])('has in a %s a token that opens no API, and is in no list of sessions', async (_, body) => {
    await consentWith(['api.example.test']);
    const { session_id: id, token } = opened.parse((await openSession(body)).body);
    expect(bench.sessions.authenticate(id, token)).not.toBeNull();
    expect(bench.sessions.withToken(token)).toBeNull();
    expect((await call('GET', '/v1/sandbox-proxy/sessions')).body).toMatchObject({ items: [] });
  });

  const PLAIN = { sandbox: sandboxInput(), mcp_server: SERVER_ID };
  const DETACHED = { sandbox: sandboxInput({ egress: 'sealed', detached: true }), mcp_server: SERVER_ID };
  test.each<readonly [string, readonly string[] | null | 'none', object, string]>([
    ['without consent', 'none', SEALED, 'consent_needed'],
    ['with an open network', null, SEALED, 'conflict'],
    ['of an unknown server', [], { ...SEALED, mcp_server: 'mcp_00000000000000000000000009' }, 'not_found'],
    ['that is not sealed', [], PLAIN, 'invalid_input'],
    ['that is detached', [], DETACHED, 'invalid_input'],
    ['without a sandbox', [], { mcp_server: SERVER_ID }, 'invalid_input'],
    ['with hosts of the caller', [], { ...SEALED, allowed_hosts: ['evil.test'] }, 'invalid_input'],
    ['with private hosts of the caller', [], { ...SEALED, named_hosts: ['evil.test'] }, 'invalid_input'],
    ['with other servers', [], { ...SEALED, mcp_servers: [SERVER_ID] }, 'invalid_input'],
    [
      'in a sandbox that is not sealed',
      [],
      { ...BOXED, host_sandbox: { ...host_sandbox, egress: 'open' } },
      'invalid_input',
    ],
    ['in a sandbox with hosts of the caller', [], { ...BOXED, allowed_hosts: ['evil.test'] }, 'invalid_input'],
    ['in a sandbox with every other server', [], { ...BOXED, every_mcp_server: true }, 'invalid_input'],
    ['in a sandbox without consent', 'none', BOXED, 'consent_needed'],
  ])('is not created %s', async (_, hosts, body, code) => {
    bench.mcpServers = [{ server: boxed, authorization: null }];
    if (hosts !== 'none') await consentWith(hosts);
    expect(await openSession(body)).toMatchObject({ code });
    expect(bench.sessions.count).toBe(0);
  });
});

describe('the values of a server', () => {
  beforeEach(async () => {
    use(withToken);
    store();
    await consent(withToken);
  });

  test('are released for the configuration that was consented to', async () => {
    expect(await release(hashOf(withToken))).toMatchObject({
      status: 200,
      body: { values: { [TOKEN_PATH]: SECRET }, ends_at: null, bearer: null },
    });
  });

  test('are released with the end of the first that has one', async () => {
    mcp.credentials.setMinted({ owner: 'personal', path: TOKEN_PATH }, SECRET, 1_800_000_000_000);
    expect(await release(hashOf(withToken))).toMatchObject({
      body: { values: { [TOKEN_PATH]: SECRET }, ends_at: 1_800_000_000_000 },
    });
  });

  test('are not released to a changed configuration, even if the gateway asks with its new hash', async () => {
    use(changed);
    for (const hash of [hashOf(withToken), hashOf(changed), null]) {
      expect(await release(hash)).toMatchObject({ status: 403, code: 'consent_needed' });
    }
    expect(mcp.credentials.asked).toEqual([]);
  });

  test("are not released under another hash than the consent's", async () => {
    expect(await release('0'.repeat(64))).toMatchObject({ code: 'consent_needed' });
    expect(await release(null)).toMatchObject({ code: 'consent_needed' });
  });

  test('are not released for another URL than the current one: a gateway may be outdated', async () => {
    use(REMOTE_WITH_TOKEN);
    expect(await release(null, 'https://before.example/mcp')).toMatchObject({ code: 'consent_needed' });
    expect(await release(null)).toMatchObject({ code: 'consent_needed' });
    expect(mcp.credentials.asked).toEqual([]);
    expect(await release(null, REMOTE_WITH_TOKEN.url)).toMatchObject({ status: 200 });
  });

  test('are not released once the consent is withdrawn', async () => {
    rmSync(join(bench.home, 'mcp'), { recursive: true });
    expect(await release(hashOf(withToken))).toMatchObject({ code: 'consent_needed' });
  });

  test.each([
    ['of a program', withToken, changed],
    ['of a remote server', REMOTE_WITH_TOKEN, { ...REMOTE_WITH_TOKEN, url: 'https://other.example/mcp', revision: 2 }],
    ['of its headers', REMOTE_WITH_TOKEN, { ...REMOTE_WITH_TOKEN, headers: {}, revision: 2 }],
  ])('are not released if the configuration %s changes during the request', async (_, before, after) => {
    use(before);
    api = createLocalApi({
      ...bench.options,
      mcp: {
        ...mcp,
        credentials: {
          resolve: async (ref) => {
            use(after);
            return mcp.credentials.resolve(ref);
          },
        },
      },
    });
    const hash = before.mode === 'local' ? hashOf(before) : null;
    expect(await release(hash, before.url)).toMatchObject({ code: 'consent_needed' });
  });

  test.each([
    ['disabled', { ...withToken, enabled: false }, 'mcp_server_disabled'],
    ['one with a dangerous command', localServer({ command: ['bash', '-c', 'true'] }), 'command_refused'],
    ['one that loads code through a variable', localServer({ env: { LD_PRELOAD: '/tmp/x.so' } }), 'command_refused'],
  ])('are not released to %s, even with consent', async (_, server, code) => {
    use(server);
    await consent(server);
    expect(await release(hashOf(server))).toMatchObject({ code });
    expect(mcp.credentials.asked).toEqual([]);
  });

  test('are not released while one of them is not stored; the refusal names it', async () => {
    mcp.credentials.delete({ owner: 'personal', path: TOKEN_PATH });
    const refused = await release(hashOf(withToken));
    expect(refused).toMatchObject({ status: 409, code: 'credential_missing' });
    expect(JSON.stringify(refused.body)).toContain('TOKEN');
  });

  test('are not released while nothing can be recorded, or the control plane is down', async () => {
    bench.sink.accepting = false;
    expect(await release(hashOf(withToken))).toMatchObject({ status: 503, code: 'audit_unavailable' });
    bench.sink.accepting = true;
    mcp.credentials.refuse('control_plane_unavailable');
    expect(await release(hashOf(withToken))).toMatchObject({ status: 503, code: 'control_plane_unavailable' });
  });

  test('of a removed server are not found', async () => {
    mcp.use([]);
    expect(await release(hashOf(withToken))).toMatchObject({ status: 404 });
  });
});

describe('a remote server that was signed in to', () => {
  const server = remoteServer();
  test('gets its access token', async () => {
    use(server, 'ready');
    mcp.credentials.set(mcpOAuthRef(server), SECRET);
    expect(await release(null, server.url)).toMatchObject({
      body: { values: {}, bearer: { token: SECRET, expires_at: null } },
    });
  });

  test('has to be signed in to again if the token is rejected', async () => {
    use(server, 'authorisation_required');
    expect(await release(null, server.url)).toMatchObject({ status: 409, code: 'authorisation_needed' });
    use(server, 'ready');
    mcp.credentials.refuse('reauthorisation_required');
    expect(await release(null, server.url)).toMatchObject({ status: 409, code: 'authorisation_needed' });
  });
});

describe('the events of a gateway', () => {
  test('are recorded, each once even if sent several times', async () => {
    expect((await tell(event(1), event(2))).body).toEqual({ accepting: true });
    await tell(event(2), event(3, { type: 'mcp.server.failed', tool: undefined, reason: 'exited' }));
    expect(bench.sink.events).toHaveLength(3);
    expect(bench.sink.events[0]).toEqual({
      type: 'mcp.tool.called',
      session_id: null,
      actor: null,
      data: {
        'svc.mcp.server': 'demo',
        'svc.mcp.server_id': SERVER_ID,
        'svc.mcp.version': '1.0.0',
        'svc.mcp.tool': 'echo',
        'svc.mcp.outcome': 'ok',
        'svc.mcp.duration_ms': 13,
      },
    });
  });

  test('are recorded even if the log accepts no more, and the gateway is told', async () => {
    bench.sink.accepting = false;
    expect((await tell(event(1))).body).toEqual({ accepting: false });
    expect(bench.sink.events).toHaveLength(1);
  });

  test.each([
    ['of another kind', { type: 'control.secret.stored' }],
    ['with an unknown field', { arguments: { password: 'x' } }],
    ['with an unknown reason', { reason: 'it said: hunter2' }],
  ])('%s are refused', async (_, more) => {
    expect(await tell(event(1, more))).toMatchObject({ status: 400, code: 'invalid_input' });
    expect(bench.sink.events).toEqual([]);
  });
});

async function report(state: McpHealthState, more: object = {}): Promise<Reply> {
  const checked_at = '2026-01-02T03:04:05.678Z';
  const server = { id: SERVER_ID, state, last_error: null, checked_at, restarts: 2, tools: 7, log: ['one', 'two'] };
  return call('POST', '/v1/mcp/health', { gateway: GATEWAY, servers: [{ ...server, ...more }] });
}

describe("a gateway's health reports", () => {
  test('are shown and forwarded', async () => {
    use(remoteServer());
    expect((await report('running')).status).toBe(204);
    expect((await list()).first['health']).toMatchObject({ state: 'running', restarts: 2, tools: 7, gateways: 1 });
    expect(mcp.healthChanges()).toBe(1);
    expect((await call('GET', `/v1/mcp/logs/${SERVER_ID}`)).body).toEqual({
      items: [{ gateway: GATEWAY, lines: ['one', 'two'] }],
    });
  });

  test("expire when the gateway ends; its servers' last stderr output is kept", async () => {
    use(remoteServer());
    await report('running');
    await call('POST', '/v1/mcp/health', { gateway: GATEWAY, servers: [], ended: true });
    expect((await list()).first['health']).toMatchObject({ state: 'stopped', gateways: 0 });
    expect((await call('GET', `/v1/mcp/logs/${SERVER_ID}`)).body['items']).toHaveLength(1);
  });
});

describe('an approval of a tool call', () => {
  beforeEach(() => use(withToken));

  test('names what a person has to know', async () => {
    expect(await ask()).toMatchObject({ status: 200, body: { approval_id: 'apr_1' } });
    expect(mcp.asked).toMatchObject([{ server: { id: SERVER_ID }, tool: 'delete_file', sessionId: null }]);
  });

  test('refuses with its reason if it is not granted', async () => {
    const denied = { refusal: refusal('approval_denied', 'denied'), approvalId: 'apr_2' };
    mcp.onApproval = () => Promise.resolve(err(denied));
    expect(await ask()).toMatchObject({ status: 403, code: 'approval_denied' });
  });

  test('is refused for an unknown server or session', async () => {
    expect(await ask({ session_id: `ses_${'0'.repeat(26)}` })).toMatchObject({ status: 404 });
    mcp.use([]);
    expect(await ask()).toMatchObject({ status: 404 });
    expect(mcp.asked).toEqual([]);
  });

  test('is given up when the client disconnects', async () => {
    const gone = new AbortController();
    const aborted = new Promise((resolve) => {
      mcp.onApproval = (signal) => {
        signal.addEventListener('abort', resolve);
        gone.abort();
        return Promise.resolve(err({ refusal: refusal('approval_required', 'x'), approvalId: null }));
      };
    });
    const headers = { host: '127.0.0.1:9100', authorization: `Bearer ${HOST_TOKEN}` };
    const body = JSON.stringify({
      server_id: SERVER_ID,
      tool: 't',
      arguments_hash: 'a'.repeat(64),
      summary: 's',
      session_id: null,
    });
    await api.request('http://127.0.0.1:9100/v1/mcp/approvals', { method: 'POST', headers, body, signal: gone.signal });
    expect(await aborted).toMatchObject({ type: 'abort' });
  });
});
