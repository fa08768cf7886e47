import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sampleConnector } from '../../shared/connect/testing/sample_connector.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { RunReply } from '../../shared/wire/connectors/connectors.ts';
import { HOST_TOKEN, LocalApiBench, type ApiReply } from '../testing/local_api_bench.ts';

const RUN = '/v1/connector-operations/run';
const REQUESTS = '/v1/sandbox-proxy/requests';
const INPUT = { connector_fqn: 'acme/items', operation: 'get-item', args: { id: '7' } };
const CANDIDATE = {
  connector_fqn: 'acme/items',
  operation: 'get-item',
  method: 'GET',
  upstream_url: 'https://api.example.test/items/7',
};
const REPLY: RunReply = {
  status: 'proxied',
  audit_id: `evt_${'0'.repeat(26)}`,
  connector_fqn: 'acme/items',
  operation: 'get-item',
  upstream_status: 200,
  content_type: 'application/json',
  body_base64: 'e30=',
};

let bench: LocalApiBench;

beforeEach(async () => {
  bench = await LocalApiBench.start();
  bench.running = () => Promise.resolve(ok(REPLY));
});

afterEach(() => bench.stop());

/** The answers to a call from a session's container with its token, another session's and the host's; '' if answered. */
async function codesInContainer(path: string, input?: object): Promise<readonly string[]> {
  const [one, two] = [await bench.createSession(), await bench.createSession()];
  const session = bench.sessions.get(one.id);
  if (session === null) throw new Error('no session');
  const tokens = [one.token, two.token, HOST_TOKEN];
  return Promise.all(tokens.map(async (token) => (await bench.callFromContainer(session, path, token, input)).code));
}

describe.each([
  [RUN, INPUT, 'generated_connector_shim'],
  [REQUESTS, CANDIDATE, 'daemon_request_boundary'],
] as const)('POST %s', (path, input, source) => {
  const call = (body: unknown, token: string | null): Promise<ApiReply> => bench.call('POST', path, body, token);

  it('answers a session in its own name, and the host', async () => {
    const session = await bench.createSession();
    expect(await call(input, session.token)).toMatchObject({ status: 200, body: REPLY });
    expect(await call(input, HOST_TOKEN)).toMatchObject({ status: 200, body: REPLY });
    expect(bench.runs).toMatchObject([
      { request: input, caller: { source, sessionId: session.id } },
      { request: input, caller: { source, sessionId: null } },
    ]);
  });

  it('runs with the account that the session chose', async () => {
    bench.bindings = [bearerBinding('api.example.test', { credential: { owner: 'personal', path: 'user/work' } })];
    const use_secrets = [{ reference: 'vault://user/work', by: 'option', from: null }];
    const { id, token } = await bench.createSession({ use_secrets });
    await call(input, token);
    await call(input, HOST_TOKEN);
    if (path === RUN) await bench.call('POST', path, input, HOST_TOKEN, { 'svc-acting-session': id });
    const chosen = bench.sessions.get(id)?.choice;
    expect(chosen).toMatchObject({ decisions: [{ paths: ['user/work'] }] });
    const runs = bench.runs.map(({ caller }) => caller.choice);
    expect(runs).toEqual(path === RUN ? [chosen, null, chosen] : [chosen, null]);
  });

  it('answers only its own session inside a container', async () => {
    expect(await codesInContainer(path, input)).toEqual(['', 'unauthenticated', 'unauthenticated']);
  });

  it('refuses a caller without a token or with an unknown one', async () => {
    expect(await call(input, null)).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(await call(input, 'svc_session_other')).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(bench.runs).toEqual([]);
  });

  it.each(['headers', 'body', 'query', 'authorization', 'credential'])('refuses %s', async (field) => {
    expect(await call({ ...input, [field]: 'x' }, HOST_TOKEN)).toMatchObject({ status: 400, code: 'invalid_input' });
    expect(bench.runs).toEqual([]);
  });

  it('refuses a body over 1 MiB, and one that is not JSON', async () => {
    expect((await call({ ...input, tool: 'x'.repeat(1024 * 1024) }, HOST_TOKEN)).code).toBe('body_too_large');
    expect((await call('{', HOST_TOKEN)).code).toBe('invalid_json');
  });

  it('has the limit of runs, not that of the API', async () => {
    const small = await LocalApiBench.start({ maxRunRequestBytes: 2_000 });
    const [fits, large] = ['x'.repeat(1_000), 'x'.repeat(2_000)];
    const codes = [];
    for (const q of [fits, large]) {
      const args = {
        ...input,
        ...('args' in input && { args: { q } }),
        ...('upstream_url' in input && { upstream_url: `https://a.test/${q}` }),
      };
      codes.push((await small.call('POST', path, args)).code === 'body_too_large');
    }
    expect(codes).toEqual([false, true]);
    const name = 'x'.repeat(3_000);
    expect((await small.call('POST', '/v1/sandbox-proxy/sessions', { name })).code).toBe('invalid_input');
    await small.stop();
  });

  it.each([
    ['invalid_args', 400],
    ['ambiguous_target', 400],
    ['approval_required', 403],
    ['approval_denied', 403],
    ['binding_required', 403],
    ['connector_operation_not_found', 404],
    ['upstream_unreachable', 502],
    ['upstream_response_too_large', 502],
    ['reauthorisation_required', 503],
    ['connector_specs_invalid', 503],
  ] as const)('answers %s with %i and what it names', async (reason, status) => {
    const details = { approval_id: 'apr_1' };
    bench.running = () => Promise.resolve(err({ reason, message: 'why and what to do', details }));
    const reply = await call(input, HOST_TOKEN);
    expect([reply.status, reply.code]).toEqual([status, reason]);
    expect(reply.body['error']).toMatchObject({ message: 'why and what to do', details });
  });

  it('counts as a tunnel of its session, and ends with it', async () => {
    const session = await bench.createSession();
    const live = bench.sessions.get(session.id);
    bench.running = ({ signal: gone }) =>
      new Promise((resolve) => {
        const stopped = { reason: 'upstream_unreachable', message: 'the session has ended' } as const;
        gone.addEventListener('abort', () => resolve(err(stopped)));
      });
    const running = Array.from({ length: 5 }, () => call(input, session.token));
    await expect.poll(() => live?.openTunnels).toBe(5);
    expect(await call(input, session.token)).toMatchObject({ status: 429, code: 'too_many_tunnels' });
    await bench.sessions.end(session.id);
    expect((await Promise.all(running)).map(({ code }) => code)).toEqual(Array(5).fill('upstream_unreachable'));
    expect(await call(input, session.token)).toMatchObject({ status: 401 });
  });
});

function acting(sessionId: string, token: string): Promise<ApiReply> {
  return bench.call('POST', RUN, INPUT, token, { 'svc-acting-session': sessionId });
}

describe('a run that the host token makes for a session', () => {
  it("is the session's: recorded as its own, and counted as one of its tunnels", async () => {
    const { id } = await bench.createSession();
    bench.running = () => {
      expect(bench.sessions.get(id)?.openTunnels).toBe(1);
      return Promise.resolve(ok(REPLY));
    };
    expect(await acting(id, HOST_TOKEN)).toMatchObject({ status: 200 });
    expect(bench.runs).toMatchObject([{ caller: { source: 'generated_connector_shim', sessionId: id } }]);
  });

  it('is refused once the session has ended', async () => {
    const { id } = await bench.createSession();
    await bench.sessions.end(id);
    expect(await acting(id, HOST_TOKEN)).toMatchObject({ status: 404, code: 'not_found' });
    expect(bench.runs).toEqual([]);
  });

  it('is refused to a session, for another session and for itself', async () => {
    const [one, two] = [await bench.createSession(), await bench.createSession()];
    expect(await acting(two.id, one.token)).toMatchObject({ status: 403, code: 'host_token_required' });
    expect(await acting(one.id, one.token)).toMatchObject({ status: 403, code: 'host_token_required' });
    expect(bench.runs).toEqual([]);
  });
});

describe('GET /v1/connector-operations', () => {
  const LIST = '/v1/connector-operations';
  const list = (token: string | null, query = '', headers = {}): Promise<ApiReply> =>
    bench.call('GET', `${LIST}${query}`, undefined, token, headers);

  it('returns the operations of every connector with the schema of their inputs', async () => {
    const { token } = await bench.createSession();
    bench.useConnectors([sampleConnector()]);
    for (const caller of [token, HOST_TOKEN]) {
      expect((await list(caller)).body).toEqual({
        items: [
          {
            connector_fqn: 'acme/items',
            connector_title: 'Items',
            operation: 'get-item',
            summary: 'Get an item',
            description: '',
            effect: 'read',
            approval: 'none',
            hosts: ['api.example.com'],
            input_schema: {
              type: 'object',
              properties: { id: { type: 'string', minLength: 1 } },
              required: ['id'],
              additionalProperties: false,
            },
            input_names: {},
            host_property: null,
          },
        ],
      });
    }
  });

  it('answers only its own session inside a container', async () => {
    expect(await codesInContainer(LIST)).toEqual(['', 'unauthenticated', 'unauthenticated']);
  });

  it('refuses a caller without a token', async () => {
    expect(await list(null)).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  it('is refused like requests while there is no policy', async () => {
    bench.policy = err(refusal('snapshot_expired', 'too old'));
    expect(await list(HOST_TOKEN)).toMatchObject({ status: 503, code: 'snapshot_expired' });
  });

  it.each(['?wait=26', '?wait=-1', '?wait=x', '?other=1'])('refuses a query such as %s', async (query) => {
    expect(await list(HOST_TOKEN, query)).toMatchObject({ status: 400, code: 'invalid_input' });
  });

  it('has a tag that changes only with the connectors', async () => {
    bench.useConnectors([sampleConnector()]);
    const { etag } = await list(HOST_TOKEN);
    bench.useConnectors([sampleConnector()]);
    expect(await list(HOST_TOKEN, '', { 'if-none-match': etag })).toMatchObject({ status: 304, text: '', etag });
    bench.useConnectors([sampleConnector(undefined, { contentHash: '1'.repeat(64) })]);
    expect(await list(HOST_TOKEN, '', { 'if-none-match': etag })).toMatchObject({ status: 200 });
  });

  it('waits for a change if asked to', async () => {
    const { etag } = await list(HOST_TOKEN);
    const waiting = list(HOST_TOKEN, '?wait=25', { 'if-none-match': etag });
    bench.useConnectors([sampleConnector()]);
    expect((await waiting).body).toMatchObject({ items: [{ operation: 'get-item' }] });
  });

  it('ends when the waiting session ends', async () => {
    const { id, token } = await bench.createSession();
    const { etag } = await list(token);
    const waiting = list(token, '?wait=25', { 'if-none-match': etag });
    await expect.poll(() => bench.sessions.get(id)?.openTunnels).toBe(1);
    await bench.sessions.end(id);
    expect(await waiting).toMatchObject({ status: 404, code: 'not_found' });
  });
});

describe('the sandbox-proxy request endpoint', () => {
  it.each(['get', 'GET /', ''])('refuses a method such as %j', async (method) => {
    expect((await bench.call('POST', REQUESTS, { ...CANDIDATE, method })).code).toBe('invalid_input');
  });

  it('is the only path below it that a session may call', async () => {
    const { token } = await bench.createSession();
    for (const path of [`${REQUESTS}/x`, '/v1/sandbox-proxy/sessions', '/v1/sandbox-proxy/step-scopes']) {
      expect((await bench.call('POST', path, {}, token)).code).toBe('host_token_required');
    }
  });
});
