import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleOf } from '../support/full_counts.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { expectStatus } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';

const FOLDER = new URL('../../catalog/connectors/', import.meta.url);
const SECRET = plantSecret();

const catalogFile = z.object({
  connector: z.object({ fqn: z.string() }),
  hosts: z.array(z.string()),
  credential: z.object({ kind: z.enum(['api_key', 'oauth2']) }),
  operations: z.array(
    z.object({
      name: z.string(),
      method: z.string(),
      path: z.string(),
      approval: z.enum(['none', 'required']).default('none'),
      graphql: z.object({ type: z.enum(['query', 'mutation']), fields: z.array(z.string()).optional() }).optional(),
      inputs: z.array(z.object({ name: z.string(), in: z.string(), type: z.string() })).default([]),
    }),
  ),
});
type CatalogFile = z.infer<typeof catalogFile>;
type Operation = CatalogFile['operations'][number];

const specs = readdirSync(FOLDER).map((file) => {
  const raw: unknown = parse(readFileSync(new URL(file, FOLDER), 'utf8'));
  return { raw, name: file.replace('.yaml', ''), ...catalogFile.parse(raw) };
});
const withApiKey = specs.filter(({ credential }) => credential.kind === 'api_key');

const VALUES: Readonly<Record<string, unknown>> = {
  string: 'a-b',
  integer: 7,
  number: 0.5,
  boolean: true,
  array: ['x', 'y'],
  object: { name: 'x' },
};
/** A document of a GraphQL operation alone; one without fields of its own has those that no other one names. */
const documentOf = ({ type, fields }: NonNullable<Operation['graphql']>): string =>
  `${type} { ${fields?.[0] ?? 'unlistedField'} }`;
const argsOf = ({ inputs, graphql }: Operation): Record<string, unknown> =>
  graphql === undefined
    ? Object.fromEntries(inputs.map(({ name, type }) => [name, VALUES[type]]))
    : { query: documentOf(graphql) };

let world: World;

beforeAll(async () => {
  world = await startWorld(specs.flatMap(({ hosts }) => hosts));
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(reply(200, `{"echo":"${SECRET}"}`, ['Content-Type: application/json']));
  });
  for (const { raw, credential } of specs) {
    const installed = await world.svc.api('POST', '/v1/connectors', raw);
    const { id } = z.object({ id: z.string(), warnings: z.array(z.unknown()).length(0) }).parse(installed.body);
    if (credential.kind !== 'api_key') continue;
    const stored = await world.svc.api('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: SECRET });
    if (stored.status !== 200) throw new Error(`the credential was not stored: ${stored.status}`);
  }
});
afterAll(() => world.stop());

function run({ connector }: CatalogFile, operation: Operation) {
  const body = { connector_fqn: connector.fqn, operation: operation.name, args: argsOf(operation) };
  return world.svc.api('POST', '/v1/connector-operations/run', body);
}

/** Checks that the upstream's last request is this operation, with the credential, and each arg in its place. */
function expectSent({ hosts }: CatalogFile, operation: Operation): void {
  const seen = world.upstream.last();
  const [path = '', query = ''] = seen.target.split('?');
  const filled = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => String(argsOf(operation)[name]));
  expect([seen.method, path, seen.headers('host'), seen.headers('authorization')]).toEqual([
    operation.method,
    filled,
    [hosts[0]],
    [`Bearer ${SECRET}`],
  ]);
  const args = argsOf(operation);
  const namesIn = (place: string): string[] =>
    operation.inputs.filter((input) => input.in === place && input.name in args).map(({ name }) => name);
  expect([...new Set(new URLSearchParams(query).keys())]).toEqual(namesIn('query'));
  const bytes = seen.body.data.toString('utf8');
  expect(bytes === '' ? {} : JSON.parse(bytes)).toEqual(
    Object.fromEntries(namesIn('body').map((name) => [name, args[name]])),
  );
}

describe.each(withApiKey)('the ready connector $name, run by the control plane', (spec) => {
  const asking = spec.operations.filter(({ approval }) => approval === 'required');

  it('sends every operation that needs no approval to its server, and masks the credential in the reply', async () => {
    for (const operation of spec.operations.filter(({ approval }) => approval === 'none')) {
      const ran = await run(spec, operation);
      expect([operation.name, ran]).toMatchObject([
        operation.name,
        { status: 200, body: { status: 'proxied', upstream_status: 200 } },
      ]);
      expectSent(spec, operation);
      const { body_base64: body } = z.object({ body_base64: z.string() }).parse(ran.body);
      expect(foundIn(Buffer.from(body, 'base64'), SECRET)).toEqual([]);
    }
  });

  it.each([
    ...sampleOf(asking.filter(({ graphql }) => graphql === undefined).slice(0, 3), 1),
    ...asking.filter(({ graphql }) => graphql !== undefined),
  ])('sends $name once it is approved, and once', async (operation) => {
    const before = world.upstream.requests.length;
    const held = await run(spec, operation);
    expect(held).toMatchObject({ status: 403, body: { error: { code: 'approval_required' } } });
    expect(world.upstream.requests).toHaveLength(before);
    const { approval_id: id } = z
      .object({ error: z.object({ details: z.object({ approval_id: z.string() }) }) })
      .parse(held.body).error.details;
    expectStatus(await world.svc.api('POST', `/v1/approvals/${id}/decide`, { decision: 'approve' }), 200);
    expect((await run(spec, operation)).status).toBe(200);
    expectSent(spec, operation);
    expect((await run(spec, operation)).status).toBe(403);
    expect(world.upstream.requests).toHaveLength(before + 1);
  });
});

describe('a ready connector, used from the command line', () => {
  it('is run by name', async () => {
    const argv = ['connector', 'test', 'github', 'get-repo', '--arg', 'owner=octocat', '--arg', 'repo=hello'];
    const tested = await world.svc.cli(argv);
    expect(tested.stdout).toMatch(/^\{"echo":"\*+"\}$/);
    expect(world.upstream.last()).toMatchObject({ method: 'GET', target: '/repos/octocat/hello' });
  });

  it('adds its credential to its own operations through the proxy, and to nothing else', async () => {
    const get = (path: string) =>
      world.svc.ok(['run', '--', 'curl', '-sS', '-H', 'Authorization: Bearer own', `https://api.github.com${path}`]);
    const operation = await get('/repos/octocat/hello/issues?state=open');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(foundIn(operation, SECRET)).toEqual([]);
    await get('/zen');
    expect(world.upstream.last().headers('authorization')).toEqual(['Bearer own']);
  });
});
