import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { SELF_TEST_HOST } from '../../shared/model/egress.ts';
import { allowedHosts } from '../../shared/resolve/admitted_host.ts';
import { StepScope } from '../session/step_scope.ts';
import { tokenHash } from '../session/token.ts';
import { isPublicOnly } from './sealed_reach.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import {
  createAnswering,
  type DataPlane,
  isHttp2,
  onlyInHttp1,
  readUntil,
  startDataPlane,
} from '../testing/data_plane.ts';

const INSIDE = 'api.example.test';
const OUTSIDE = 'evil.example.test';
const SECRET = 'planted-secret-0123456789';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';
const TOKEN = 'scope-token';

let plane: DataPlane;
let scope: StepScope;
let seen: string[];

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  plane.policy.use([bearerBinding(INSIDE), bearerBinding(OUTSIDE)]);
  seen = [];
  const upstream = createAnswering((request) => (seen.push(request), REPLY));
  await plane.upstream(INSIDE, upstream);
  await plane.upstream(OUTSIDE, upstream);
  scope = new StepScope({
    scopeId: 'scp_1',
    step: { stepId: 'fetch', effect: 'read', hosts: [INSIDE], timeoutSeconds: 900, scopes: [], choice: null },
    session: plane.session,
    tokenHash: tokenHash(TOKEN),
    expiresAt: Number.POSITIVE_INFINITY,
  });
  plane.scopes.set(TOKEN, scope);
});

afterEach(async () => {
  expect(plane.errors).toEqual([]);
  await scope.end();
  await plane.stop();
});

function connect(target: string, more = ''): Promise<string> {
  const basic = Buffer.from(`ses_test:${TOKEN}`).toString('base64');
  return plane.raw(
    `CONNECT ${target} HTTP/1.1\r\nHost: ${INSIDE}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n${more}`,
  );
}

describe('with a step scope', () => {
  test('a host in the reach gets its credential, and the event names the step', async () => {
    const client = await plane.open(INSIDE, INSIDE, TOKEN);
    client.write(`GET /a HTTP/1.1\r\nHost: ${INSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
    expect(seen).toEqual([expect.stringContaining(`Authorization: Bearer ${SECRET}`)]);
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.binding_injected', session_id: 'ses_test', data: { 'svc.step.id': 'fetch' } },
    ]);
  });

  test('a host outside the reach is refused before any TLS byte and recorded, and no credential is looked up', async () => {
    const clientHello = '\x16\x03\x01\x00\x05hello';
    const reply = await connect(`${OUTSIDE}:443`, clientHello);
    expect(reply).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n.*"code":"step_scope_host_denied"/s);
    expect(reply.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(reply).not.toContain('Established');
    expect(plane.credentials.asked).toEqual([]);
    expect(seen).toEqual([]);
    expect(plane.audit.events).toEqual([
      {
        type: 'sandbox.proxy.trust_denied',
        session_id: 'ses_test',
        actor: 'session',
        data: {
          'svc.proxy.source': 'transparent_connect_tls',
          'svc.proxy.mediation': 'refused',
          'svc.proxy.method': 'CONNECT',
          'svc.proxy.upstream.host': OUTSIDE,
          'svc.proxy.reason': 'step_scope_host_denied',
          'svc.step.id': 'fetch',
        },
      },
    ]);
    expect(scope.openTunnels).toBe(0);
  });

  test.each([
    `sub.${INSIDE}:443`,
    `${INSIDE}.evil.example:443`,
    `${INSIDE.replace('api', 'apii')}:443`,
    '127.0.0.1:443',
    '[::1]:443',
    'localhost:443',
    '169.254.169.254:443',
    `xn--pi-wia.example.test:443`,
  ])('%s is outside', async (target) => {
    expect(await connect(target)).toMatch(/^HTTP\/1\.1 403 .*step_scope_host_denied/s);
  });

  test.each([`${INSIDE.toUpperCase()}:443`, `${INSIDE}.:443`])(
    '%s is the same host in another spelling',
    async (target) => {
      const basic = Buffer.from(`ses_test:${TOKEN}`).toString('base64');
      const head = `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
      const reply = await plane.raw(head, (got) => got.includes('\r\n\r\n'));
      expect(reply).toBe('HTTP/1.1 200 Connection Established\r\n\r\n');
      expect(plane.credentials.asked).toEqual([]);
    },
  );

  test('a Host header in the tunnel does not leave the reach', async () => {
    const client = await plane.open(INSIDE, INSIDE, TOKEN);
    client.write(`GET / HTTP/1.1\r\nHost: ${OUTSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.includes('authority_mismatch'))).toMatch(/^HTTP\/1\.1 421 /);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
    expect(plane.audit.events).toMatchObject([
      { data: { 'svc.step.id': 'fetch', 'svc.proxy.reason': 'authority_mismatch' } },
    ]);
  });

  test('a Host header in the tunnel to a sealed host without a binding does not either', async () => {
    plane.policy.use([]);
    const client = await plane.open(INSIDE, INSIDE, TOKEN);
    client.write(`GET / HTTP/1.1\r\nHost: ${OUTSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.includes('authority_mismatch'))).toMatch(/^HTTP\/1\.1 421 /);
    expect(seen).toEqual([]);
  });

  test('a server name in the tunnel does not either', async () => {
    const client = await plane.open(INSIDE, OUTSIDE, TOKEN);
    client.write(`GET / HTTP/1.1\r\nHost: ${INSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.includes('authority_mismatch'))).toMatch(/^HTTP\/1\.1 421 /);
    expect(plane.credentials.asked).toEqual([]);
  });

  test('revoking the scope closes its open tunnels, and it opens no more', async () => {
    const client = await plane.open(INSIDE, INSIDE, TOKEN);
    const gone = readUntil(client, () => false);
    client.on('error', () => undefined);
    expect([scope.openTunnels, plane.openTunnels()]).toEqual([1, 1]);
    await scope.end();
    await gone;
    expect([scope.openTunnels, plane.openTunnels()]).toEqual([0, 0]);
    expect(await connect(`${INSIDE}:443`)).toMatch(/^HTTP\/1\.1 429 /);
  });

  test('the session itself still reaches every host', async () => {
    const client = await plane.open(OUTSIDE);
    client.write(`GET / HTTP/1.1\r\nHost: ${OUTSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
    expect(plane.audit.events[0]?.data).not.toHaveProperty('svc.step.id');
  });
});

async function ask(host: string, token: string): Promise<string> {
  const client = await plane.open(host, host, token);
  client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const reply = await readUntil(client, (got) => got.endsWith('}\n') || got.endsWith('hi'));
  client.end();
  return reply;
}

describe('in a self-test of svc doctor', () => {
  beforeEach(() => void plane.scopes.set('self-test', { ...plane.session, selfTest: true }));

  test.for(onlyInHttp1([null]))(
    'the sidecar answers the probe itself: nothing is dialled, looked up or recorded',
    async () => {
      plane.policy.use([bearerBinding(SELF_TEST_HOST)]);
      await plane.upstream(
        SELF_TEST_HOST,
        createAnswering((request) => (seen.push(request), REPLY)),
      );
      expect(await ask(SELF_TEST_HOST, 'self-test')).toMatch(/^HTTP\/1\.1 403 .*"code":"self_test"/s);
      expect([seen, plane.credentials.asked, plane.audit.events]).toEqual([[], [], []]);
      await expect.poll(() => plane.openTunnels()).toBe(0);
    },
  );

  test('a client that does not trust the CA leaves no event', async () => {
    const basic = Buffer.from('ses_test:self-test').toString('base64');
    const head = `CONNECT ${SELF_TEST_HOST}:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
    expect(await plane.raw(`${head}no TLS`)).toMatch(/^HTTP\/1\.1 200 /);
    await expect.poll(() => plane.openTunnels()).toBe(0);
    expect(plane.audit.events).toEqual([]);
  });

  test.each([INSIDE, `x.${SELF_TEST_HOST}`, '127.0.0.1'])(
    '%s is refused and recorded, although it is bound',
    async (host) => {
      plane.policy.use([bearerBinding(INSIDE)]);
      const basic = Buffer.from('ses_test:self-test').toString('base64');
      const head = `CONNECT ${host}:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
      expect(await plane.raw(head, (got) => got.startsWith('HTTP/1.1 200') || got.endsWith('}\n'))).toMatch(
        /^HTTP\/1\.1 403 .*"egress_host_not_allowed"/s,
      );
      expect([seen, plane.credentials.asked]).toEqual([[], []]);
      expect(plane.audit.events).toMatchObject([
        { type: 'sandbox.proxy.trust_denied', data: { 'svc.proxy.upstream.host': host } },
      ]);
    },
  );

  test('another session that asks for the probe is no self-test: its request is recorded', async () => {
    expect(await ask(SELF_TEST_HOST, plane.token)).not.toContain('self_test');
    expect(plane.audit.events).toHaveLength(1);
  });
});

describe('in a sealed session', () => {
  const PRIVATE = 'localhost';

  beforeEach(() => void plane.scopes.set('sealed-token', { ...plane.session, sealed: true }));

  test('a name that resolves to this machine is refused and recorded, and nothing is dialled', async () => {
    expect(await ask(PRIVATE, 'sealed-token')).toMatch(/^HTTP\/1\.1 403 .*"egress_address_not_allowed"/s);
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.trust_denied', data: { 'svc.proxy.reason': 'egress_address_not_allowed' } },
    ]);
  });

  test('other sessions can reach it', async () => {
    expect(await ask(PRIVATE, plane.token)).not.toContain('egress_address_not_allowed');
  });

  test('hosts with a --resolve address can be reached', async () => {
    expect(await ask(INSIDE, 'sealed-token')).toBe(REPLY);
  });

  test.each([
    ['a binding of its exact name', [bearerBinding(PRIVATE)], false],
    ['no binding', [bearerBinding(INSIDE)], true],
    ['a wildcard', [bearerBinding('*.localhost')], true],
    [
      'a wildcard with it among its allowed hosts',
      [bearerBinding('*.localhost', { allowedHosts: ['a.localhost'] })],
      false,
    ],
    ['a wildcard with another allowed host', [bearerBinding('*.localhost', { allowedHosts: ['b.localhost'] })], true],
  ])('private addresses are allowed or refused with %s', (_name, bindings, expected) => {
    plane.policy.use(bindings);
    const host = bindings[0]?.host === PRIVATE ? PRIVATE : 'a.localhost';
    expect(isPublicOnly({ ...plane.session, sealed: true }, host, plane)).toBe(expected);
  });

  test('a connector names its hosts only while its credential is stored', () => {
    const connector = sampleConnector([sampleOperation()]);
    const [host = ''] = connector.spec.hosts;
    plane.policy.use([], [connector]);
    const session = { ...plane.session, sealed: true };
    expect(isPublicOnly(session, host, plane)).toBe(true);
    plane.credentials.set(connector.credential, SECRET);
    expect(isPublicOnly(session, host, plane)).toBe(false);
  });

  test('without a current policy no host counts as named', () => {
    plane.policy.use([bearerBinding(PRIVATE)]);
    plane.policy.refuse('snapshot_expired');
    expect(isPublicOnly({ ...plane.session, sealed: true }, PRIVATE, plane)).toBe(true);
  });

  test('a step scope opens tunnels only to hosts in its lock, which may be private', () => {
    const { id, ca, reach } = scope;
    const stepped = { id, ca, reach, sealed: true, openTunnel: () => null };
    expect(isPublicOnly(stepped, INSIDE, plane)).toBe(false);
  });
});

describe('in a session with allowed hosts', () => {
  const ALLOWED = 'npm.example.test';
  const BEYOND = 'beyond.example.test';

  beforeEach(async () => {
    const upstream = createAnswering((request) => (seen.push(request), REPLY));
    for (const host of [ALLOWED, BEYOND]) await plane.upstream(host, upstream);
    plane.policy.use([bearerBinding(INSIDE)]);
    plane.scopes.set('limited', { ...plane.session, allowed: allowedHosts([ALLOWED], []) });
  });

  function connectTo(target: string, more = ''): Promise<string> {
    const basic = Buffer.from('ses_test:limited').toString('base64');
    const head = `CONNECT ${target} HTTP/1.1\r\nHost: ${INSIDE}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n${more}`;
    return plane.raw(head, (got) => got.startsWith('HTTP/1.1 200') || got.endsWith('}\n'));
  }

  test.each([INSIDE, ALLOWED])('%s, which is bound or allowed, is reached', async (host) => {
    expect(await ask(host, 'limited')).toBe(REPLY);
  });

  test.each([ALLOWED.toUpperCase(), `${ALLOWED}.`, `${INSIDE.toUpperCase()}.`])(
    '%s is an admitted host in another spelling',
    async (host) => {
      expect(await connectTo(`${host}:443`)).toBe('HTTP/1.1 200 Connection Established\r\n\r\n');
    },
  );

  test('the container of an MCP server reaches its own hosts, and no other that is bound', async () => {
    const refused: string[] = [];
    const mcpServer = { id: 'mcp_1', name: 'box', noteRefused: (host: string) => void refused.push(host) };
    plane.scopes.set('limited', { ...plane.session, allowed: allowedHosts([ALLOWED], []), mcpServer });
    expect(await ask(ALLOWED, 'limited')).toBe(REPLY);
    seen.length = 0;
    const reply = await connectTo(`${INSIDE}:443`, '\x16\x03\x01\x00\x05hello');
    expect(reply).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n.*"code":"egress_host_not_allowed"/s);
    expect(reply).toContain(`svc mcp allow box ${INSIDE}`);
    expect([seen, plane.credentials.asked, refused]).toEqual([[], [], [INSIDE]]);
  });

  test('another host is refused before any TLS byte and recorded', async () => {
    const reply = await connectTo(`${BEYOND}:443`, '\x16\x03\x01\x00\x05hello');
    expect(reply).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n.*"code":"egress_host_not_allowed"/s);
    expect(reply).not.toContain('Established');
    expect([seen, plane.credentials.asked, plane.openTunnels()]).toEqual([[], [], 0]);
    expect(plane.audit.events).toEqual([
      {
        type: 'sandbox.proxy.trust_denied',
        session_id: 'ses_test',
        actor: 'session',
        data: {
          'svc.proxy.source': 'transparent_connect_tls',
          'svc.proxy.mediation': 'refused',
          'svc.proxy.method': 'CONNECT',
          'svc.proxy.upstream.host': BEYOND,
          'svc.proxy.reason': 'egress_host_not_allowed',
        },
      },
    ]);
  });

  test('a retry loop has two events: the first refusal, and the number of the others', async () => {
    for (let number = 0; number < 5; number += 1) await connectTo(`${BEYOND}:443`);
    expect(plane.audit.events).toHaveLength(1);
    plane.refusals.flush();
    expect(plane.audit.events).toHaveLength(2);
    expect(plane.audit.events[1]?.data).toMatchObject({ 'svc.proxy.upstream.host': BEYOND, 'svc.proxy.count': 4 });
    expect(plane.metrics.counts.get('svc_proxy_refusals_total{reason="egress_host_not_allowed"}')).toBe(5);
  });

  test.each([
    `sub.${ALLOWED}`,
    `${ALLOWED}.evil.example`,
    `evil-${ALLOWED}`,
    'localhost',
    '93.184.216.34',
    '1572395042',
    '127.0.0.1',
    '[2606:2800:220:1::]',
    `xn--npm-hoa.example.test`,
  ])('%s is refused', async (host) => {
    expect(await connectTo(`${host}:443`)).toMatch(/^HTTP\/1\.1 403 .*egress_host_not_allowed/s);
  });

  const ABSOLUTE = `GET https://${BEYOND}/ HTTP/1.1\r\nHost: ${ALLOWED}\r\n\r\n`;

  test('another port of an allowed host is refused', async () => {
    expect(await connectTo(`${ALLOWED}:8443`)).toMatch(/^HTTP\/1\.1 403 .*connect_port_not_allowed/s);
  });

  test.each<readonly [string, string, string]>([
    ['a Host header', ALLOWED, `GET / HTTP/1.1\r\nHost: ${BEYOND}\r\n\r\n`],
    ['a Host header with a port', ALLOWED, `GET / HTTP/1.1\r\nHost: ${ALLOWED}:8443\r\n\r\n`],
    ['a server name', BEYOND, `GET / HTTP/1.1\r\nHost: ${ALLOWED}\r\n\r\n`],
    ...(isHttp2() ? [] : [['an absolute target', ALLOWED, ABSOLUTE] as const]),
  ])('%s in the tunnel of an allowed host names no other host', async (_name, servername, request) => {
    const client = await plane.open(ALLOWED, servername, 'limited');
    client.write(request);
    expect(await readUntil(client, (got) => got.includes('authority_mismatch'))).toMatch(/^HTTP\/1\.1 421 /);
    expect(seen).toEqual([]);
    expect(plane.audit.events).toMatchObject([{ data: { 'svc.proxy.reason': 'authority_mismatch' } }]);
  });

  test('other sessions pass such a request through as it is', async () => {
    const client = await plane.open(BEYOND);
    client.write(`GET / HTTP/1.1\r\nHost: ${OUTSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
  });

  test('a connector without its credential opens no host, and one with it does', async () => {
    const connector = sampleConnector([sampleOperation({ hosts: [BEYOND] })]);
    plane.policy.use([], [connector]);
    expect(await connectTo(`${BEYOND}:443`)).toContain('egress_host_not_allowed');
    plane.credentials.set(connector.credential, SECRET);
    expect(await connectTo(`${BEYOND}:443`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('a deleted binding ends the kept connections to its host, and opens no more', async () => {
    const client = await plane.open(INSIDE, INSIDE, 'limited');
    client.write(`GET / HTTP/1.1\r\nHost: ${INSIDE}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
    const gone = readUntil(client, () => false);
    client.on('error', () => undefined);
    plane.policy.use([]);
    await gone;
    expect(plane.openTunnels()).toBe(0);
    expect(plane.policy.watched).toBe(0);
    expect(await connectTo(`${INSIDE}:443`)).toContain('egress_host_not_allowed');
    expect(seen).toHaveLength(1);
  });

  test.for(onlyInHttp1([null]))('it ends a WebSocket to its host, and not one to an allowed host', async () => {
    const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';
    const hosts = { bound: 'ws.example.test', allowed: ALLOWED };
    for (const host of [hosts.bound, ALLOWED]) {
      await plane.upstream(host, (socket) => {
        socket.once('data', () => {
          socket.write(switched);
          socket.on('data', (data) => socket.write(data));
        });
      });
    }
    const foreign = bearerBinding(hosts.bound, {
      emit: { mechanism: 'sentinel-swap', sentinel: 'placeholder-0123456789' },
    });
    plane.policy.use([foreign]);
    const opened = async (host: string): ReturnType<DataPlane['open']> => {
      const client = await plane.open(host, host, 'limited');
      const own = host === hosts.bound ? 'Authorization: Bearer own\r\n' : '';
      client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${own}\r\n`);
      expect(await readUntil(client, (got) => got.endsWith('\r\n\r\n'))).toBe(switched);
      return client;
    };
    const [bound, allowed] = [await opened(hosts.bound), await opened(hosts.allowed)];
    bound.on('error', () => undefined);
    const gone = readUntil(bound, () => false);
    plane.policy.use([]);
    await gone;
    allowed.write('still here');
    expect(await readUntil(allowed, (got) => got.endsWith('here'))).toBe('still here');
  });

  test.each(
    onlyInHttp1([
      ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'],
      ['TLS', 'Connection: upgrade\r\nUpgrade: TLS/1.0\r\n'],
      ['one beside a WebSocket', 'Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n'],
      ['a list with a WebSocket', 'Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n'],
      ['a WebSocket that Connection does not nominate', 'Upgrade: websocket\r\n'],
    ]),
  )('an upgrade is taken out of a request unless it is a WebSocket: %s', async (_name, fields) => {
    for (const token of ['limited', TOKEN]) {
      const host = token === TOKEN ? INSIDE : ALLOWED;
      plane.policy.use([]);
      const client = await plane.open(host, host, token);
      client.write(`GET /a HTTP/1.1\r\nHost: ${host}\r\nX-Own: 1\r\n${fields}\r\n`);
      expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
      expect(seen.pop()).toBe(`GET /a HTTP/1.1\r\nHost: ${host}\r\nX-Own: 1\r\n\r\n`);
    }
  });

  test.each(onlyInHttp1(['Upgrade: h2c\r\n', 'Upgrade: websocket, h2c\r\n', '']))(
    'a 101 that answers a WebSocket with %j is refused, and no byte follows it',
    async (upgrade) => {
      const got: string[] = [];
      await plane.upstream(ALLOWED, (socket) => {
        socket.on('data', (data: Buffer) => {
          got.push(data.toString('latin1'));
          socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${upgrade}\r\n`);
        });
      });
      const client = await plane.open(ALLOWED, ALLOWED, 'limited');
      client.write(`GET / HTTP/1.1\r\nHost: ${ALLOWED}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      expect(await readUntil(client, (text) => text.endsWith('}\n'))).toMatch(
        /^HTTP\/1\.1 502 .*upstream_invalid_reply/s,
      );
      client.write('PRI * HTTP/2.0\r\n\r\n');
      client.end();
      await readUntil(client, () => false);
      expect(got).toHaveLength(1);
    },
  );

  test.for(onlyInHttp1([null]))('other sessions may upgrade to any protocol', async () => {
    const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n';
    await plane.upstream(BEYOND, (socket) => void socket.once('data', () => socket.write(switched)));
    const client = await plane.open(BEYOND);
    client.write(`GET / HTTP/1.1\r\nHost: ${BEYOND}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('\r\n\r\n'))).toBe(switched);
  });

  test.for(onlyInHttp1([null]))('a request without a Host header gets the one of the tunnel', async () => {
    const client = await plane.open(ALLOWED, ALLOWED, 'limited');
    client.write('GET /a HTTP/1.0\r\nX-Own: 1\r\n\r\n');
    expect(await readUntil(client, (got) => got.endsWith('hi'))).toBe(REPLY);
    expect(seen).toEqual([`GET /a HTTP/1.0\r\nHost: ${ALLOWED}\r\nX-Own: 1\r\n\r\n`]);
  });

  test('without a current policy only allowed hosts get a tunnel, and no request passes', async () => {
    plane.policy.refuse('snapshot_expired');
    expect(await connectTo(`${INSIDE}:443`)).toMatch(/^HTTP\/1\.1 503 .*snapshot_expired/s);
    const client = await plane.open(ALLOWED, ALLOWED, 'limited');
    client.write(`GET / HTTP/1.1\r\nHost: ${ALLOWED}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 503 .*snapshot_expired/s);
  });

  test.each([
    ['allowed for the session by name', [], ['localhost'], true],
    ['on its list', ['localhost'], [], false],
    ['covered by its wildcard', ['*.localhost.test'], [], false],
  ])('a host that is %s may lead to a private address, or not', (_name, patterns, named, expected) => {
    const session = { ...plane.session, sealed: true, allowed: allowedHosts(patterns, named), named: new Set(named) };
    const host = patterns[0]?.startsWith('*') === true ? 'a.localhost.test' : 'localhost';
    expect(isPublicOnly(session, host, plane)).toBe(!expected);
  });
});
