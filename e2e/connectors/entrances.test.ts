import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { foundIn, formsOf, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { curlInSession } from '../support/session_curl.ts';
import { expectStatus, type Session } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

// One engine behind three endpoints. The transparent one is called with curl, as an agent would.

const HOST = 'entrances.example.test';
/** A host of the connector that nothing listens on. */
const DEAD_HOST = 'dead.example.test';
const input = (name: string, place: string, type = 'string') => ({ name, in: place, type, required: place === 'path' });
const item = input('id', 'path');
const SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/entrances', version: '1.0.0', title: 'Entrances' },
  hosts: [HOST, DEAD_HOST],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'search',
      method: 'GET',
      path: '/items/{id}/parts',
      effect: 'read',
      inputs: [item, input('q', 'query'), input('tags', 'query', 'array'), input('page', 'query', 'integer')],
      audit: [
        { name: 'item', source: 'path.id' },
        { name: 'searched', source: 'query.q', redact: true },
        { name: 'status', source: 'status' },
      ],
    },
    {
      name: 'guarded',
      method: 'GET',
      path: '/items/guarded/parts',
      effect: 'read',
      approval: 'required',
      inputs: [],
    },
    {
      name: 'create',
      method: 'POST',
      path: '/items',
      effect: 'write',
      inputs: [input('title', 'body'), input('count', 'body', 'number'), input('more', 'body', 'object')],
      audit: [{ name: 'titled', source: 'body.title', redact: true }],
    },
    { name: 'change', method: 'PATCH', path: '/items/{id}', effect: 'write', inputs: [item, input('title', 'body')] },
    {
      name: 'drop',
      method: 'DELETE',
      path: '/items/{id}',
      effect: 'delete',
      inputs: [item, input('force', 'query', 'boolean')],
    },
  ],
};
const SOURCES = ['daemon_request_boundary', 'generated_connector_shim', 'transparent_connect_tls'];

const SECRET = plantSecret();
/** What a caller sends: it goes to the upstream and is written down nowhere. */
const QUERY_VALUE = 'the-query-that-is-recorded-nowhere';
const BODY_VALUE = 'the body that is recorded nowhere, größer';

/** An operation as named in a run, and as sent over the wire. */
interface Case {
  readonly operation: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly method: string;
  readonly target: string;
  readonly body: string;
}
const CASES: readonly Case[] = [
  {
    operation: 'search',
    args: { id: 'a b/c', q: QUERY_VALUE, tags: ['x&y', 'z'], page: 2 },
    method: 'GET',
    target: `/items/a%20b%2Fc/parts?q=${QUERY_VALUE}&tags=x%26y&tags=z&page=2`,
    body: '',
  },
  {
    operation: 'create',
    args: { title: BODY_VALUE, count: 1.5, more: { deep: [1, null] } },
    method: 'POST',
    target: '/items',
    body: `{"title":"${BODY_VALUE}","count":1.5,"more":{"deep":[1,null]}}`,
  },
  {
    operation: 'change',
    args: { id: '7', title: BODY_VALUE },
    method: 'PATCH',
    target: '/items/7',
    body: `{"title":"${BODY_VALUE}"}`,
  },
  { operation: 'drop', args: { id: '7', force: true }, method: 'DELETE', target: '/items/7?force=true', body: '' },
];

/** The part of the upstream's reply that a caller receives. */
interface Seen {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}
const ran = z.object({
  audit_id: z.string(),
  upstream_status: z.number(),
  content_type: z.string(),
  body_base64: z.string(),
});
const eventPage = z.object({
  items: z.array(z.object({ data: z.record(z.string(), z.unknown()) })),
  next_cursor: z.string().nullish(),
});
const failed = z.object({ error: z.object({ code: z.string() }) });

let world: World;
let session: Session;
/** Everything that any endpoint printed or answered. */
const outputs: string[] = [];

beforeAll(async () => {
  world = await startWorld([HOST], { resolve: [`${DEAD_HOST}:127.0.0.1:9`] });
  const { id } = z.object({ id: z.string() }).parse((await world.svc.api('POST', '/v1/connectors', SPEC)).body);
  expectStatus(await world.svc.api('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: SECRET }), 200);
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

async function throughCurl({ method, target, body }: Case): Promise<Seen> {
  const data = body === '' ? [] : ['-H', 'Content-Type: application/json', '--data-binary', '@-'];
  const argv = ['-X', method, ...data, '-w', '\n%{http_code} %{content_type}', `https://${HOST}${target}`];
  const done = await curlInSession(world.svc, argv, body);
  outputs.push(done.stdout, done.stderr);
  const [, text = '', status = '', type = ''] = /^([^]*)\n(\d+) (.*)$/.exec(done.stdout) ?? [];
  return { status: Number(status), type, body: text };
}

async function local(path: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${session.token}`, 'content-type': 'application/json' };
  const url = `${world.svc.runFile.proxy_url}${path}`;
  const text = await (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  outputs.push(text);
  return JSON.parse(text);
}

const runBody = ({ operation, args }: Pick<Case, 'operation' | 'args'>, more: object = {}) => {
  return { connector_fqn: 'acme/entrances', operation, args, ...more };
};
const inSidecar = (run: object): Promise<unknown> => local('/v1/connector-operations/run', run);
async function inWorker(run: object): Promise<unknown> {
  const { body } = await world.svc.api('POST', '/v1/connector-operations/run', run);
  outputs.push(JSON.stringify(body));
  return body;
}

function readRun(body: unknown): Seen {
  const { upstream_status: status, content_type: type, body_base64: text } = ran.parse(body);
  return { status, type, body: Buffer.from(text, 'base64').toString() };
}

/** The last request as the upstream received it, without what a client says about itself. */
function readSent() {
  const request = world.upstream.last();
  const { method, target, serverName, body } = request;
  const [host, credential] = [request.headers('host'), request.headers('authorization')];
  return {
    method,
    target,
    serverName,
    host,
    credential,
    type: request.headers('content-type'),
    body: body.data.toString(),
  };
}

function expectedOf({ method, target, body }: Case): ReturnType<typeof readSent> {
  const type = body === '' ? [] : ['application/json'];
  return { method, target, serverName: HOST, host: [HOST], credential: [`Bearer ${SECRET}`], type, body };
}

/** The data of every event of a connector's request, newest first. */
async function listRecorded(): Promise<Record<string, unknown>[]> {
  await session.end();
  const found: Record<string, unknown>[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await world.svc.api('GET', `/v1/audit-events?type=connector.proxy.&limit=100${after}`);
    const { items, next_cursor: next } = eventPage.parse(page.body);
    found.push(...items.map(({ data }) => data));
    cursor = next ?? null;
  }
  return found;
}

const REPLIES = [
  ['a success that echoes the credential', 200, 'Content-Type: application/json; charset=utf-8'],
  ['a redirect', 302, `Content-Type: text/html\r\nLocation: https://${HOST}/elsewhere`],
  ['an error that echoes the credential', 500, 'Content-Type: text/plain'],
] as const;

describe.each(CASES)('$operation', (each) => {
  it.each(REPLIES)('is one request with one result through each endpoint, to %s', async (_, status, headers) => {
    world.upstream.onRequest(async (exchange) => {
      await exchange.readBody();
      const echo = `${SECRET} ${Buffer.from(SECRET).toString('base64')} ${encodeURIComponent(SECRET)} end`;
      exchange.write(reply(status, echo, [headers, 'Set-Cookie: session=of-the-upstream']));
    });
    const results: Seen[] = [];
    for (const ask of [
      throughCurl,
      (one: Case) => inSidecar(runBody(one)).then(readRun),
      (one: Case) => inWorker(runBody(one)).then(readRun),
    ]) {
      results.push(await ask(each));
      expect(readSent()).toEqual(expectedOf(each));
    }
    expect(world.upstream.requests).toHaveLength(3);
    const [first, ...others] = results;
    expect(first).toMatchObject({ status, body: expect.stringMatching(/^\*+ \*+.* end$/) });
    expect(others).toEqual([first, first]);
  });
});

describe('the audit log', () => {
  it('distinguishes the endpoints, and otherwise records the same for each', async () => {
    const [search] = CASES;
    if (search === undefined) throw new Error('there is no case');
    const before = (await listRecorded()).length;
    session = await world.svc.session();
    await throughCurl(search);
    await inSidecar(runBody(search));
    const url = `https://${HOST}${search.target.replace(/\?.*/, '')}`;
    const boundary = { connector_fqn: 'acme/entrances', operation: 'search', method: 'GET', upstream_url: url };
    await inWorker(runBody(search));
    expect(readRun(await local('/v1/sandbox-proxy/requests', boundary)).status).toBe(200);
    const all = await listRecorded();
    const events = all.slice(0, all.length - before);
    const sources = events.map((data) => String(data['svc.proxy.source'])).toSorted();
    expect(sources).toEqual([...SOURCES, 'generated_connector_shim'].toSorted());
    for (const { 'svc.proxy.source': source, ...data } of events) {
      // A boundary request is looked up by its URL, and has no query.
      const searched = source !== 'daemon_request_boundary';
      expect([source, data]).toEqual([
        source,
        {
          'svc.proxy.mediation': 'connector',
          'svc.proxy.method': 'GET',
          'svc.proxy.upstream.host': HOST,
          'svc.proxy.upstream.path': '/items/a%20b%2Fc/parts',
          'svc.proxy.upstream.status': 200,
          'svc.connector.fqn': 'acme/entrances',
          'svc.connector.version': '1.0.0',
          'svc.connector.operation': 'search',
          'svc.connector.credential_ref': 'vault://connectors/acme/entrances',
          'svc.connector.fields': { item: 'a b/c', searched, status: 200 },
        },
      ]);
    }
  });
});

/** Refused runs, through both run endpoints: the code of each. */
const REFUSALS: readonly (readonly [string, object, string])[] = [
  ['an arg of the wrong type', runBody({ operation: 'search', args: { id: 'x', page: BODY_VALUE } }), 'invalid_args'],
  ['a missing path input', runBody({ operation: 'search', args: { q: QUERY_VALUE } }), 'invalid_args'],
  ['path traversal in a path input', runBody({ operation: 'drop', args: { id: '..' } }), 'invalid_args'],
  ['args of an operation that asks', runBody({ operation: 'search', args: { id: 'guarded' } }), 'invalid_args'],
  ['an arg that is none', runBody({ operation: 'drop', args: { id: '1', forse: true } }), 'invalid_args'],
  [
    'a host of somebody else',
    runBody({ operation: 'drop', args: { id: '1' } }, { host: 'evil.example' }),
    'invalid_args',
  ],
  ['an operation that is none', runBody({ operation: 'serch', args: {} }), 'connector_operation_not_found'],
  [
    'a host that does not answer',
    runBody({ operation: 'drop', args: { id: '1' } }, { host: DEAD_HOST }),
    'upstream_unreachable',
  ],
];

describe('a run with', () => {
  it.each(REFUSALS)('%s is refused alike by both run endpoints, and reaches no upstream', async (_, run, code) => {
    const bodies = [await inSidecar(run), await inWorker(run)];
    expect(bodies.map((body) => failed.parse(body).error.code)).toEqual([code, code]);
    expect(world.upstream.requests).toEqual([]);
  });

  it.each([
    ['that is larger than 4 MiB', reply(200, Buffer.alloc(5 * 1024 * 1024, 'x')), 'upstream_response_too_large'],
    ['that is no HTTP', Buffer.from(`SSH-2.0-${SECRET}\r\n\r\n`), 'upstream_invalid_reply'],
    ['that ends too early', reply(200, SECRET).subarray(0, -4), 'upstream_invalid_reply'],
  ])('a reply %s is refused alike', async (_, bytes, code) => {
    world.upstream.onRequest(async (exchange) => {
      await exchange.readBody();
      exchange.socket.end(bytes);
    });
    const run = runBody({ operation: 'drop', args: { id: '1' } });
    const bodies = [await inSidecar(run), await inWorker(run)];
    expect(bodies.map((body) => failed.parse(body).error.code)).toEqual([code, code]);
  });

  it('a reply of malformed JSON is returned unchanged', async () => {
    world.upstream.onRequest((exchange) => exchange.write(reply(200, '{"open":', ['Content-Type: application/json'])));
    const run = runBody({ operation: 'drop', args: { id: '1' } });
    for (const body of [await inSidecar(run), await inWorker(run)]) {
      expect(readRun(body)).toEqual({ status: 200, type: 'application/json', body: '{"open":' });
    }
  });
});

describe('after all of it', () => {
  it('the credential is in no answer, event, log or file, and no query or body is in any of ours', async () => {
    const events = JSON.stringify(await listRecorded());
    const texts = { answers: outputs.join('\n'), events, output: world.svc.output };
    for (const [name, text] of Object.entries(texts)) expect([name, foundIn(text, SECRET)]).toEqual([name, []]);
    const files = searchFiles(world.svc.home, SECRET);
    expect(files.searched).toBeGreaterThan(5);
    expect(files.holding).toEqual([]);
    for (const value of [QUERY_VALUE, BODY_VALUE]) {
      expect([value, foundIn(events + world.svc.output, value)]).toEqual([value, []]);
      expect([value, searchFiles(world.svc.home, value).holding]).toEqual([value, []]);
    }
    // Proves that the search can find something: the upstream received it.
    expect(formsOf(SECRET)).toContain(SECRET);
  });
});
