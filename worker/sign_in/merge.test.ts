import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC } from '../../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { callAs, hostedUser, outcome, signInProgram, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { mergePreview } from '../../shared/wire/people/merges.ts';
import type { Statement } from '../store/database.ts';
import { killAtWrite } from '../store/testing/kill_at_write.ts';

let control: InProcess;
let solo: Actor;
let team: Actor;

/** A user of the person, with calls that use an access token. */
interface Actor {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly token: string;
  readonly call: (method: string, path: string, body?: unknown) => Promise<Response>;
}

const run = (sql: string, args: string[] = []) => control.context.database.client.execute({ sql, args });
const withId = z.object({ id: z.string() });

async function actor(enterpriseId: string | null): Promise<Actor> {
  const caller = await addUser(control.context, enterpriseId);
  const { access_token: token } = await signInProgram(control, caller);
  const call: Actor['call'] = (...request) => callAs(control, token, ...request);
  return { userId: caller.userId, enterpriseId: caller.enterpriseId, token, call };
}

beforeEach(async () => {
  control = await startHosted();
  solo = await actor(null);
  await run(`UPDATE users SET role = 'owner' WHERE id = ?`, [solo.userId]);
  team = await actor((await hostedUser(control)).caller.enterpriseId);
  // One person, who signed in in a way of their own.
  await run(`UPDATE users SET person_id = (SELECT person_id FROM users WHERE id = ?) WHERE id = ?`, [
    solo.userId,
    team.userId,
  ]);
  await run(
    `INSERT INTO identities (id, provider, issuer, subject, user_id, person_id, email, email_verified, created_at, last_sign_in_at)
      VALUES ('idn_x', 'general', 'https://id.test', 'pat', ?, (SELECT person_id FROM users WHERE id = ?), 'pat@home.test', 1, '2026', '2026')`,
    [solo.userId, solo.userId],
  );
});
afterEach(() => control.stop());

async function slug(): Promise<string> {
  const { rows } = await run(`SELECT slug FROM enterprises WHERE id = ?`, [solo.enterpriseId]);
  return z.string().parse(rows[0]?.['slug']);
}
const preview = () => parseReply(mergePreview, team.call('GET', `/v1/enterprises/${solo.enterpriseId}/merge`));
const merge = async (confirm?: string, by = team) =>
  outcome(by.call('POST', `/v1/enterprises/${solo.enterpriseId}/merge`, { confirm: confirm ?? (await slug()) }));
const BINDING = { host: 'api.example.test', scheme: 'bearer', credential_ref: 'vault://user/key' };

/** One of each kind, and both owners. */
async function fill() {
  const make = async (path: string, body: object) => (await parseReply(withId, solo.call('POST', path, body))).id;
  await make('/v1/secrets', { path: 'user/key', value: 'value-of-the-person' });
  await make('/v1/secrets', { path: 'shared/key', value: 'value-of-the-enterprise', owner: 'enterprise' });
  const source = { kind: 'client_credentials', token_url: 'https://idp.example.com/token', client_id: 'ci' };
  await solo.call('POST', '/v1/secret-sources', { path: 'ci/token', source, key: 'key-of-a-source' });
  await make('/v1/host-bindings', BINDING);
  const ofEnterprise = {
    ...BINDING,
    host: 'e.example.test',
    credential_ref: 'vault://shared/key',
    owner: 'enterprise',
  };
  await make('/v1/host-bindings', ofEnterprise);
  await make('/v1/tunnel-hosts', { host: 'pinned.example.test' });
  await make('/v1/client-certificates', { host: 'mtls.example.test', credential_ref: 'vault://user/demo' });
  const connector = await make('/v1/connectors', ITEMS_SPEC);
  await solo.call('PUT', `/v1/connectors/${connector}/credential`, { kind: 'api_key', value: 'value-of-a-connector' });
  const server = await make('/v1/mcp-servers', {
    name: 'moved',
    command: ['a-server'],
    env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' },
  });
  await solo.call('POST', `/v1/mcp-servers/${server}/credentials`, {
    env_var_name: 'TOKEN',
    secret_value: 'value-of-a-server',
  });
}

const owned = async (who: Actor) => {
  const tables = [
    'secrets',
    'host_bindings',
    'tunnel_hosts',
    'client_certificates',
    'connectors',
    'mcp_servers',
    'connector_credentials',
    'binding_credentials',
    'mcp_references',
  ];
  const counts = await Promise.all(
    tables.map(async (table) => {
      const { rows } = await run(`SELECT count(*) AS n FROM ${table} WHERE owner_id IN (?, ?)`, [
        who.userId,
        who.enterpriseId,
      ]);
      return Number(rows[0]?.['n']);
    }),
  );
  return counts.reduce((sum, each) => sum + each, 0);
};

const types = async (who: Actor) =>
  (await parseReply(auditEventsPage, who.call('GET', '/v1/audit-events?limit=500'))).items.map(({ type }) => type);

test('everything moves, is the person’s own there, and each value is released to the person’s sidecar there', async () => {
  await fill();
  const all = await owned(solo);
  expect(await preview()).toMatchObject({
    moves: { secret: 5, host_binding: 2, tunnel_host: 1, client_certificate: 1, connector: 1, mcp_server: 1 },
    clashes: [],
  });
  expect(await merge()).toBe(200);
  expect([await owned(solo), await owned(team)]).toEqual([0, all]);
  const bindings = await (await team.call('GET', '/v1/host-bindings')).json();
  expect(bindings).toMatchObject({ items: [{ owner: 'personal' }, { owner: 'personal' }] });
  expect(await (await team.call('GET', '/v1/connectors')).text()).toContain('"state":"ready"');
  expect(await (await team.call('GET', '/v1/mcp-servers')).text()).toContain('"set":true');
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(team.token);
  const credentials = ['user/key', 'shared/key'].map((path) => ({ owner: 'personal', path }));
  const body = { request_id: 'request-of-the-test', credentials };
  const jws = await (await sidecar.call('POST', '/v1/sidecar/credentials', { body })).text();
  const payload = Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString();
  expect(payload).toContain('"missing":[]');
  const { rows } = await run(`SELECT sealed_material FROM secret_sources`);
  const place = { owner: team.userId, path: 'ci/token#key', version: 1 };
  const sealed = z.string().parse(rows[0]?.['sealed_material']);
  expect((await control.context.vault.open(place, sealed))?.reveal()).toBe('key-of-a-source');
  const checked = await team.call('POST', '/v1/secrets/check', {
    values: ['value-of-the-person', 'value-of-the-enterprise'],
  });
  expect(await checked.text()).toContain('user/key');
  expect(await types(solo)).toContain('control.merge.began');
  await run(`UPDATE users SET role = 'admin' WHERE id = ?`, [team.userId]);
  expect(await types(team)).toContain('control.merge.done');
});

test('what was written of a thing before names its new owner too, and an earlier configuration is restored', async () => {
  const server = { name: 'moved', command: ['first'], owner: 'enterprise' };
  const { id } = await parseReply(withId, solo.call('POST', '/v1/mcp-servers', server));
  await solo.call('PUT', `/v1/mcp-servers/${id}`, { ...server, command: ['second'] });
  await solo.call('POST', '/v1/host-bindings', { ...BINDING, owner: 'enterprise' });
  expect(await merge()).toBe(200);
  const { rows: tables } = await run(
    `SELECT m.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name = 'record'`,
  );
  const owners = tables.map(async ({ name }) => {
    const { rows } = await run(`SELECT json_extract(record, '$.owner') AS owner FROM ${z.string().parse(name)}`);
    return [name, [...new Set(rows.map(({ owner }) => owner))]];
  });
  expect(Object.fromEntries(await Promise.all(owners))).toEqual({
    host_bindings: ['personal'],
    mcp_server_revisions: ['personal'],
    mcp_servers: ['personal'],
  });
  // A revision that an earlier version of svc moved without its owner.
  await run(
    `UPDATE mcp_server_revisions SET record = json_replace(record, '$.owner', 'enterprise') WHERE revision = 1`,
  );
  const restored = await team.call('POST', `/v1/mcp-servers/${id}/rollback`, { revision: 1 });
  expect(await restored.json()).toMatchObject({ owner: 'personal', command: ['first'] });
});

test('names that clash are said before, here and between both owners there, and then nothing moves', async () => {
  await fill();
  await team.call('POST', '/v1/secrets', { path: 'user/key', value: 'another' });
  await solo.call('POST', '/v1/secrets', { path: 'user/key', value: 'third', owner: 'enterprise' });
  await team.call('POST', '/v1/tunnel-hosts', { host: 'pinned.example.test' });
  const before = await owned(solo);
  expect((await preview()).clashes).toEqual([
    { kind: 'secret', name: 'user/key' },
    { kind: 'secret', name: 'user/key' },
    { kind: 'tunnel_host', name: 'pinned.example.test' },
  ]);
  expect(await merge()).toBe('name_taken');
  expect(await owned(solo)).toBe(before);
});

test('a merge that is killed at any write has moved everything or nothing, and is repeated', async () => {
  await fill();
  const all = await owned(solo);
  const { database } = control.context;
  const write = database.write.bind(database);
  for (const [index, when] of [
    [0, 'before'],
    [0, 'after'],
    [1, 'before'],
  ] as const) {
    const killed = killAtWrite({ ...database, write }, index, when);
    Object.assign(database, { write: (statements: readonly Statement[]) => killed.write(statements) });
    await team.call('POST', `/v1/enterprises/${solo.enterpriseId}/merge`, { confirm: await slug() });
    Object.assign(database, { write });
    expect([index, when, await owned(solo), await owned(team)]).toEqual([index, when, all, 0]);
  }
  expect(await merge()).toBe(200);
  expect([await owned(solo), await owned(team)]).toEqual([0, all]);
});

test('a secret that is stored meanwhile moves too, or stops the write', async () => {
  await fill();
  const { database } = control.context;
  const write = database.write.bind(database);
  let isAdded = false;
  Object.assign(database, {
    write: async (statements: readonly Statement[]) => {
      if (!isAdded && statements.length > 20) {
        isAdded = true;
        Object.assign(database, { write });
        await solo.call('POST', '/v1/secrets', { path: 'late/key', value: 'late' });
      }
      return write(statements);
    },
  });
  expect(await merge()).toBe(200);
  expect([isAdded, await owned(solo)]).toEqual([true, 0]);
});

test('nothing moves where it would be more than one account may keep', async () => {
  for (const owner of ['personal', 'enterprise']) {
    await solo.call('POST', '/v1/secrets', { path: `${owner}/key`, value: 'v', owner });
  }
  Object.assign(control.context, { quotaPercent: 0.02 });
  expect([await merge(), await owned(team)]).toEqual(['limit_reached', 0]);
  Object.assign(control.context, { quotaPercent: 0.04 });
  expect([await merge(), await owned(team)]).toEqual([200, 2]);
});

describe('nobody else’s things move', () => {
  test('only the owner who is alone merges, with the slug, in an own sign-in', async () => {
    await fill();
    expect(await merge('wrong')).toBe('not_confirmed');
    expect(await merge(undefined, solo)).toBe('conflict');
    const stranger = await hostedUser(control);
    expect(
      await outcome(stranger.call('POST', `/v1/enterprises/${solo.enterpriseId}/merge`, { confirm: await slug() })),
    ).toBe('not_found');
    await run(`UPDATE identities SET vouched_by = ?`, [team.enterpriseId]);
    expect(await merge()).toBe('not_found');
    await run(`UPDATE identities SET vouched_by = NULL`);
    await run(`UPDATE users SET role = 'admin' WHERE id = ?`, [solo.userId]);
    expect(await merge()).toBe('not_alone');
    await run(`UPDATE users SET role = 'owner' WHERE id = ?`, [solo.userId]);
    await addUser(control.context, solo.enterpriseId);
    expect(await merge()).toBe('not_alone');
    expect(await owned(team)).toBe(0);
  });

  test('a way to sign in that the other enterprise refuses takes nothing out of it', async () => {
    await fill();
    const rules = [
      ['allowed_providers', `'["github"]'`, 'NULL', 'provider_not_allowed'],
      ['allowed_domains', `'["elsewhere.test"]'`, `'[]'`, 'domain_not_allowed'],
      ['sso_required', '1', '0', 'sso_required'],
    ] as const;
    for (const [column, value, before, code] of rules) {
      await run(`UPDATE enterprises SET ${column} = ${value} WHERE id = ?`, [solo.enterpriseId]);
      const shown = outcome(team.call('GET', `/v1/enterprises/${solo.enterpriseId}/merge`));
      expect([await merge(), await shown]).toEqual([code, code]);
      await run(`UPDATE enterprises SET ${column} = ${before} WHERE id = ?`, [solo.enterpriseId]);
    }
    expect(await owned(team)).toBe(0);
  });
});
