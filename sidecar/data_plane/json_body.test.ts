import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { Operation } from '../../shared/model/connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { RunResult } from '../connector/operation_runner.ts';
import { createAnswering, type DataPlane, isHttp2, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Requests whose JSON body decides which operation they are, through every endpoint of the sidecar (docs/decisions/0101). */

const HOST = 'api.example.test';
const TOKEN = 'planted-connector-token-0123456789';
const BOUND = 'planted-bound-secret-0123456789';
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';
const AMOUNT = { name: 'amount', in: 'body', type: 'number', required: true, description: '' } as const;

function refund(name: string, changes: Partial<Operation>): Operation {
  const endpoint = { method: 'POST', path: '/refunds', summary: name, effect: 'write', inputs: [AMOUNT] } as const;
  return sampleOperation({ name, ...endpoint, ...changes });
}

const SMALL = refund('small', { json: [{ pointer: '/amount', atMost: 100 }] });
const OTHER = refund('other', { approval: 'required' });

let plane: DataPlane;
let seen: string[];

beforeEach(async () => {
  seen = [];
  plane = await startDataPlane({ maxReadBodyBytes: 4096 });
  plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, TOKEN);
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, BOUND);
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), DONE)),
  );
  use([SMALL, OTHER, sampleOperation()]);
});

afterEach(async () => {
  expect(plane.budget.heldBytes).toBe(0);
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** The host has a binding that allows everything, so a request that bypasses the connector would get its credential. */
function use(operations: readonly Operation[]): void {
  const bound = { ...bearerBinding(HOST), effect: 'write' } as const;
  plane.policy.use([bound], [sampleConnector(operations, { hosts: [HOST] })]);
}

const JSON_LINE = 'Content-Type: application/json\r\n';

function post(body: string | object, lines = JSON_LINE, target = '/refunds', method = 'POST'): Buffer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const length = Buffer.byteLength(text);
  return Buffer.from(
    `${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${length}\r\n${lines}\r\n${text}`,
  );
}

async function ask(request: Buffer): Promise<string> {
  const client = await plane.open(HOST);
  client.write(request);
  return readUntil(client, (got) => /done$|}\n$|\r\n\r\n$/.test(got));
}

const lastData = (): Readonly<Record<string, unknown>> => ({ ...plane.audit.events.at(-1)?.data });

/** The code of a refusal, after checking that it was logged, and that neither a credential nor the request went anywhere. */
async function refusal(request: Buffer): Promise<string | undefined> {
  const code = /"code":"(\w+)"/.exec(await ask(request))?.[1];
  expect([seen, plane.credentials.asked, lastData()['svc.proxy.reason']]).toEqual([[], [], code]);
  return code;
}

describe('a request whose JSON body decides', () => {
  test('is the operation whose rules hold, and forwarded unchanged', async () => {
    const body = '{ "note" : "ü",\n"amount":100 }';
    expect(await ask(post(body))).toBe(DONE);
    expect(seen[0]).toContain(`\r\nAuthorization: Bearer ${TOKEN}\r\n`);
    expect(
      Buffer.from(seen[0] ?? '', 'latin1')
        .toString('utf8')
        .endsWith(`\r\n\r\n${body}`),
    ).toBe(true);
    expect(lastData()).toMatchObject({ 'svc.connector.operation': 'small' });
    expect(plane.approvals.asked).toEqual([]);
  });

  test('is held for the approval of the operation that it is', async () => {
    plane.approvals.holding = true;
    const client = await plane.open(HOST);
    client.write(post({ amount: 101 }));
    await expect.poll(() => plane.approvals.asked.length).toBe(1);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
    plane.approvals.decide('approved');
    expect(await readUntil(client, (got) => got.endsWith('done'))).toBe(DONE);
    expect(lastData()).toMatchObject({ 'svc.connector.operation': 'other' });
  });

  test('is read the same in chunks', async () => {
    plane.approvals.decision = 'approval_denied';
    const head = `POST /refunds HTTP/1.1\r\nHost: ${HOST}\r\n${JSON_LINE}Transfer-Encoding: chunked\r\n\r\n`;
    const chunks = Array.from('{"amount":101}', (character) => `1\r\n${character}\r\n`).join('');
    expect(await refusal(Buffer.from(`${head}${chunks}0\r\n\r\n`))).toBe('approval_denied');
  });

  test('is the one without rules if it has no body', async () => {
    plane.approvals.decision = 'approval_denied';
    // In HTTP/2 no length says so: a body that is not there has no frame.
    for (const length of isHttp2() ? [''] : ['', 'Content-Length: 0\r\n']) {
      const request = Buffer.from(`POST /refunds HTTP/1.1\r\nHost: ${HOST}\r\n${length}\r\n`);
      expect(await refusal(request)).toBe('approval_denied');
    }
  });

  test.each([
    ['an amount in another letter case', post({ amount: 1, Amount: 1000 })],
    ['an amount twice', post('{"amount":1,"amount":1000}')],
    ['a text', post({ amount: '1000' })],
    ['a batch', post([{ amount: 1 }, { amount: 1000 }])],
    ['an amount in the query too', post({ amount: 1 }, JSON_LINE, '/refunds?amount=1000')],
    ['a form', post('amount=1000', 'Content-Type: application/x-www-form-urlencoded\r\n')],
    ['no type', post({ amount: 1 }, '')],
    ['a compressed body', post({ amount: 1 }, `${JSON_LINE}Content-Encoding: gzip\r\n`)],
    ['another method in a header', post({ amount: 1 }, `${JSON_LINE}X-HTTP-Method-Override: PUT\r\n`)],
  ])('is refused with %s', async (_what, request) => {
    expect(await refusal(request)).toBe('json_unreadable');
  });

  test('is refused if it is none of the operations, and never gets a binding’s credential', async () => {
    use([SMALL]);
    expect(await refusal(post({ amount: 101 }))).toBe('json_operation_not_allowed');
    expect(await refusal(post({}))).toBe('json_operation_not_allowed');
    expect(lastData()).toMatchObject({ 'svc.connector.fqn': 'acme/items' });
  });

  test.each(['/refunds/', '//refunds', '/x/../refunds', '/refund%73', '/refunds;x=1', '/Refunds', '/refunds.json'])(
    'is refused with another spelling of its path: %s',
    async (path) => {
      use([SMALL, refund('other', {})]);
      expect(await refusal(post({ amount: 1 }, JSON_LINE, path))).toBe('ambiguous_target');
    },
  );

  test('is refused if its body names another method that is an operation', async () => {
    const removal = sampleOperation({ name: 'remove', method: 'DELETE', path: '/refunds', effect: 'delete' });
    use([SMALL, OTHER, removal]);
    expect(await refusal(post({ amount: 1, _method: 'DELETE' }))).toBe('ambiguous_target');
  });

  test('is refused with another method that its operation’s server could take for it', async () => {
    expect(await refusal(post({ amount: 1 }, `${JSON_LINE}X-HTTP-Method-Override: POST\r\n`, '/refunds', 'PUT'))).toBe(
      'ambiguous_target',
    );
  });

  test('is refused over its limit, before it is sent and while it arrives', async () => {
    const large = JSON.stringify({ amount: 1, note: 'x'.repeat(5000) });
    expect(await ask(post(large))).toMatch(/^HTTP\/1\.1 413 [^]*SVC_MAX_READ_BODY_BYTES/);
    const head = `POST /refunds HTTP/1.1\r\nHost: ${HOST}\r\n${JSON_LINE}Transfer-Encoding: chunked\r\n\r\n`;
    const chunked = `${head}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    expect(await ask(Buffer.from(chunked))).toMatch(/^HTTP\/1\.1 413 /);
    expect(seen).toEqual([]);
  });

  test('is refused for another host, and if it cannot be recorded', async () => {
    const other = post({ amount: 1 }).toString('latin1').replace(`Host: ${HOST}`, 'Host: other.example.test');
    expect(await refusal(Buffer.from(other, 'latin1'))).toBe('authority_mismatch');
    plane.audit.accepting = false;
    expect(await ask(post({ amount: 1 }))).toMatch(/^HTTP\/1\.1 503 [^]*audit_unavailable/);
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
  });
});

const reason = (result: RunResult): string => (result.ok ? result.value.operation : result.error.reason);

describe('operations with rules by name', () => {
  const caller = {
    source: 'generated_connector_shim',
    sessionId: 'ses_test',
    choice: null,
    signal: new AbortController().signal,
  } as const;
  const run = (operation: string, args: Readonly<Record<string, unknown>>): Promise<RunResult> =>
    plane.operations.run({ connector_fqn: 'acme/items', operation, args }, caller);

  const requestOf = async (operation: string): Promise<string> => {
    const asked = { connector_fqn: 'acme/items', operation, method: 'POST', upstream_url: `https://${HOST}/refunds` };
    return reason(await plane.operations.request(asked, { ...caller, source: 'daemon_request_boundary' }));
  };

  test('run with their own bodies, and with no other operation’s', async () => {
    expect(reason(await run('small', { amount: 100 }))).toBe('small');
    expect(reason(await run('small', { amount: 101 }))).toBe('invalid_args');
    expect(reason(await run('other', { amount: 1 }))).toBe('invalid_args');
    expect(seen).toHaveLength(1);
    plane.approvals.decision = 'approval_required';
    expect(reason(await run('other', { amount: 101 }))).toBe('approval_required');
  });

  test('are asked about without a body as the operation without rules', async () => {
    const bare = refund('bare', { inputs: [] });
    use([SMALL, bare]);
    expect([await requestOf('bare'), await requestOf('small')]).toEqual(['bare', 'connector_operation_not_found']);
  });
});
