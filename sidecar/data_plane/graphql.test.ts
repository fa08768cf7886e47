import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { Operation } from '../../shared/model/connector.ts';
import type { RunResult } from '../connector/operation_runner.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Requests to GraphQL endpoints of connectors, through every endpoint of the sidecar (docs/decisions/0043). */

const HOST = 'api.example.test';
const TOKEN = 'planted-connector-token-0123456789';
const BOUND = 'planted-bound-secret-0123456789';
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';
const FIELDS = [{ name: 'fields', source: 'graphql.fields', redact: false }];

function graphql(name: string, changes: Partial<Operation>): Operation {
  const inputs = [{ name: 'query', in: 'body', type: 'string', required: true, description: '' } as const];
  const endpoint = { method: 'POST', path: '/graphql', summary: name, inputs, audit: FIELDS } as const;
  return sampleOperation({ name, ...endpoint, ...changes });
}

const READ = graphql('read', { graphql: { type: 'query' } });
const COMMENT = graphql('comment', { graphql: { type: 'mutation', fields: ['addComment'] }, effect: 'write' });
const OTHER = graphql('other', { graphql: { type: 'mutation' }, effect: 'write', approval: 'required' });
const OPERATIONS = [READ, COMMENT, OTHER, sampleOperation()];

let plane: DataPlane;
let seen: string[];

beforeEach(async () => {
  seen = [];
  plane = await startDataPlane({ maxGraphqlBodyBytes: 4096 });
  plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN);
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, BOUND);
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), DONE)),
  );
  plane.policy.use([{ ...bearerBinding(HOST), effect: 'write' }], [sampleConnector(OPERATIONS, { hosts: [HOST] })]);
});

afterEach(async () => {
  expect(plane.budget.heldBytes).toBe(0);
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

const of = (query: string, more: object = {}): string => JSON.stringify({ query, ...more });
const JSON_LINE = 'Content-Type: application/json\r\n';

function post(body: string | Buffer, lines = JSON_LINE, target = '/graphql', method = 'POST'): Buffer {
  const bytes = Buffer.from(body);
  const head = `${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${bytes.length}\r\n${lines}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

function get(target: string, lines = '', method = 'GET'): Buffer {
  return Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`, 'latin1');
}

async function ask(request: Buffer): Promise<string> {
  const client = await plane.open(HOST);
  client.write(request);
  return readUntil(client, (got) => /done$|}\n$|\r\n\r\n$/.test(got));
}

function lastEvent(): { readonly type: string; readonly data: Readonly<Record<string, unknown>> } {
  const event = plane.audit.events.at(-1);
  return { type: event?.type ?? '', data: { ...event?.data } };
}

/** The code of a refusal, after checking that it was logged and that nothing reached the upstream. */
async function refusal(request: Buffer): Promise<string | undefined> {
  const got = await ask(request);
  const code = /"code":"(\w+)"/.exec(got)?.[1];
  expect([seen, lastEvent().data['svc.proxy.reason']]).toEqual([[], code]);
  return code;
}

describe('a request to a GraphQL endpoint', () => {
  test('is recognised by its document, and forwarded unchanged', async () => {
    const body = of('query Q { viewer { login } }', { operationName: 'Q' });
    expect(await ask(post(body))).toBe(DONE);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toContain(`\r\nAuthorization: Bearer ${TOKEN}\r\n`);
    expect(seen[0]?.endsWith(`\r\n\r\n${body}`)).toBe(true);
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.proxied',
      data: { 'svc.connector.operation': 'read', 'svc.connector.fields': { fields: 'query viewer' } },
    });
  });

  test('is held for an approval that names every field, and sent once approved', async () => {
    plane.approvals.holding = true;
    const client = await plane.open(HOST);
    client.write(post(of('mutation { innocent: deleteRepository { id } again: deleteRepository { id } }')));
    await expect.poll(() => plane.approvals.asked.length).toBe(1);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
    expect(plane.approvals.asked[0]?.summary).toMatch(
      /^Items: mutation deleteRepository \(2 times\): other \(POST api\.example\.test, with a body of \d+ bytes\)$/,
    );
    plane.approvals.decide('approved');
    expect(await readUntil(client, (got) => got.endsWith('done'))).toBe(DONE);
    expect(lastEvent().data).toMatchObject({
      'svc.connector.operation': 'other',
      'svc.connector.fields': { fields: 'mutation deleteRepository (2 times)' },
    });
  });

  test('needs no approval for a mutation that its connector lists without one', async () => {
    expect(await ask(post(of('mutation { addComment { id } }')))).toBe(DONE);
    expect([plane.approvals.asked, lastEvent().data['svc.connector.operation']]).toEqual([[], 'comment']);
  });

  test('is read the same in pieces and in chunks', async () => {
    const body = of('mutation { deleteRepository { id } }');
    plane.approvals.decision = 'approval_denied';
    const head = `POST /graphql HTTP/1.1\r\nHost: ${HOST}\r\n${JSON_LINE}Transfer-Encoding: chunked\r\n\r\n`;
    const chunks = Array.from(body, (character) => `1\r\n${character}\r\n`).join('');
    expect(await refusal(Buffer.from(`${head}${chunks}0\r\n\r\n`))).toBe('approval_denied');
  });
});

/** The host has a binding that allows everything, so a request that bypasses the connector would get its credential. */
describe('a document cannot be bypassed, to the binding or beside another one', () => {
  const MERGE = 'mutation { deleteRepository { id } }';

  test.each([
    ['no JSON', post('query { viewer }')],
    ['a batch', post(`[${of('{ viewer }')},${of(MERGE)}]`)],
    ['a key twice', post(`{"query":"{ viewer }","query":${JSON.stringify(MERGE)}}`)],
    ['a persisted query', post('{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"0"}}}')],
    ['a document in the query too', post(of('{ viewer }'), JSON_LINE, `/graphql?query=${encodeURIComponent(MERGE)}`)],
    ['a document only in the query', post('', JSON_LINE, `/graphql?query=${encodeURIComponent(MERGE)}`)],
    ['a form', post(`query=${encodeURIComponent(MERGE)}`, 'Content-Type: application/x-www-form-urlencoded\r\n')],
    ['a document alone', post(MERGE, 'Content-Type: application/graphql\r\n')],
    ['text', post(of(MERGE), 'Content-Type: text/plain\r\n')],
    ['no type', post(of(MERGE), '')],
    ['two types', post(of(MERGE), `${JSON_LINE}Content-Type: text/plain\r\n`)],
    ['parts', post(of(MERGE), 'Content-Type: multipart/form-data; boundary=x\r\n')],
    ['UTF-16', post(Buffer.from(of(MERGE), 'utf16le'), 'Content-Type: application/json; charset=utf-16\r\n')],
    ['undeclared UTF-16', post(Buffer.from(of(MERGE), 'utf16le'))],
    ['a compressed body', post(gzipSync(of(MERGE)), `${JSON_LINE}Content-Encoding: gzip\r\n`)],
    ['an undeclared compressed body', post(gzipSync(of(MERGE)))],
    ['no body', get('/graphql', JSON_LINE, 'POST')],
    ['another method in a header', post(of('{ viewer }'), `${JSON_LINE}X-HTTP-Method-Override: PUT\r\n`)],
  ])('%s is refused', async (_what, request) => {
    expect(await refusal(request)).toBe('graphql_unreadable');
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.rejected',
      data: { 'svc.connector.fqn': 'acme/items' },
    });
    expect(plane.credentials.asked).toEqual([]);
  });

  test.each([
    ['a mutation beside another', post(of('mutation { addComment { id } deleteRepository { id } }'))],
    ['a mutation beside one in a fragment', post(of(`mutation { addComment { id } ...F } fragment F on M { drop }`))],
    ['a subscription', post(of('subscription { issueUpdated { id } }'))],
    ['GET', get(`/graphql?query=${encodeURIComponent(MERGE)}`)],
    ['GET of a query', get('/graphql?query={viewer}')],
    ['HEAD', get(`/graphql?query=${encodeURIComponent(MERGE)}`, '', 'HEAD')],
    ['OPTIONS', get('/graphql', '', 'OPTIONS')],
    ['PUT', post(of(MERGE), JSON_LINE, '/graphql', 'PUT')],
    ['an unknown method', post(of(MERGE), JSON_LINE, '/graphql', 'QUERY')],
    ['an upgrade', get('/graphql', 'Upgrade: websocket\r\nConnection: Upgrade\r\n')],
  ])('%s is refused', async (_what, request) => {
    const got = await ask(request);
    expect(got).toMatch(/^HTTP\/1\.1 40[03] /);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
    expect(lastEvent().data['svc.proxy.reason']).toMatch(/^graphql_/);
  });

  test.each([
    '/graphql/',
    '//graphql',
    '/x/../graphql',
    '/gr%61phql',
    '/graphql;x=1',
    '/%2e/graphql',
    '/GraphQL',
    '/graphql.json',
    '/graphql%2F',
  ])('another spelling of the path is refused too: %s', async (path) => {
    expect(await refusal(post(of(MERGE), JSON_LINE, path))).toBe('ambiguous_target');
    expect(await ask(get(`${path}?query=${encodeURIComponent(MERGE)}`))).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(seen).toEqual([]);
  });

  test('a body over the limit is refused before it is sent, and while it arrives', async () => {
    const large = of(`{ viewer(x: "${'x'.repeat(5000)}") }`);
    expect(await ask(post(large))).toMatch(/^HTTP\/1\.1 413 [^]*SVC_MAX_GRAPHQL_BODY_BYTES/);
    const head = `POST /graphql HTTP/1.1\r\nHost: ${HOST}\r\n${JSON_LINE}Transfer-Encoding: chunked\r\n\r\n`;
    expect(await ask(Buffer.from(`${head}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`))).toMatch(
      /^HTTP\/1\.1 413 /,
    );
    expect(seen).toEqual([]);
  });

  test('another host, and a request that cannot be recorded, are refused before the body is read', async () => {
    const other = post(of('{ viewer }')).toString('latin1').replace(`Host: ${HOST}`, 'Host: other.example.test');
    expect(await refusal(Buffer.from(other, 'latin1'))).toBe('authority_mismatch');
    plane.audit.accepting = false;
    expect(await ask(post(of('{ viewer }')))).toMatch(/^HTTP\/1\.1 503 [^]*audit_unavailable/);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
  });

  test('other paths are handled as before', async () => {
    await ask(get('/other'));
    expect(lastEvent().type).toBe('sandbox.proxy.binding_injected');
  });
});

const reason = (result: RunResult): string => (result.ok ? result.value.operation : result.error.reason);

describe('GraphQL operations by name', () => {
  const caller = {
    source: 'generated_connector_shim',
    sessionId: 'ses_test',
    choice: null,
    signal: new AbortController().signal,
  } as const;
  const run = (operation: string, query: string): Promise<RunResult> =>
    plane.operations.run({ connector_fqn: 'acme/items', operation, args: { query } }, caller);

  test('an operation runs its own documents, and no other operation’s', async () => {
    expect(reason(await run('read', '{ viewer }'))).toBe('read');
    expect(lastEvent().data).toMatchObject({ 'svc.connector.fields': { fields: 'query viewer' } });
    for (const query of ['mutation { deleteRepository { id } }', 'mutation { addComment { id } }', '{ viewer', '']) {
      expect(reason(await run('read', query))).toBe('invalid_args');
    }
    expect(seen).toHaveLength(1);
  });

  test('an approval is requested with every field', async () => {
    plane.approvals.decision = 'approval_required';
    expect(reason(await run('other', 'mutation { deleteRepository { id } }'))).toBe('approval_required');
    expect(plane.approvals.asked[0]?.summary).toMatch(/^Items: mutation deleteRepository: other /);
    expect(seen).toEqual([]);
  });

  test('the sandbox-proxy request endpoint accepts no body, so it has no document to send', async () => {
    const request = {
      connector_fqn: 'acme/items',
      operation: 'read',
      method: 'POST',
      upstream_url: `https://${HOST}/graphql`,
    };
    expect(reason(await plane.operations.request(request, { ...caller, source: 'daemon_request_boundary' }))).toBe(
      'invalid_args',
    );
    const other = { ...request, operation: 'get-item' };
    expect(reason(await plane.operations.request(other, { ...caller, source: 'daemon_request_boundary' }))).toBe(
      'connector_operation_not_found',
    );
  });
});
