import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { InstalledConnector, Operation } from '../../shared/model/connector.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Requests to operations of connectors, through the whole data plane (design section 5, invariants 1 to 4 and 8). */

const HOST = 'api.example.test';
const TOKEN = 'planted-connector-token-0123456789';
const BOUND = 'planted-bound-secret-0123456789';
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';
const READ = sampleOperation({
  audit: [
    { name: 'item', source: 'path.id', redact: false },
    { name: 'searched', source: 'query.q', redact: true },
    { name: 'status', source: 'status', redact: false },
  ],
});
const CREATE = sampleOperation({
  name: 'create-item',
  method: 'POST',
  path: '/items',
  summary: 'Create an item',
  effect: 'write',
  approval: 'required',
  inputs: [{ name: 'title', in: 'body', type: 'string', required: true, description: '' }],
  audit: [{ name: 'titled', source: 'body.title', redact: true }],
});
const USER = sampleOperation({ name: 'get-user', path: '/user', inputs: [] });

let plane: DataPlane;
let seen: string[];
let reply: string;

beforeEach(async () => {
  seen = [];
  reply = DONE;
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN);
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, BOUND);
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), reply)),
  );
  use([READ, CREATE, USER]);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

function use(operations: readonly Operation[], changes: Partial<InstalledConnector> = {}): void {
  plane.policy.use([bearerBinding(HOST)], [sampleConnector(operations, { hosts: [HOST], ...changes })]);
}

function get(path: string, lines = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`;
}

function post(body: string, lines = ''): string {
  const length = Buffer.byteLength(body);
  return `POST /items HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${lines}\r\n${body}`;
}

async function ask(request: string, servername = HOST): Promise<string> {
  const client = await plane.open(HOST, servername);
  client.write(request, 'latin1');
  return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n') || got.endsWith('0\r\n\r\n'));
}

function lastEvent(): { readonly type: string; readonly data: Readonly<Record<string, unknown>> } {
  const event = plane.audit.events.at(-1);
  return { type: event?.type ?? '', data: { ...event?.data } };
}

describe('a request to an operation', () => {
  test.for(onlyInHttp1([null]))(
    'keeps the client’s own request, with the connector’s token in place of its Authorization',
    async () => {
      const lines = 'X-Kept: 1\r\nAuthorization: Bearer own\r\nx-a: 2\r\nAUTHORIZATION: Basic other\r\n';
      expect(await ask(get('/items/7?q=s3arch&page=2', lines))).toBe(DONE);
      expect(seen).toEqual([
        `GET /items/7?q=s3arch&page=2 HTTP/1.1\r\nHost: ${HOST}\r\nX-Kept: 1\r\nx-a: 2\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
      ]);
    },
  );

  test('is recorded with its operation and typed fields, and without query values', async () => {
    await ask(get('/items/7?q=s3arch'));
    expect(lastEvent()).toEqual({
      type: 'connector.proxy.proxied',
      data: {
        'svc.proxy.source': 'transparent_connect_tls',
        'svc.proxy.mediation': 'connector',
        'svc.proxy.method': 'GET',
        'svc.proxy.upstream.host': HOST,
        'svc.proxy.upstream.path': '/items/7',
        'svc.proxy.upstream.status': 200,
        'svc.connector.fqn': 'acme/items',
        'svc.connector.version': '1.0.0',
        'svc.connector.operation': 'get-item',
        'svc.connector.credential_ref': 'vault://connectors/acme/items',
        'svc.connector.fields': { item: '7', searched: true, status: 200 },
      },
    });
  });

  test.for(onlyInHttp1([null]))('never shares a socket or a credential with the binding of its host', async () => {
    const sockets = new Set<unknown>();
    await plane.upstream(HOST, (socket) => {
      sockets.add(socket);
      createAnswering((request) => (seen.push(request), DONE))(socket, () => undefined);
    });
    const client = await plane.open(HOST);
    for (const path of ['/items/7', '/other', '/items/8']) {
      client.write(get(path), 'latin1');
      await readUntil(client, (got) => got.endsWith('done'));
    }
    expect(seen.map((request) => /Bearer (\S+)/.exec(request)?.[1])).toEqual([TOKEN, BOUND, TOKEN]);
    expect(sockets.size).toBe(2);
  });

  test('goes to the binding if several connectors declare the operation', async () => {
    const connectors = ['acme/items', 'other/items'].map((fqn, index) =>
      sampleConnector([READ], { fqn, id: `con_${index}`, hosts: [HOST] }),
    );
    plane.policy.use([bearerBinding(HOST)], connectors);
    await ask(get('/items/7'));
    expect([lastEvent().type, seen[0]?.includes(BOUND)]).toEqual(['sandbox.proxy.binding_injected', true]);
  });

  test('is refused without a stored credential, and the refusal names the command', async () => {
    plane.credentials.delete({ owner: 'personal', path: 'connectors/acme/items' });
    expect(await ask(get('/items/7'))).toMatch(/^HTTP\/1\.1 503 .*credential_unavailable/s);
    expect([seen, lastEvent().type]).toEqual([[], 'connector.proxy.rejected']);
  });

  test('is refused with its own reason if the token has to be authorised again', async () => {
    plane.credentials.refuse('reauthorisation_required');
    expect(await ask(get('/items/7'))).toMatch(/^HTTP\/1\.1 503 .*reauthorisation_required/s);
    expect(lastEvent()).toMatchObject({ type: 'connector.proxy.rejected' });
  });

  test('is refused before the credential is requested if it cannot be recorded', async () => {
    plane.audit.accepting = false;
    expect(await ask(get('/items/7'))).toMatch(/^HTTP\/1\.1 503 .*audit_unavailable/s);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
  });

  test('is refused with a body over the limit', async () => {
    const request = `POST /items HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 99999999999\r\n\r\n`;
    expect(await ask(request)).toMatch(/^HTTP\/1\.1 413 .*body_too_large/s);
    expect([plane.approvals.asked, plane.credentials.asked]).toEqual([[], []]);
  });

  test('has its own limit for an inspected body, which is not parsed', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const large = `{"title":${'['.repeat(1024 * 1024)}`;
    expect(await ask(post(large))).toMatch(/^HTTP\/1\.1 413 .*body_too_large.*SVC_MAX_READ_BODY_BYTES/s);
    expect([plane.approvals.asked, plane.credentials.asked]).toEqual([[], []]);
    expect(await ask(post(`{"title":${'['.repeat(500_000)}`))).toBe(DONE);
    expect(parse.mock.calls.filter(([text]) => text.length > 10_000)).toEqual([]);
    parse.mockRestore();
    use([sampleOperation({ ...CREATE, audit: [] })]);
    expect(await ask(post(large))).toBe(DONE);
  });

  test('is refused for the connector if its upstream cannot be reached', async () => {
    await plane.upstream(HOST, (socket) => socket.once('data', () => socket.destroy()));
    expect(await ask(get('/items/7'))).toMatch(/^HTTP\/1\.1 502 .*upstream_unreachable/s);
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.rejected',
      data: { 'svc.proxy.reason': 'upstream_unreachable', 'svc.connector.operation': 'get-item' },
    });
  });
});

const ABSOLUTE = `GET https://evil.example.test/items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

describe('invariant 1, authority', () => {
  test.each<readonly [string, string, string]>([
    ['another Host', `GET /items/7 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n`, HOST],
    ['another server name', get('/items/7'), 'evil.example.test'],
    ...(isHttp2() ? [] : [['another absolute target', ABSOLUTE, HOST] as const]),
  ])('an operation with %s is refused, and no credential is resolved', async (_name, request, servername) => {
    expect(await ask(request, servername)).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
    expect([plane.credentials.asked, seen, lastEvent().type]).toEqual([[], [], 'connector.proxy.rejected']);
  });
});

describe('invariant 2, contract before credential', () => {
  const upgrade = isHttp2() ? [] : ['Upgrade: websocket'];
  test.each(['X-HTTP-Method-Override: DELETE', 'X-Http-Method: PUT', 'X-Method-Override: x', ...upgrade])(
    'a read operation with %s is refused',
    async (line) => {
      expect(await ask(get('/items/7', `${line}\r\n`))).toMatch(/^HTTP\/1\.1 403 .*effect_not_allowed/s);
      expect([plane.credentials.asked, seen, lastEvent().type]).toEqual([[], [], 'connector.proxy.rejected']);
    },
  );
});

describe('invariant 4, nothing secret leaves', () => {
  test('a reply that echoes the token is masked, in head and body, compressed or not', async () => {
    const encoded = Buffer.from(TOKEN).toString('base64');
    const text = `${TOKEN} ${encoded}`;
    reply = `HTTP/1.1 200 OK\r\nX-Echo: ${TOKEN}\r\nContent-Length: ${text.length + 4}\r\n\r\n${text}done`;
    const got = await ask(get('/items/7'));
    expect(got).toMatch(/^HTTP\/1\.1 200 [^]*done$/);
    expect([got.includes(TOKEN), got.includes(encoded)]).toEqual([false, false]);
    const packed = gzipSync(text);
    reply = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n${packed.toString('latin1')}`;
    expect(await ask(get('/items/7'))).not.toContain(TOKEN);
  });

  test.for(onlyInHttp1([null]))(
    'cookies, challenges and alternative services are removed from head, interim replies and trailers; the rest stays',
    async () => {
      const withheld =
        'Set-Cookie: a=b\r\nWWW-Authenticate: Bearer\r\nAlt-Svc: h3=":443"\r\nAuthentication-Info: x\r\nProxy-Authenticate: y\r\n';
      reply = `HTTP/1.1 103 Early Hints\r\nLink: <a>\r\nset-cookie: early=1\r\n\r\nHTTP/1.1 200 OK\r\n${withheld}Link: <https://x/?page=2>; rel="next"\r\nX-A:  1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\nSet-Cookie: late=1\r\nX-T: 2\r\n\r\n`;
      const client = await plane.open(HOST);
      client.write(get('/items/7'));
      const got = await readUntil(client, (text) => text.endsWith('X-T: 2\r\n\r\n'));
      expect(got).toBe(
        'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nLink: <https://x/?page=2>; rel="next"\r\nX-A:  1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\nX-T: 2\r\n\r\n',
      );
    },
  );

  test('a token too short to be masked gets the same reply', async () => {
    plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, 'short');
    reply = `HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\nSet-Cookie: late=1\r\n\r\n`;
    const got = await ask(get('/items/7'));
    expect(got).toBe('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\n\r\n');
  });

  test('audit, metrics and errors contain no token, query, header or body, for any outcome', async () => {
    await ask(get('/items/7?q=query-secret-123', 'Cookie: header-secret-123\r\n'));
    await ask(post('{"title":"body-secret-123"}'));
    plane.approvals.decision = 'approval_denied';
    await ask(post('{"title":"body-secret-456"}'));
    const summaries = plane.approvals.asked.map(({ summary }) => summary);
    const told = JSON.stringify([plane.audit.events, [...plane.metrics.counts], plane.errors, summaries]);
    expect(told).not.toMatch(/-secret-|planted/);
    expect(told).toContain('Create an item');
  });

  test.for(onlyInHttp1([null]))('an event stream is forwarded as it arrives', async () => {
    const writes: ((text: string) => void)[] = [];
    await plane.upstream(HOST, (socket) => {
      socket.once('data', () => {
        writes.push((text) => socket.write(text));
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n');
      });
    });
    const client = await plane.open(HOST);
    client.write(get('/items/7'));
    expect(await readUntil(client, (got) => got.endsWith('data: 1\n\n'))).toContain('text/event-stream');
    writes[0]?.(`data: ${TOKEN}\n\n`);
    expect(await readUntil(client, (got) => got.endsWith('\n\n'))).toBe(`data: ${'*'.repeat(TOKEN.length)}\n\n`);
  });
});

describe('invariant 8, no way round a connector', () => {
  test.each([
    ['two slashes', '//items/7'],
    ['a double slash inside', '/items//7'],
    ['an escaped letter', '/%69tems/7'],
    ['an encoded slash and dots', '/x/..%2fitems/7'],
    ['a parameter', '/user;x'],
    ['a parameter inside', '/items;x/7'],
    ['a slash at the end', '/items/7/'],
    ['dots', '/x/../items/7'],
    ['a backslash', '/x/..\\items/7'],
    ['a fragment', '/user#x'],
  ])('%s never reaches a binding, and no credential is resolved', async (_name, path) => {
    expect(await ask(get(path))).toMatch(/^HTTP\/1\.1 400 .*ambiguous_target/s);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
    expect(lastEvent()).toMatchObject({
      type: 'sandbox.proxy.rejected',
      data: { 'svc.proxy.reason': 'ambiguous_target' },
    });
  });

  test('nor does another spelling of the method, or one in a header or the query', async () => {
    const inQuery = `POST /items/7/8?_method=get HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\n\r\n`;
    expect(await ask(inQuery.replace('/8', ''))).toMatch(/ambiguous_target/);
    expect(await ask(inQuery.replace('/7/8', ''))).toMatch(/effect_not_allowed/);
    expect(await ask(`get /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/ambiguous_target/);
    expect(await ask(get('/items', 'X-HTTP-Method-Override: post\r\n'))).toMatch(/ambiguous_target/);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
  });

  test.each([
    ['an operation', '/items', 'a=1&_method=delete'],
    ['a binding', '/items/7', '{"_method": "DELETE"}'],
  ])('nor does a method in the body of a request to %s', async (_where, path, body) => {
    const operations = [
      sampleOperation({ name: 'add', method: 'POST', path: '/items', effect: 'write', inputs: [] }),
      sampleOperation({ name: 'clear', method: 'DELETE', path: '/items', approval: 'required', inputs: [] }),
      sampleOperation({ name: 'remove', method: 'DELETE', path: '/items/{id}', approval: 'required' }),
    ];
    const binding = { ...bearerBinding(HOST), effect: 'write' } as const;
    plane.policy.use([binding], [sampleConnector(operations, { hosts: [HOST] })]);
    const request = (text: string): string =>
      `POST ${path} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    expect(await ask(request(body))).toMatch(/ambiguous_target/);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
    expect(await ask(request(body.replace('_', '-')))).toBe(DONE);
  });

  test.each([
    ['another case', '/Items', ''],
    ['a suffix', '/items.json', ''],
    ['a space at the end', '/items%20', ''],
    ['two encodings', '/%2569tems', ''],
    ['a NUL', '/items%00', ''],
    ['a header with the path', '/other', 'X-Original-URL: /items\r\n'],
    ['another such header', '/other', 'X_Rewrite_URL: /items\r\n'],
  ])(
    '%s: what needs an approval does not reach a binding either, and no approval is requested',
    async (_name, path, lines) => {
      plane.policy.use([{ ...bearerBinding(HOST), effect: 'write' }], [sampleConnector([CREATE], { hosts: [HOST] })]);
      const request = post('{"title":"x"}', lines).replace('/items', path);
      expect(await ask(request)).toMatch(/^HTTP\/1\.1 400 .*ambiguous_target/s);
      expect([plane.credentials.asked, plane.approvals.asked, seen]).toEqual([[], [], []]);
      expect(lastEvent().data).toMatchObject({ 'svc.proxy.reason': 'ambiguous_target' });
    },
  );

  test('beside an operation that needs an approval, a binding without an effect is read-only; with an effect it keeps that', async () => {
    const graphql = post('{"query":"mutation{mergePullRequest}"}').replace('/items', '/graphql');
    expect(await ask(graphql)).toMatch(/^HTTP\/1\.1 403 .*effect_not_allowed.*svc binding effect/s);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
    expect(lastEvent()).toMatchObject({
      type: 'sandbox.proxy.trust_denied',
      data: { 'svc.proxy.reason': 'effect_not_allowed' },
    });
    expect(await ask(get('/other'))).toBe(DONE);
    const operations = sampleConnector([CREATE], { hosts: [HOST] });
    plane.policy.use([{ ...bearerBinding(HOST), effect: 'write' }], [operations]);
    expect(await ask(graphql)).toBe(DONE);
    plane.policy.use([bearerBinding(HOST)], [sampleConnector([READ], { hosts: [HOST] })]);
    expect(await ask(graphql)).toBe(DONE);
    expect(seen.map((request) => request.slice(0, 10))).toEqual(['GET /other', 'POST /grap', 'POST /grap']);
  });

  test('other paths of the host use its binding as before', async () => {
    expect(await ask(get('/items/7/8'))).toBe(DONE);
    expect(seen[0]).toContain(`Bearer ${BOUND}`);
  });
});

describe('approvals', () => {
  test('no person is asked before an oauth2 credential can be used', async () => {
    const { spec } = sampleConnector([CREATE], { hosts: [HOST] });
    use([], { spec: { ...spec, credential: { kind: 'oauth2', scopes: [] } } });
    plane.credentials.refuse('reauthorisation_required');
    expect(await ask(post('{}'))).toMatch(/^HTTP\/1\.1 503 [^]*reauthorisation_required/);
    expect([plane.approvals.asked, seen]).toEqual([[], []]);
  });

  test('a request is held with its body, described in one line, and sent once approved', async () => {
    plane.approvals.holding = true;
    const client = await plane.open(HOST);
    client.write(post('{"title":"x"}'));
    await expect.poll(() => plane.approvals.asked.length).toBe(1);
    expect([seen, plane.credentials.asked, plane.budget.heldBytes]).toEqual([[], [], 13]);
    expect(plane.approvals.asked).toMatchObject([
      { sessionId: 'ses_test', summary: `Items: Create an item (POST ${HOST}, with a body of 13 bytes)` },
    ]);
    plane.approvals.decide('approved');
    expect(await readUntil(client, (got) => got.endsWith('done'))).toBe(DONE);
    expect(seen).toHaveLength(1);
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.proxied',
      data: { 'svc.approval.id': 'apr_1', 'svc.connector.fields': { titled: true } },
    });
    expect(plane.budget.heldBytes).toBe(0);
  });

  test.each(['approval_required', 'approval_denied'] as const)(
    '%s: nothing is sent, no credential is resolved, and the tunnel continues',
    async (decision) => {
      plane.approvals.decision = decision;
      const client = await plane.open(HOST);
      client.write(post('{}'));
      const got = await readUntil(client, (text) => text.endsWith('}\n'));
      expect(got).toMatch(new RegExp(`^HTTP/1\\.1 403 [^]*"code":"${decision}","message":"[^"]*apr_1"`));
      expect([plane.credentials.asked, seen, lastEvent().type]).toEqual([[], [], 'connector.proxy.rejected']);
      expect(lastEvent().data).toMatchObject({ 'svc.approval.id': 'apr_1', 'svc.proxy.reason': decision });
      client.write(get('/items/7'));
      expect(await readUntil(client, (text) => text.endsWith('done'))).toBe(DONE);
    },
  );

  test('an approval covers identical requests only: method, target, type and body make the fingerprint', async () => {
    const body = '{"title":"x"}';
    for (const request of [
      post(body),
      post(body, 'X-Other: 1\r\n'),
      post('{"title":"y"}'),
      post(body).replace('/items ', '/items?a ').replace('json', 'json'),
      post(body).replace('application/json', 'text/plain'),
    ]) {
      await ask(request);
    }
    const [first, same, ...others] = plane.approvals.asked.map(({ fingerprint }) => fingerprint);
    expect(same).toBe(first);
    expect(new Set([first, ...others]).size).toBe(4);
  });

  test('the approved content type is sent, even if Connection nominates it', async () => {
    await ask(post('{}', 'Content-Encoding: identity\r\nConnection: content-type, content-encoding\r\n'));
    expect(seen[0]).toMatch(/\r\nContent-Type: application\/json\r\n/);
    expect(seen[0]).toMatch(/\r\nContent-Encoding: identity\r\n/);
    expect(await ask(post('{}', 'Content-Type: text/plain\r\n'))).toMatch(/^HTTP\/1\.1 400 .*invalid_request/s);
    expect([seen.length, plane.approvals.asked.length]).toEqual([1, 1]);
  });

  test('a client that disconnects while it waits leaves nothing to send', async () => {
    plane.approvals.holding = true;
    const client = await plane.open(HOST);
    client.write(post('{}'));
    await expect.poll(() => plane.approvals.asked.length).toBe(1);
    client.destroy();
    await expect.poll(() => plane.audit.events.length).toBe(1);
    plane.approvals.decide('approved');
    await expect.poll(() => plane.openTunnels()).toBe(0);
    expect([seen, plane.credentials.asked, plane.budget.heldBytes]).toEqual([[], [], 0]);
    expect(lastEvent().type).toBe('connector.proxy.rejected');
  });
});

test('unreadable connectors refuse every request, to any host', async () => {
  plane.policy.refuse('connector_specs_invalid');
  expect(await ask(get('/anything'))).toMatch(/^HTTP\/1\.1 503 .*connector_specs_invalid/s);
  expect(lastEvent()).toMatchObject({
    type: 'sandbox.proxy.rejected',
    data: { 'svc.proxy.reason': 'connector_specs_invalid' },
  });
});
