import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const TIME = '2026-01-01T12:00:00.000Z';
const group = { id: `grp_${ID}`, name: 'Data team', members: 2, created_at: TIME, revision: 'r1' };
const share = {
  id: `shr_${ID}`,
  binding: {
    id: `bnd_${ID}`,
    host: 'api.test',
    scheme: 'bearer',
    emit_mechanism: 'inject',
    allowed_hosts: [],
    effect: 'read',
    revision: TIME,
  },
  shared_by: { id: `usr_${ID}`, display_name: 'Olga' },
  shared_with: { kind: 'group', id: group.id, display_name: group.name },
  created_at: TIME,
  state: 'to_accept',
};
const binding = {
  id: `bnd_${ID}`,
  owner: 'personal',
  host: 'api.test',
  credential_ref: 'vault://user/demo',
  scheme: 'bearer',
  effect: 'read',
  created_at: TIME,
  updated_at: TIME,
};
const member = { id: `usr_${ID}`, email: 'Pat@acme.test', display_name: 'Pat', role: 'member', created_at: TIME };

const connector = {
  id: `con_${ID}`,
  owner: 'personal',
  fqn: 'acme/items',
  version: '1.0.0',
  title: 'Items',
  content_hash: '0'.repeat(64),
  hosts: ['api.test'],
  operation_count: 1,
  credential: {
    kind: 'api_key',
    ref: 'vault://user/demo',
    state: 'ready',
    updated_at: TIME,
    expires_at: null,
    client_id: null,
    token_url: null,
    scopes: [],
    renewable: false,
  },
  installed_by: `usr_${ID}`,
  created_at: TIME,
  updated_at: TIME,
};
const sharedConnector = {
  ...share,
  id: `shr_${ID.replace('01', '02')}`,
  kind: 'connector',
  binding: null,
  connector: {
    id: connector.id,
    fqn: 'acme/items',
    title: 'Items',
    version: '1.0.0',
    hosts: ['api.test'],
    operation_count: 1,
    revision: TIME,
  },
};

const LISTS: Readonly<Record<string, unknown>> = {
  '/v1/groups': group,
  '/v1/members': { ...member, suspended_at: null },
  '/v1/host-bindings': binding,
  '/v1/connectors': connector,
  '/v1/shares': share,
  [`/v1/groups/${group.id}/members`]: { id: `usr_${ID}`, display_name: 'Pat' },
};
const answer: Answer = ({ method, url }) => {
  if (method === 'GET') return { status: 200, body: { items: [LISTS[url.pathname]], next_cursor: null } };
  if (method === 'DELETE' || url.pathname.endsWith('/decline') || url.pathname.includes('/members/')) {
    return { status: 204 };
  }
  return { status: url.pathname.endsWith('/accept') ? 200 : 201, body: url.pathname === '/v1/groups' ? group : share };
};
const answerOther: Answer = (call) =>
  call.method === 'GET' && call.url.pathname === '/v1/shares'
    ? { status: 200, body: { items: [sharedConnector], next_cursor: null } }
    : answer(call);
const run = (...args: string[]) => runCli(home, args, { answer });
const changes = ({ calls }: Awaited<ReturnType<typeof run>>) =>
  calls.filter(({ method }) => method !== 'GET').map(({ method, url, body }) => [`${method} ${url.pathname}`, body]);

describe('svc group', () => {
  test('lists groups and their people', async () => {
    expect((await run('group', 'list')).stdout).toBe(`grp_${ID}\tData team\t2\tadmins\n`);
    expect((await run('group', 'members', 'data team')).stdout).toBe(`usr_${ID}\tPat\n`);
  });

  test('renames the group that was read, and not one that has another name by now', async () => {
    const { calls } = await run('group', 'rename', 'Data team', 'Data');
    expect(calls.at(-1)).toMatchObject({ method: 'PUT', body: { name: 'Data' }, ifMatch: '"r1"' });
  });

  test('finds a group by its name and a person by the address', async () => {
    expect(changes(await run('group', 'add', 'Data team', 'pat@acme.test'))).toEqual([
      [`PUT /v1/groups/grp_${ID}/members/usr_${ID}`, undefined],
    ]);
    expect(changes(await run('group', 'remove', `grp_${ID}`, `usr_${ID}`))).toEqual([
      [`DELETE /v1/groups/grp_${ID}/members/usr_${ID}`, undefined],
    ]);
    const wrong = await run('group', 'add', 'Data teem', 'pat@acme.test');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('did you mean "Data team"')]);
  });

  test('deletes only after a yes', async () => {
    const asked = await run('group', 'delete', 'Data team');
    expect([asked.code, changes(asked)]).toEqual([2, []]);
    expect(changes(await run('group', 'delete', 'Data team', '--yes'))).toEqual([
      [`DELETE /v1/groups/grp_${ID}`, undefined],
    ]);
  });
});

describe('svc share', () => {
  test('shares a binding by its host with a group or a person', async () => {
    const body = { binding_id: `bnd_${ID}` };
    expect(changes(await run('share', 'add', 'api.test', '--group', 'Data team'))).toEqual([
      ['POST /v1/shares', { ...body, group_id: `grp_${ID}` }],
    ]);
    expect(changes(await run('share', 'add', 'api.test', '--with', 'pat@acme.test'))).toEqual([
      ['POST /v1/shares', { ...body, email: 'pat@acme.test' }],
    ]);
    expect(changes(await run('share', 'add', 'api.test', '--with', `usr_${ID}`))).toEqual([
      ['POST /v1/shares', { ...body, user_id: `usr_${ID}` }],
    ]);
    expect(await run('share', 'add', 'api.test')).toMatchObject({ code: 2, calls: [] });
  });

  test('shares a connector by its name, and shows what a connector is', async () => {
    expect(changes(await run('share', 'add', 'acme/items', '--connector', '--group', 'Data team'))).toEqual([
      ['POST /v1/shares', { connector_id: `con_${ID}`, group_id: `grp_${ID}` }],
    ]);
    expect(await run('share', 'add', 'x', '--connector', '--mcp', '--group', 'x')).toMatchObject({ code: 2 });
    const listed = await runCli(home, ['share', 'list'], { answer: answerOther });
    expect(listed.stdout).toContain('\tacme/items\tconnector: 1 operation of api.test\t');
  });

  test('accepts the revision that it showed, after a yes', async () => {
    const asked = await run('share', 'accept', `shr_${ID}`);
    expect([asked.code, changes(asked)]).toEqual([2, []]);
    const accepted = await run('share', 'accept', `shr_${ID}`, '--yes');
    expect(accepted.stderr).toContain('Olga shares api.test (bearer, effect read)');
    expect(changes(accepted)).toEqual([[`POST /v1/shares/shr_${ID}/accept`, { revision: TIME }]]);
  });

  test('lists, declines and ends', async () => {
    const listed = await run('share', 'list', '--received');
    expect(listed.calls[0]?.url.search).toContain('list=received');
    expect(listed.stdout).toBe(`shr_${ID}\tapi.test\tbearer, effect read\tOlga\tData team\tto_accept\n`);
    expect(changes(await run('share', 'decline', `shr_${ID}`))).toEqual([
      [`POST /v1/shares/shr_${ID}/decline`, undefined],
    ]);
    expect(changes(await run('share', 'end', `shr_${ID}`))).toEqual([[`DELETE /v1/shares/shr_${ID}`, undefined]]);
    expect(await run('share', 'list', '--all', '--received')).toMatchObject({ code: 2, calls: [] });
  });
});
