import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC } from '../e2e/runtimes/connector_samples.ts';
import { type HostedUser, ownerWithMember, startHosted } from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';

/** A word that is in what the first tenant has. */
const PLANTED = 'planted-of-tenant-one';
const NOTHING = '00000000000000000000000000';
const withId = z.object({ id: z.string() });
const paged = z.object({ items: z.array(z.unknown()), next_cursor: z.string().nullish() });

/** Routes that take the id of anybody's thing in a body, each with the reason; their own tests cover them. */
const OTHERS: Readonly<Record<string, string>> = {
  'POST /auth/join service_account': 'takes a token that the account’s issuer signed (worker/tokens/join)',
  'POST /v1/join-requests enterprise_id':
    'asks to join the enterprise of somebody else (worker/sign_in/join_requests.test.ts)',
};

let control: InProcess;
let tenant: HostedUser;
let stranger: HostedUser;
let sidecar: TestSidecar;
let document: Document;
/** Ids of the first tenant, by their prefix. */
let foreign: Readonly<Record<string, string>> = {};
/** Ids of the same kinds that are the stranger's own. */
let own: Readonly<Record<string, string>> = {};
/** A valid body for each id in one, with this id; the rest is the stranger's own. */
let bodies: Readonly<Record<string, { readonly path?: string; readonly of: (id: string) => unknown }>> = {};

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    pattern: z.string().optional(),
    properties: z.record(z.string(), schema).optional(),
    items: schema.optional(),
    anyOf: z.array(schema).optional(),
    oneOf: z.array(schema).optional(),
    allOf: z.array(schema).optional(),
  }),
);
interface Schema {
  readonly $ref?: string | undefined;
  readonly pattern?: string | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly items?: Schema | undefined;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly oneOf?: readonly Schema[] | undefined;
  readonly allOf?: readonly Schema[] | undefined;
}
const operation = z.looseObject({
  security: z.array(z.record(z.string(), z.unknown())),
  parameters: z.array(z.looseObject({ in: z.string(), name: z.string() })).optional(),
  requestBody: z.looseObject({ content: z.record(z.string(), z.looseObject({ schema })) }).optional(),
});
const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.object({ schemas: z.record(z.string(), schema) }),
});
type Document = z.infer<typeof openApi>;

/** The fields of a body that take an id: its prefix is in the pattern. */
function idFields(of: Schema | undefined, schemas: Document['components']['schemas'], at = ''): string[] {
  if (of === undefined) return [];
  if (of.$ref !== undefined) return idFields(schemas[of.$ref.split('/').at(-1) ?? ''], schemas, at);
  const here = /^\^(?:\(\?:)?[a-z]{3}(?:\|[a-z]{3})*\)?_/.test(of.pattern ?? '') ? [at] : [];
  const inside = Object.entries(of.properties ?? {}).flatMap(([name, each]) =>
    idFields(each, schemas, at === '' ? name : `${at}.${name}`),
  );
  const choices = [...(of.anyOf ?? []), ...(of.oneOf ?? []), ...(of.allOf ?? [])];
  return [
    ...here,
    ...inside,
    ...choices.flatMap((each) => idFields(each, schemas, at)),
    ...idFields(of.items, schemas, at),
  ];
}

function operations() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => ({ method: method.toUpperCase(), path, ...each })),
  );
}

function namedIds(): string[] {
  return operations().flatMap(({ method, path, requestBody }) => {
    const body = Object.values(requestBody?.content ?? {})[0]?.schema;
    return [...new Set(idFields(body, document.components.schemas))].map((field) => `${method} ${path} ${field}`);
  });
}

const create = async (by: HostedUser, path: string, body: object) =>
  (await parseReply(withId, by.call('POST', path, body))).id;

async function fill(by: HostedUser, colleague: HostedUser, word: string) {
  const connector = { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, title: word } };
  await create(by, '/v1/secrets', { path: `${word}/key`, value: 'value-of-a-test' });
  const binding = {
    host: `${word}.example.test`,
    scheme: 'bearer',
    credential_ref: `vault://${word}/key`,
    effect: 'read',
  };
  return {
    usr: colleague.caller.userId,
    bnd: await create(by, '/v1/host-bindings', binding),
    con: await create(by, '/v1/connectors', connector),
    mcp: await create(by, '/v1/mcp-servers', { name: word, command: ['a-server'] }),
    grp: await create(by, '/v1/groups', { name: word }),
  };
}

const LOGIN = { program: 'x', token_url: 'https://auth.example.test/token', client_id: 'x', grants: ['device_code'] };

beforeAll(async () => {
  control = await startHosted();
  document = await parseReply(openApi, control.send('/openapi.json'));
  const [one, two] = [await ownerWithMember(control), await ownerWithMember(control)];
  [tenant, stranger] = [one.owner, two.owner];
  const tenantSidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await tenantSidecar.enrol(tenant.tokens.access_token);
  sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(stranger.tokens.access_token);
  own = {
    ...(await fill(stranger, two.member, 'own')),
    sdc: sidecar.enrolled.sidecar_id,
    apv: `apv_${'2'.repeat(26)}`,
  };
  foreign = {
    ...(await fill(tenant, one.member, PLANTED)),
    sdc: tenantSidecar.enrolled.sidecar_id,
    ent: tenant.caller.enterpriseId,
    apv: `apv_${'1'.repeat(26)}`,
  };
  const loginId = await create(stranger, '/v1/pending-logins', LOGIN);
  const asked = { request_id: 'request-of-the-test', fingerprint: 'a'.repeat(64), summary: 'x', session_id: 'x' };
  const health = { state: 'running', last_error: null, checked_at: new Date(control.clock.now()).toISOString() };
  bodies = {
    'POST /v1/shares binding_id': { of: (id) => ({ binding_id: id, user_id: own.usr }) },
    'POST /v1/shares connector_id': { of: (id) => ({ connector_id: id, user_id: own.usr }) },
    'POST /v1/shares mcp_server_id': { of: (id) => ({ mcp_server_id: id, user_id: own.usr }) },
    'POST /v1/shares user_id': { of: (id) => ({ binding_id: own.bnd, user_id: id }) },
    'POST /v1/shares group_id': { of: (id) => ({ binding_id: own.bnd, group_id: id }) },
    'POST /v1/audit-sinks group_id': { of: (id) => ({ kind: 'mail', name: 'x', group_id: id }) },
    'POST /v1/approval-rules group_id': { of: (id) => ({ subject: 'connector', group_id: id }) },
    'POST /v1/pending-logins/{id}/store connector_id': {
      path: `/v1/pending-logins/${loginId}/store`,
      of: (id) => ({ connector_id: id, content_hash: 'a'.repeat(64) }),
    },
    'POST /v1/audit-events/heads/check heads.writer': {
      of: (id) => ({ heads: [{ writer: id, sequence: 1, hash: 'a'.repeat(64) }] }),
    },
    'POST /v1/sidecar/mcp-health servers.id': { of: (id) => ({ servers: [{ id, ...health }] }) },
    'POST /v1/sidecar/mcp-tools server_id': { of: (id) => ({ server_id: id, tools: [{ name: 'x' }] }) },
    'POST /v1/sidecar/approvals connector_id': {
      of: (id) => ({ ...asked, connector_id: id, operation: 'delete-item' }),
    },
    'POST /v1/sidecar/approvals mcp_server_id': { of: (id) => ({ ...asked, mcp_server_id: id, tool: 'x' }) },
    'POST /v1/sidecar/approvals/{id}/views view_id': {
      path: `/v1/sidecar/approvals/apr_${NOTHING}/views`,
      of: (id) => ({ view_id: id, sealed: 'a..b.c.d' }),
    },
  };
});
afterAll(() => control.stop());

/** A reply without what differs in every one. */
async function answerTo(name: string, id: string) {
  const [method = '', path = ''] = name.split(' ');
  const { path: target = path, of } = bodies[name] ?? { of: () => undefined };
  const isSidecars = path.startsWith('/v1/sidecar/');
  const reply = await (isSidecars
    ? sidecar.call('POST', target, { body: of(id) })
    : stranger.call(method, target, of(id)));
  const text = await reply.text();
  const plain = reply.status < 400 && isSidecars ? '' : text.replaceAll(/[a-z]{3}_[0-9a-z]{26}/g, 'ID');
  return { status: reply.status, text: plain };
}

/** What a tenant has, as rows of the tables that a foreign id could change. */
async function stateOfTenant(): Promise<string> {
  const { client } = control.context.database;
  const tables = ['shares', 'mcp_health', 'mcp_tools', 'approvals', 'connectors', 'mcp_servers', 'host_bindings'];
  const rows = await Promise.all(tables.map(async (table) => (await client.execute(`SELECT * FROM ${table}`)).rows));
  return JSON.stringify(
    rows.flat().filter((row) => Object.values(foreign).some((id) => JSON.stringify(row).includes(id))),
  );
}

/** The prefix of the id in a field. */
const KINDS: Readonly<Record<string, string>> = {
  binding_id: 'bnd',
  connector_id: 'con',
  mcp_server_id: 'mcp',
  user_id: 'usr',
  group_id: 'grp',
  server_id: 'mcp',
  'servers.id': 'mcp',
  'heads.writer': 'sdc',
  view_id: 'apv',
};

describe('an id of another tenant in a body', () => {
  test('this test has an example for each id in a body: add one for a new one', () => {
    expect(namedIds().toSorted()).toEqual([...Object.keys(bodies), ...Object.keys(OTHERS)].toSorted());
  });

  test('is answered as an unknown one, and changes nothing', async () => {
    const before = await stateOfTenant();
    expect(before).toContain(PLANTED);
    for (const name of Object.keys(bodies)) {
      const field = name.split(' ')[2] ?? '';
      const kind = KINDS[field] ?? '';
      const [unknown, of, accepted] = [
        await answerTo(name, `${kind}_${NOTHING}`),
        await answerTo(name, foreign[kind] ?? ''),
        await answerTo(name, own[kind] ?? ''),
      ];
      expect([name, of]).toEqual([name, unknown]);
      expect([name, of.text.includes(PLANTED)]).toEqual([name, false]);
      // The body is right, and the id in it decides.
      const isRight = accepted.text !== unknown.text || !accepted.text.includes('invalid_input');
      expect([name, isRight]).toEqual([name, true]);
    }
    expect(await stateOfTenant()).toBe(before);
  });
});

describe('what another tenant has, in a query', () => {
  const QUERIES: Readonly<Record<string, string>> = {
    connector: ITEMS_SPEC.connector.fqn,
    fqn: ITEMS_SPEC.connector.fqn,
    host: `${PLANTED}.example.test`,
    name: PLANTED,
    q: PLANTED,
    path: PLANTED,
  };

  test('finds nothing of it in any list', async () => {
    const lists = operations().filter(({ method, path, security }) => {
      const isUsers = Object.keys(security[0] ?? {})[0] === 'user';
      return method === 'GET' && isUsers && !/[{]|[/]stream$|^[/]v1[/]marketplace[/]/.test(path);
    });
    const tried: string[] = [];
    for (const { path, parameters = [] } of lists) {
      for (const { name } of parameters.filter((each) => each.in === 'query' && QUERIES[each.name] !== undefined)) {
        const query = new URLSearchParams({ [name]: QUERIES[name] ?? '' });
        const reply = await stranger.call('GET', `${path}?${query.toString()}`);
        const text = await reply.text();
        expect([path, name, reply.status]).toEqual([path, name, 200]);
        expect([path, name, Object.values(foreign).filter((id) => text.includes(id))]).toEqual([path, name, []]);
        tried.push(`${path} ${name}`);
      }
    }
    expect(tried.length).toBeGreaterThan(6);
  });

  test('a cursor of its list goes on in the caller’s own', async () => {
    const cursors: string[] = [];
    for (const { path, parameters = [], method } of operations()) {
      if (method !== 'GET' || !parameters.some(({ name }) => name === 'cursor') || !/^[/]v1[/][a-z-]+$/.test(path))
        continue;
      const first = await tenant.call('GET', `${path}?limit=1`);
      const { next_cursor: cursor } = paged.parse(await first.json());
      if (cursor === null || cursor === undefined) continue;
      const text = await (await stranger.call('GET', `${path}?cursor=${encodeURIComponent(cursor)}`)).text();
      expect([path, Object.values(foreign).filter((id) => text.includes(id))]).toEqual([path, []]);
      cursors.push(path);
    }
    expect(cursors).toContain('/v1/audit-events');
  });
});
