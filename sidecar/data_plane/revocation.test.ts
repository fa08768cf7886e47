import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { isHttp2, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Policy changes between a request's decision and its sending, or during its reply. */

const HOST = 'api.example.test';
const SECRET = 'planted-bound-secret-0123456789';
const TOKEN = 'planted-connector-token-0123456789';
// On a host with operations that need approval, a binding without an effect would be read-only.
const BINDING: HostBinding = { ...bearerBinding(HOST), effect: 'write' };
const DELETE = sampleOperation({
  name: 'delete-item',
  method: 'DELETE',
  effect: 'delete',
  approval: 'required',
  audit: [],
});
const ENDPOINT = { method: 'POST', path: '/graphql', inputs: [], audit: [], effect: 'write' } as const;
const COMMENT = sampleOperation({
  name: 'comment',
  ...ENDPOINT,
  graphql: { type: 'mutation', fields: ['addComment'] },
});
const MUTATE = sampleOperation({ name: 'mutate', ...ENDPOINT, graphql: { type: 'mutation' }, approval: 'required' });
const CONNECTOR = sampleConnector([DELETE, COMMENT, MUTATE], { hosts: [HOST] });
const OTHER_HOST = 'other.example.test';

let plane: DataPlane;
let seen: string;
let upstream: TLSSocket | null;
let answer: string;

beforeEach(async () => {
  seen = '';
  upstream = null;
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN);
  await plane.upstream(HOST, (socket) => {
    upstream = socket;
    socket.on('data', (data) => {
      seen += data.toString('latin1');
      if (seen.includes('\r\n\r\n')) socket.write(answer);
    });
  });
  plane.policy.use([BINDING], [CONNECTOR]);
});

afterEach(async () => {
  expect(plane.budget.heldBytes).toBe(0);
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** Sends a head that announces a body, and returns a function that sends the body once the proxy waits for it. */
async function beginUpload(): Promise<{ readonly client: TLSSocket; finish(): Promise<string> }> {
  const client = await plane.open(HOST);
  client.write(`POST /x HTTP/1.1\r\nHost: ${HOST}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
  await readUntil(client, (got) => got.includes('100 Continue'));
  return {
    client,
    finish: () => {
      client.write('body');
      return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'));
    },
  };
}

const GONE = /^HTTP\/1\.1 503 .*"credential_unavailable"/s;

describe('while a body is uploaded', () => {
  const changes: readonly [string, () => void, RegExp][] = [
    ['the binding is removed', () => plane.policy.use([]), GONE],
    ['its effect is narrowed', () => plane.policy.use([{ ...BINDING, effect: 'read' }]), GONE],
    ['its allowed hosts are narrowed', () => plane.policy.use([{ ...BINDING, allowedHosts: [OTHER_HOST] }]), GONE],
    ['it names another secret', () => plane.policy.use([otherSecret(BINDING)]), GONE],
    ['another binding replaces it', () => plane.policy.use([{ ...BINDING, id: `bnd_${'7'.repeat(26)}` }]), GONE],
    [
      'the sidecar is revoked',
      () => plane.policy.refuse('control_plane_unavailable'),
      /^HTTP\/1\.1 503 .*"control_plane_/s,
    ],
  ];

  test.each(changes)('%s: the request is refused and nothing is sent', async (_what, change, refusal) => {
    const upload = await beginUpload();
    change();
    expect(await upload.finish()).toMatch(refusal);
    expect(seen).toBe('');
    expect(plane.audit.events.map(({ type }) => type)).toEqual(['sandbox.proxy.rejected']);
  });

  test('another binding is changed: the request continues', async () => {
    const upload = await beginUpload();
    plane.policy.use([structuredClone(BINDING), bearerBinding(OTHER_HOST)], [structuredClone(CONNECTOR)]);
    expect(await upload.finish()).toMatch(/^HTTP\/1\.1 200 .*done$/s);
    expect(seen).toContain(`Bearer ${SECRET}`);
  });
});

/** The operation is known only after the body. */
describe('while a GraphQL document is uploaded', () => {
  const DOCUMENT = 'mutation { addComment { id } }';

  async function beginDocument(): Promise<TLSSocket> {
    const client = await plane.open(HOST);
    client.write(graphqlHead(DOCUMENT, 'Expect: 100-continue\r\n'));
    await readUntil(client, (got) => got.includes('100 Continue'));
    return client;
  }

  function finish(client: TLSSocket): Promise<string> {
    client.write(graphqlBody(DOCUMENT));
    return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'));
  }

  test.each([
    ['its connector is removed', [] as const],
    ['its connector is replaced', [sampleConnector([DELETE, COMMENT], { hosts: [HOST] })] as const],
  ])('%s: the request is refused and nothing is sent', async (_what, connectors) => {
    const client = await beginDocument();
    plane.policy.use([BINDING], connectors);
    expect(await finish(client)).toMatch(GONE);
    expect(seen).toBe('');
    expect(plane.audit.events.at(-1)).toMatchObject({
      type: 'connector.proxy.rejected',
      data: { 'svc.proxy.reason': 'credential_unavailable', 'svc.connector.operation': 'comment' },
    });
  });

  test('another binding is changed: the request continues', async () => {
    const client = await beginDocument();
    plane.policy.use([structuredClone(BINDING), bearerBinding(OTHER_HOST)], [structuredClone(CONNECTOR)]);
    expect(await finish(client)).toMatch(/^HTTP\/1\.1 200 .*done$/s);
    expect(seen).toContain(`Bearer ${TOKEN}`);
  });
});

async function untilAsked(): Promise<void> {
  while (plane.approvals.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
}

describe('while a person decides', () => {
  const changes: readonly [string, () => void][] = [
    ['the connector is removed', () => plane.policy.use([BINDING])],
    [
      'another version of it is installed',
      () => plane.policy.use([], [sampleConnector([DELETE, COMMENT, MUTATE], { hosts: [OTHER_HOST] })]),
    ],
  ];
  const requests: readonly [string, string][] = [
    ['a request to an operation', `DELETE /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['a GraphQL document', graphqlHead('mutation { mergeItem }') + graphqlBody('mutation { mergeItem }')],
  ];
  const held = requests.flatMap(([what, request]) =>
    changes.map(([how, change]) => [how, what, request, change] as const),
  );

  test.each(held)('%s: the proxy does not send %s that is approved', async (_how, _what, request, change) => {
    plane.approvals.holding = true;
    const client = await plane.open(HOST);
    client.write(request);
    await untilAsked();
    change();
    plane.approvals.decide('approved');
    expect(await readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'))).toMatch(GONE);
    expect(seen).toBe('');
    expect(plane.audit.events.at(-1)).toMatchObject({
      type: 'connector.proxy.rejected',
      data: { 'svc.proxy.reason': 'credential_unavailable', 'svc.approval.id': 'apr_1' },
    });
  });

  test.each(changes)('%s: a run does not send it either', async (_what, change) => {
    plane.approvals.holding = true;
    const gone = new AbortController().signal;
    const request = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: '7' } };
    const running = plane.operations.run(request, {
      source: 'generated_connector_shim',
      sessionId: 'ses_test',
      choice: null,
      signal: gone,
    });
    await untilAsked();
    change();
    plane.approvals.decide('approved');
    expect(await running).toMatchObject({ ok: false, error: { reason: 'credential_unavailable' } });
    expect(seen).toBe('');
  });
});

const removeBindings = () => plane.policy.use([]);
const revokePolicy = () => plane.policy.refuse('control_plane_unavailable');

/** Sends a request; the dialling of its upstream waits until the test lets it through. */
async function sendHeld(request: string) {
  // The first upstream of a tunnel over HTTP/2 is dialled before its first request.
  const later = isHttp2() ? await openWithoutBinding() : null;
  const dials = await plane.hold(HOST);
  const client = later ?? (await plane.open(HOST));
  client.write(request);
  await dials.reached;
  return { client, dials };
}

/** A tunnel whose first upstream was used by a request without a credential. */
async function openWithoutBinding(): Promise<TLSSocket> {
  const client = await plane.open(HOST);
  plane.policy.use([]);
  client.write(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  await readUntil(client, (got) => got.endsWith('done'));
  plane.policy.use([BINDING], [CONNECTOR]);
  seen = '';
  return client;
}

describe('while the upstream is dialled', () => {
  const ask = `GET /x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  const run = `DELETE /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  const changes: readonly [string, string, () => void, RegExp][] = [
    ['the binding is removed', ask, removeBindings, GONE],
    ['it names another secret', ask, () => plane.policy.use([otherSecret(BINDING)], [CONNECTOR]), GONE],
    ['the sidecar is revoked', ask, revokePolicy, /^HTTP\/1\.1 503 .*"control_plane_/s],
    ['the connector is removed', run, () => plane.policy.use([BINDING]), GONE],
    ['the sidecar is revoked before an operation', run, revokePolicy, /^HTTP\/1\.1 503 .*"control_plane_/s],
  ];

  test.each(changes)('%s: the request is refused and nothing is sent', async (_what, request, change, refusal) => {
    const { client, dials } = await sendHeld(request);
    change();
    dials.letThrough();
    expect(await readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'))).toMatch(refusal);
    expect(seen).toBe('');
    expect(plane.audit.events.at(-1)?.type).toMatch(/[.]rejected$/);
  });

  test('the connector is removed: a run sends nothing either', async () => {
    const dials = await plane.hold(HOST);
    const gone = new AbortController().signal;
    const request = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: '7' } };
    const running = plane.operations.run(request, {
      source: 'generated_connector_shim',
      sessionId: 'ses_test',
      choice: null,
      signal: gone,
    });
    await dials.reached;
    plane.policy.use([BINDING]);
    dials.letThrough();
    expect(await running).toMatchObject({ ok: false, error: { reason: 'credential_unavailable' } });
    expect(seen).toBe('');
  });

  test.each([
    ['a request', ask],
    ['an operation', run],
  ])('the value ends: %s is refused and nothing is sent', async (_what, request) => {
    let isOver = false;
    plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET, '1', () => isOver);
    plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN, '1', () => isOver);
    const { client, dials } = await sendHeld(request);
    isOver = true;
    dials.letThrough();
    expect(await readUntil(client, (got) => got.endsWith('}\n'))).toMatch(GONE);
    expect(seen).toBe('');
  });

  test('the value ends: a run sends nothing either', async () => {
    let isOver = false;
    plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN, '1', () => isOver);
    const dials = await plane.hold(HOST);
    const request = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: '7' } };
    const running = plane.operations.run(request, {
      source: 'generated_connector_shim',
      sessionId: 'ses_test',
      choice: null,
      signal: new AbortController().signal,
    });
    await dials.reached;
    isOver = true;
    dials.letThrough();
    expect(await running).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable', message: expect.stringContaining('ended while this request was') },
    });
    expect(seen).toBe('');
  });

  test('the client is gone: nothing is sent', async () => {
    const { client, dials } = await sendHeld(ask);
    client.destroy();
    await expect.poll(() => plane.openTunnels()).toBe(0);
    dials.letThrough();
    await plane.stop();
    expect(seen).toBe('');
  });

  test('another binding is changed: the request continues', async () => {
    const { client, dials } = await sendHeld(ask);
    plane.policy.use([structuredClone(BINDING), bearerBinding(OTHER_HOST)], [structuredClone(CONNECTOR)]);
    dials.letThrough();
    expect(await readUntil(client, (got) => got.endsWith('done'))).toMatch(/^HTTP\/1\.1 200 /);
    expect(seen).toContain(`Bearer ${SECRET}`);
  });
});

describe('while a reply is streamed', () => {
  const stream = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n';
  const upgraded = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';
  const handshake = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';

  test.each<readonly [string, string, string, string]>([
    ['an event stream', '', stream, 'one'],
    ...(isHttp2() ? [] : [['a WebSocket', handshake, upgraded, '101'] as const]),
  ])('%s ends on both sides when its binding is removed', async (_what, lines, reply, begun) => {
    answer = reply;
    const client = await plane.open(HOST);
    client.on('error', () => undefined);
    client.write(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`);
    await readUntil(client, (got) => got.includes(begun));
    const ends = [waitForClose(client), waitForClose(upstream)];
    plane.policy.use([structuredClone(BINDING)]);
    expect([client.destroyed, plane.policy.watched]).toEqual([false, 1]);
    plane.policy.use([]);
    await Promise.all(ends);
    expect(plane.policy.watched).toBe(0);
  });

  test('the value ends: the reply to a request that was sent in time continues, also when the policy changes', async () => {
    let isOver = false;
    plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET, '1', () => isOver);
    answer = stream;
    const client = await plane.open(HOST);
    client.write(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await readUntil(client, (got) => got.includes('one'));
    isOver = true;
    plane.policy.use([structuredClone(BINDING)], [structuredClone(CONNECTOR)]);
    upstream?.write('data: two\n\n');
    expect(await readUntil(client, (got) => got.includes('two'))).toContain('two');
    client.destroy();
  });

  test('stops watching once no exchange waits', async () => {
    const client = await plane.open(HOST);
    client.write(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await readUntil(client, (got) => got.endsWith('done'));
    client.write(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await readUntil(client, (got) => got.endsWith('done'));
    expect(plane.policy.watched).toBeLessThan(2);
  });
});

function graphqlBody(document: string): string {
  return JSON.stringify({ query: document });
}

function graphqlHead(document: string, lines = ''): string {
  const size = graphqlBody(document).length;
  return `POST /graphql HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\n${lines}Content-Length: ${size}\r\n\r\n`;
}

function otherSecret(binding: HostBinding): HostBinding {
  return { ...binding, credential: { owner: 'personal', path: 'user/other' } };
}

function waitForClose(socket: TLSSocket | null): Promise<void> {
  return new Promise((resolve) => {
    if (socket === null) throw new Error('there is no connection');
    socket.resume();
    socket.once('close', () => resolve());
    socket.once('end', () => socket.end());
  });
}
