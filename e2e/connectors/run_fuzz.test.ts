import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { readDocument } from '../runtimes/api_document.ts';
import { countOf } from '../support/full_counts.ts';
import { expectStatus, type Session } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

// `/v1/connector-operations/run` of the control plane and of the sidecar, fuzzed from the description of the API.

const HOST = 'fuzz.example.test';
const OTHER_HOST = 'fuzz-two.example.test';
const TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'] as const;
const inputs = (place: string, types: readonly string[]) => types.map((type) => ({ name: type, in: place, type }));
const id = { name: 'id', in: 'path', required: true };
const SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/fuzz', version: '1.0.0', title: 'Fuzz' },
  hosts: [HOST, OTHER_HOST],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'read',
      method: 'GET',
      path: '/items/{id}',
      effect: 'read',
      inputs: [id, ...inputs('query', TYPES.slice(0, 5))],
    },
    { name: 'latest', method: 'GET', path: '/items/latest', effect: 'read', inputs: [] },
    { name: 'write', method: 'POST', path: '/items', effect: 'write', inputs: inputs('body', TYPES) },
    {
      name: 'move',
      method: 'PUT',
      path: '/items/{id}/to/{count}/{flag}',
      effect: 'write',
      inputs: [
        id,
        { name: 'count', in: 'path', type: 'integer', required: true },
        { name: 'flag', in: 'path', type: 'boolean', required: true },
      ],
    },
  ],
};

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(
    'latest',
    'LATEST',
    'latest;x',
    '..',
    '.',
    '',
    '%2e%2e',
    '../x',
    '\\',
    'a\r\nb',
    '\ud800',
    'é',
    'x'.repeat(3_000),
  ),
);
const numbers = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(2 ** 53, -0, 1e300, 0.1));
const values = fc.oneof(texts, numbers, fc.boolean(), fc.array(fc.oneof(texts, numbers)), fc.jsonValue());
const names = fc.constantFrom('id', 'count', 'flag', ...TYPES, '__proto__', 'constructor', 'idd');
const HINTS = {
  connector_fqn: fc.oneof({ weight: 12, arbitrary: fc.constant('acme/fuzz') }, { weight: 1, arbitrary: texts }),
  operation: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('read', 'latest', 'write', 'move') },
    { weight: 1, arbitrary: texts },
  ),
  args: fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(names, values) },
    { weight: 6, arbitrary: fc.record({ id: texts, string: texts, integer: fc.integer() }, { requiredKeys: ['id'] }) },
    { weight: 4, arbitrary: fc.record({ id: fc.stringMatching(/^[a-z]{1,8}$/) }) },
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 3, arbitrary: fc.record({ string: texts, object: fc.jsonValue(), number: numbers }) },
    { weight: 3, arbitrary: fc.record({ id: texts, count: numbers, flag: fc.boolean() }) },
    { weight: 1, arbitrary: fc.jsonValue() },
  ),
  host: fc.constantFrom(
    HOST,
    HOST,
    HOST,
    OTHER_HOST,
    OTHER_HOST,
    HOST.toUpperCase(),
    'evil.example',
    '127.0.0.1',
    `${HOST}:443`,
  ),
};

const answer = z.object({
  upstream_status: z.number().optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

const RUNS = countOf(400, 100);
let world: World;
let session: Session;
let bodies: fc.Arbitrary<unknown>;

beforeAll(async () => {
  world = await startWorld([HOST, OTHER_HOST]);
  const made = await world.svc.api('POST', '/v1/connectors', SPEC);
  const { id: connectorId } = z.object({ id: z.string() }).parse(made.body);
  const stored = await world.svc.api('PUT', `/v1/connectors/${connectorId}/credential`, {
    kind: 'api_key',
    value: 'k-of-a-test',
  });
  expectStatus(stored, 200);
  session = await world.svc.session();
  const document = await (await fetch(`${world.svc.runFile.control_url}/openapi.json`)).text();
  const described = readDocument(document, HINTS).find(({ path }) => path === '/v1/connector-operations/run');
  if (described?.body === undefined || described.body === null) throw new Error('the run is not described');
  bodies = described.body;
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(reply(200, '{}', ['Content-Type: application/json']));
  });
});
afterAll(() => world.stop());

/** What an endpoint does with a body: its status and code, and what reached the upstream. */
async function runBody(origin: string, token: string, body: string) {
  world.upstream.requests.length = 0;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(`${origin}/v1/connector-operations/run`, { method: 'POST', headers, body });
  const { upstream_status: upstream, error } = answer.parse(await response.json());
  const sent = world.upstream.requests.map((request) => {
    const { method, target, body: bytes } = request;
    return [request.header('host'), method, target, bytes.data.toString(), request.header('authorization')];
  });
  return { status: response.status, upstream, code: error?.code, sent };
}

it('answers any body without a 5xx, and the sidecar does what the control plane does', async () => {
  const { control_url: control, proxy_url: sidecar } = world.svc.runFile;
  const key = readFileSync(join(world.svc.home, 'local.key'), 'utf8').trim();
  const seen = new Map<string, number>();
  const property = fc.asyncProperty(bodies, async (body) => {
    const text = JSON.stringify(body);
    const ours = await runBody(control, key, text);
    expect(ours.status).toBeLessThan(500);
    expect(await runBody(sidecar, session.token, text)).toEqual(ours);
    expect(ours.sent).toHaveLength(ours.status === 200 ? 1 : 0);
    const what = ours.code ?? 'sent';
    seen.set(what, (seen.get(what) ?? 0) + 1);
  });
  await fc.assert(property, { seed: 20_260_103, numRuns: RUNS });
  // The test would prove nothing if all calls were refused for one reason.
  expect(seen.get('sent')).toBeGreaterThan(RUNS / 10);
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining(['invalid_args', 'connector_operation_not_found', 'invalid_input']),
  );
});
