import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { Operation, OperationInput } from '../../shared/model/connector.ts';
import { runReply } from '../../shared/wire/connectors/connectors.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';
import type { RunResult } from './operation_runner.ts';
import type { RunCaller } from './run_ports.ts';

const HOST = 'api.example.test';
const OTHER = 'eu.example.test';
const TOKEN = 'planted-connector-token-0123456789';
const REF = { owner: 'personal', path: 'connectors/acme/items' } as const;

const input = (name: string, place: OperationInput['in'], type: OperationInput['type'] = 'string'): OperationInput => ({
  name,
  in: place,
  type,
  required: place === 'path',
  description: '',
});
const READ = sampleOperation({
  inputs: [input('id', 'path'), input('q', 'query'), input('tags', 'query', 'array')],
  audit: [
    { name: 'item', source: 'path.id', redact: false },
    { name: 'searched', source: 'query.q', redact: true },
  ],
});
const LATEST = sampleOperation({ name: 'latest', path: '/items/latest', inputs: [], approval: 'required' });
const CREATE = sampleOperation({
  name: 'create-item',
  method: 'POST',
  path: '/items',
  effect: 'write',
  inputs: [input('title', 'body'), input('count', 'body', 'integer')],
});
const REMOVE = sampleOperation({ name: 'delete-item', method: 'DELETE', effect: 'delete', approval: 'required' });
const PROBE = sampleOperation({ name: 'probe-item', method: 'HEAD' });

let plane: DataPlane;
let seen: string[];
let reply: string;

beforeEach(async () => {
  seen = [];
  reply = replyText('{"ok":true}');
  plane = await startDataPlane();
  plane.credentials.set(REF, TOKEN);
  for (const host of [HOST, OTHER]) {
    await plane.upstream(
      host,
      createAnswering((sent) => (seen.push(sent), reply)),
    );
  }
  use([READ, LATEST, CREATE, REMOVE, PROBE]);
});

afterEach(async () => {
  expect(plane.budget.heldBytes).toBe(0);
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

function use(operations: readonly Operation[]): void {
  plane.policy.use([bearerBinding(HOST)], [sampleConnector(operations, { hosts: [HOST, OTHER] })]);
}

function replyText(body: string, lines = 'Content-Type: application/json\r\n', status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`;
}

const SHIM: RunCaller = {
  source: 'generated_connector_shim',
  sessionId: 'ses_test',
  choice: null,
  signal: new AbortController().signal,
};

function run(
  operation: string,
  args: Record<string, unknown> = {},
  more: object = {},
  caller = SHIM,
): Promise<RunResult> {
  return plane.operations.run({ connector_fqn: 'acme/items', operation, args, ...more }, caller);
}

function request(method: string, url: string, operation = 'get-item', fqn = 'acme/items'): Promise<RunResult> {
  const caller: RunCaller = { ...SHIM, source: 'daemon_request_boundary' };
  return plane.operations.request({ connector_fqn: fqn, operation, method, upstream_url: url }, caller);
}

/** Status, type and body, or the refusal's reason. */
function describeResult(result: RunResult): string {
  if (!result.ok) return result.error.reason;
  const { upstream_status: status, content_type: type, body_base64: body } = result.value;
  return `${status} ${type} ${Buffer.from(body, 'base64').toString('latin1')}`;
}

function lastEvent(): { readonly type: string; readonly data: Readonly<Record<string, unknown>> } {
  const event = plane.audit.events.at(-1);
  return { type: event?.type ?? '', data: { ...event?.data } };
}

describe('running an operation', () => {
  test('GET: sends the args in path and query, with the token, and returns the sanitised reply', async () => {
    const result = await run('get-item', { id: 'a b', q: 's3arch', tags: ['x', 'y'] });
    expect(describeResult(result)).toBe('200 application/json {"ok":true}');
    expect(runReply.safeParse(result.ok ? result.value : null).error).toBeUndefined();
    expect(seen).toEqual([
      `GET /items/a%20b?q=s3arch&tags=x&tags=y HTTP/1.1\r\nHost: ${HOST}\r\nAccept: */*\r\nUser-Agent: svc\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
    ]);
  });

  test('over the limit of its session: is refused, and gets no credential', async () => {
    plane.sessionLimits.set('ses_test', { requestsPerMinute: 1 });
    expect(describeResult(await run('get-item', { id: '1' }))).toContain('200');
    const before = plane.credentials.asked.length;
    expect(describeResult(await run('delete-item', { id: '2' }))).toBe('request_limit_reached');
    expect([seen.length, plane.credentials.asked.length]).toEqual([1, before]);
    expect(plane.approvals.asked).toEqual([]);
    expect(describeResult(await run('get-item', { id: '2' }, {}, { ...SHIM, sessionId: null }))).toContain('200');
  });

  test('counts the bytes of its body and of the body that it returns', async () => {
    plane.sessionLimits.set('ses_test', { bytesPerDay: 20 });
    expect(describeResult(await run('create-item', { title: 'ab', count: 2 }))).toContain('200');
    const sent = Buffer.byteLength('{"title":"ab","count":2}');
    expect(plane.bytesCounted('ses_test')).toBe(sent + '{"ok":true}'.length);
    expect(describeResult(await run('get-item', { id: '2' }))).toBe('request_limit_reached');
  });

  test('POST: sends the args as a JSON body', async () => {
    await run('create-item', { title: 'Größe', count: 2 });
    const body = Buffer.from('{"title":"Größe","count":2}').toString('latin1');
    expect(seen[0]).toBe(
      `POST /items HTTP/1.1\r\nHost: ${HOST}\r\nAccept: */*\r\nUser-Agent: svc\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n${body}`,
    );
  });

  test('HEAD: has no body, and goes to the requested host', async () => {
    reply = 'HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n';
    expect(describeResult(await run('probe-item', { id: '1' }, { host: OTHER }))).toBe('204  ');
    expect(seen[0]).toContain(`Host: ${OTHER}\r\n`);
  });

  test("is recorded once, and the answer has the event's id", async () => {
    const result = await run('get-item', { id: '7', q: 's3arch' });
    expect(plane.audit.events).toHaveLength(1);
    expect(result.ok && result.value.audit_id).toBe(`evt_${'1'.padStart(26, '0')}`);
    expect(lastEvent()).toEqual({
      type: 'connector.proxy.proxied',
      data: {
        'svc.proxy.source': 'generated_connector_shim',
        'svc.proxy.mediation': 'connector',
        'svc.proxy.method': 'GET',
        'svc.proxy.upstream.host': HOST,
        'svc.proxy.upstream.path': '/items/7',
        'svc.proxy.upstream.status': 200,
        'svc.connector.fqn': 'acme/items',
        'svc.connector.version': '1.0.0',
        'svc.connector.operation': 'get-item',
        'svc.connector.credential_ref': 'vault://connectors/acme/items',
        'svc.connector.fields': { item: '7', searched: true },
      },
    });
  });

  test("records the caller's tool name, also for a refused run, and never sends it upstream", async () => {
    await run('get-item', { id: '7' }, { tool: 'svc_run__acme_items__get-item' });
    await run('get-item', {}, { tool: 'svc_run__acme_items__get-item' });
    expect(plane.audit.events.map(({ type, data }) => [type, data['svc.connector.tool']])).toEqual([
      ['connector.proxy.proxied', 'svc_run__acme_items__get-item'],
      ['connector.proxy.rejected', 'svc_run__acme_items__get-item'],
    ]);
    expect(seen.join()).not.toContain('svc_run');
  });

  test.each([
    ['get-item', {}, {}, 'args.id is missing: a text'],
    ['get-item', { id: '..' }, {}, 'args.id is a dot segment'],
    ['get-item', { id: 'latest' }, {}, 'another operation'],
    ['get-item', { id: 'latest;x' }, {}, 'another operation'],
    ['create-item', { count: 1.5 }, {}, 'args.count must be a whole number'],
    ['get-item', { id: '1' }, { host: 'evil.example' }, 'host is not allowed'],
  ])(
    '%s: refuses args that do not fit, names the field, and records it: %o',
    async (operation, args, more, message) => {
      const result = await run(operation, args, more);
      expect(result).toMatchObject({ ok: false, error: { reason: 'invalid_args' } });
      expect(result.ok ? '' : result.error.message).toContain(message);
      expect([seen, plane.credentials.asked]).toEqual([[], []]);
      expect(lastEvent()).toMatchObject({
        type: 'connector.proxy.rejected',
        data: { 'svc.proxy.reason': 'invalid_args' },
      });
    },
  );

  test('answers not found for an operation that is not installed, and does not record it', async () => {
    expect(describeResult(await run('get-itme', { id: '1' }))).toBe('connector_operation_not_found');
    expect((await run('get-itme')).ok).toBe(false);
    expect(describeResult(await run('get-item', {}, { connector_fqn: 'acme/other' }))).toBe(
      'connector_operation_not_found',
    );
    expect(plane.audit.events).toEqual([]);
  });

  test('of an inactive connector needs a binding, asks nobody and uses no stored value, and is recorded', async () => {
    const inactive = sampleConnector([READ, REMOVE], { hosts: [HOST, OTHER], inactive: true });
    plane.policy.use([bearerBinding(HOST)], [inactive]);
    for (const operation of ['get-item', 'delete-item']) {
      expect(await run(operation, { id: '1' })).toMatchObject({
        error: { reason: 'binding_required', details: { connector_id: 'con_1' } },
      });
      expect(lastEvent()).toMatchObject({
        type: 'connector.proxy.rejected',
        data: { 'svc.proxy.reason': 'binding_required', 'svc.connector.operation': operation },
      });
    }
    expect([plane.approvals.asked, seen]).toEqual([[], []]);
  });

  test('without a credential: needs a binding; while the control plane is down, says so', async () => {
    plane.credentials.refuse('control_plane_unavailable');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('control_plane_unavailable');
    plane.credentials.refuse(null);
    plane.credentials.delete(REF);
    expect(await run('get-item', { id: '1' })).toMatchObject({
      error: { reason: 'binding_required', details: { connector_id: 'con_1' } },
    });
    expect(describeResult(await run('delete-item', { id: '1' }))).toBe('binding_required');
    expect([plane.approvals.asked, seen]).toEqual([[], []]);
  });

  test('passes the reason on when its token has to be authorised again', async () => {
    plane.credentials.refuse('reauthorisation_required');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('reauthorisation_required');
  });

  test.each([
    ['approval_required', 'approval_required'],
    ['approval_denied', 'approval_denied'],
    ['approved', '200 application/json {"ok":true}'],
  ] as const)('needs an approval and is %s', async (decision, expected) => {
    plane.approvals.decision = decision;
    const result = await run('delete-item', { id: '1' });
    expect(describeResult(result)).toBe(expected);
    expect(seen).toHaveLength(decision === 'approved' ? 1 : 0);
    expect(lastEvent().data).toMatchObject({ 'svc.approval.id': 'apr_1' });
    const details = decision === 'approved' ? undefined : { approval_id: 'apr_1' };
    expect(result.ok ? undefined : result.error.details).toEqual(details);
  });

  test('is refused while the audit log is full, and while connectors cannot be read', async () => {
    plane.audit.accepting = false;
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('audit_unavailable');
    plane.audit.accepting = true;
    plane.policy.refuse('connector_specs_invalid');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('connector_specs_invalid');
    expect(lastEvent()).toMatchObject({
      type: 'sandbox.proxy.rejected',
      data: { 'svc.proxy.source': 'generated_connector_shim' },
    });
    expect(plane.credentials.asked).toEqual([]);
  });
});

describe('the reply of a run', () => {
  test('is scrubbed, decoded, and has no header except its content type', async () => {
    const text = `${TOKEN} ${Buffer.from(TOKEN).toString('base64')}`;
    const packed = gzipSync(text).toString('latin1');
    reply = replyText(packed, `Content-Type: text/plain; x=${TOKEN}\r\nContent-Encoding: gzip\r\nSet-Cookie: a=b\r\n`);
    const got = await run('get-item', { id: '1' });
    expect(describeResult(got)).toMatch(/^200 text\/plain; x=\*+ \*+ \*+/);
    expect(JSON.stringify(got)).not.toContain('a=b');
  });

  test('is a redirect if the upstream redirects', async () => {
    reply = replyText('', `Location: https://${OTHER}/\r\n`, '302 Found');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('302  ');
    expect(seen).toHaveLength(1);
  });

  test('is refused over 4 MiB, also if it only exceeds that once decoded', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024 + 1, 'x');
    reply = replyText(large.toString('latin1'));
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('upstream_response_too_large');
    reply = replyText(gzipSync(large).toString('latin1'), 'Content-Encoding: gzip\r\n');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('upstream_response_too_large');
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.rejected',
      data: { 'svc.proxy.reason': 'upstream_response_too_large' },
    });
  });

  test.each([
    ['never begins', () => undefined, 'did not send its whole reply within 1 s'],
    [
      'never ends',
      (socket: { write(text: string): unknown }) => void socket.write('HTTP/1.1 200 OK\r\n\r\nx'),
      'did not send its whole reply within 1 s',
    ],
    ['breaks off', (socket: { end(text: string): unknown }) => void socket.end(replyText('12345').slice(0, -2)), ''],
    ['is none', (socket: { end(text: string): unknown }) => void socket.end('HTTP/2 200\r\n\r\n'), ''],
  ] as const)('is refused if it %s', async (_name, answer, message) => {
    await plane.stop();
    plane = await startDataPlane({ runTimeoutSeconds: message === '' ? 60 : 1 });
    plane.credentials.set(REF, TOKEN);
    use([READ]);
    await plane.upstream(HOST, (socket) => socket.once('data', () => answer(socket)));
    const result = await run('get-item', { id: '1' });
    expect(describeResult(result)).toMatch(/^upstream_(unreachable|invalid_reply)$/);
    expect(result.ok ? '' : result.error.message).toContain(message);
  });

  test('is refused if the upstream has another certificate, and nothing is sent', async () => {
    await plane.upstream(HOST, (socket) => socket.on('data', () => seen.push('sent')), 'other.example.test');
    expect(describeResult(await run('get-item', { id: '1' }))).toBe('upstream_tls_failed');
    expect(seen).toEqual([]);
  });

  test('has at most the size of the setting', async () => {
    await plane.stop();
    plane = await startDataPlane({ maxRunReplyBytes: 2048 });
    plane.credentials.set(REF, TOKEN);
    await plane.upstream(
      HOST,
      createAnswering(() => reply),
    );
    use([READ]);
    reply = replyText('x'.repeat(2048));
    expect(describeResult(await run('get-item', { id: '1' }))).toMatch(/^200 /);
    reply = replyText('x'.repeat(2049));
    const refused = await run('get-item', { id: '1' });
    expect([describeResult(refused), refused.ok ? '' : refused.error.message]).toEqual([
      'upstream_response_too_large',
      'the reply is larger than 2 KiB: ask for less at a time',
    ]);
  });

  test('is not waited for once the caller is gone', async () => {
    const gone = new AbortController();
    await plane.upstream(HOST, (socket) => socket.once('data', () => gone.abort()));
    expect(describeResult(await run('get-item', { id: '1' }, {}, { ...SHIM, signal: gone.signal }))).toBe(
      'upstream_unreachable',
    );
  });
});

describe('the sandbox-proxy request endpoint', () => {
  test('resolves by method, host and path, and returns the sanitised reply', async () => {
    expect(describeResult(await request('GET', `https://${HOST}/items/7`))).toBe('200 application/json {"ok":true}');
    expect(seen[0]).toMatch(new RegExp(`^GET /items/7 HTTP/1\\.1\r\nHost: ${HOST}\r\n[^]*Bearer ${TOKEN}`));
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.proxied',
      data: { 'svc.proxy.source': 'daemon_request_boundary', 'svc.connector.fields': { item: '7', searched: false } },
    });
  });

  test.each([
    ['another method', 'PUT', `https://${HOST}/items/7`, 'get-item', 'acme/items', 'connector_operation_not_found'],
    ['another path', 'GET', `https://${HOST}/other`, 'get-item', 'acme/items', 'connector_operation_not_found'],
    ['another host', 'GET', 'https://evil.example/items/7', 'get-item', 'acme/items', 'connector_operation_not_found'],
    ['another operation', 'GET', `https://${HOST}/items/7`, 'latest', 'acme/items', 'connector_operation_not_found'],
    ['another connector', 'GET', `https://${HOST}/items/7`, 'get-item', 'acme/x', 'connector_operation_not_found'],
    [
      'a literal that is another one',
      'GET',
      `https://${HOST}/items/latest`,
      'get-item',
      'acme/items',
      'connector_operation_not_found',
    ],
    ['plain http', 'GET', `http://${HOST}/items/7`, 'get-item', 'acme/items', 'invalid_request'],
    ['another port', 'GET', `https://${HOST}:8443/items/7`, 'get-item', 'acme/items', 'connector_operation_not_found'],
    ['user information', 'GET', `https://u:p@${HOST}/items/7`, 'get-item', 'acme/items', 'invalid_request'],
    ['a query', 'GET', `https://${HOST}/items/7?q=s3cret`, 'get-item', 'acme/items', 'invalid_request'],
    ['a fragment', 'GET', `https://${HOST}/items/7#s3cret`, 'get-item', 'acme/items', 'invalid_request'],
    ['a path alone', 'GET', '/items/7', 'get-item', 'acme/items', 'invalid_request'],
    ['two slashes', 'GET', `https://${HOST}//items/7`, 'get-item', 'acme/items', 'ambiguous_target'],
    ['dots', 'GET', `https://${HOST}/items/x/../7`, 'get-item', 'acme/items', 'ambiguous_target'],
  ])('refuses %s', async (_name, method, url, operation, fqn, reason) => {
    const result = await request(method, url, operation, fqn);
    expect(describeResult(result)).toBe(reason);
    expect(JSON.stringify([result, plane.audit.events])).not.toContain('s3cret');
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
  });

  test('sends an operation that needs no args, and says where to send the others', async () => {
    expect(describeResult(await request('POST', `https://${HOST}/items`, 'create-item'))).toMatch(/^200 /);
    expect(seen[0]).toMatch(/\r\n\r\n\{\}$/);
    use([sampleOperation({ inputs: [input('id', 'path'), { ...input('q', 'query'), required: true }] })]);
    const result = await request('GET', `https://${HOST}/items/7`);
    expect(result.ok ? '' : `${result.error.reason} ${result.error.message}`).toMatch(
      /^invalid_args args\.q is missing.*connector-operations\/run/,
    );
  });
});

test('three endpoints, one operation: the same upstream request, reply and approval, and the same event except its source', async () => {
  use([sampleOperation({ approval: 'required', audit: [{ name: 'item', source: 'path.id', redact: false }] })]);
  const told = replyText(`{"echo":"${TOKEN}"}`);
  reply = told;
  const shim = await run('get-item', { id: '7' });
  const boundary = await request('GET', `https://${HOST}/items/7`);
  const client = await plane.open(HOST);
  client.write(`GET /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  const transparent = await readUntil(client, (got) => got.length === told.length);
  expect(transparent).toBe(told.replace(TOKEN, '*'.repeat(TOKEN.length)));
  expect([describeResult(shim), describeResult(boundary)]).toEqual(
    Array(2).fill(`200 application/json ${transparent.split('\r\n\r\n')[1] ?? ''}`),
  );
  expect(new Set(seen.map((sent) => [sent.split('\r\n')[0], /Bearer \S+/.exec(sent)?.[0]].join())).size).toBe(1);
  expect(new Set(plane.approvals.asked.map(({ fingerprint }) => fingerprint)).size).toBe(1);
  const events = plane.audit.events.map(({ type, data }) => {
    const { 'svc.proxy.source': source, 'svc.approval.id': approval, ...rest } = data;
    return { source, approved: approval !== undefined, rest: JSON.stringify({ type, rest }) };
  });
  expect(events.map(({ source }) => source)).toEqual([
    'generated_connector_shim',
    'daemon_request_boundary',
    'transparent_connect_tls',
  ]);
  expect(new Set(events.map(({ rest, approved }) => rest + String(approved))).size).toBe(1);
});
