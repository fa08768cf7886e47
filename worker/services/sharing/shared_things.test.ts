import { randomBytes } from 'node:crypto';
import type { InStatement } from '@libsql/client/web';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ITEMS_SPEC, itemsSpec, LOGIN_SPEC, UPSTREAM_HOST } from '../../../e2e/runtimes/connector_samples.ts';
import {
  callAs,
  type HostedUser,
  hostedUser,
  outcome,
  ownerWithMember,
  PUBLIC_URL,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { ok } from '../../../shared/model/result.ts';
import { approvalsPage } from '../../../shared/wire/approvals.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../../../shared/wire/channel.ts';
import { installReply, readSnapshotConnectors, runReply } from '../../../shared/wire/connectors/connectors.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { explainReply } from '../../../shared/wire/host_bindings.ts';
import { departureReply } from '../../../shared/wire/members.ts';
import { mcpServerRecord, readSnapshotMcpServers } from '../../../shared/wire/mcp/mcp_servers.ts';
import { mcpToolsReply } from '../../../shared/wire/mcp/mcp_tools.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import { openServer } from '../mcp/served/open_server.ts';
import { listServedServers } from '../mcp/served/served_servers.ts';
import { groupRecord } from '../../../shared/wire/sharing/groups.ts';
import { sharedThing, shareRecord, sharesPage } from '../../../shared/wire/sharing/shares.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let sidecar: TestSidecar;
let value: string;
/** The authorization header of each call that left. */
let sent: (string | undefined)[];
beforeEach(async () => {
  sent = [];
  const outbound = {
    call: async ({ headers }: { readonly headers: Readonly<Record<string, string>> }) => {
      sent.push(headers['authorization']);
      return ok({ status: 200, contentType: 'application/json', body: new TextEncoder().encode('{}') });
    },
  };
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL, outbound });
  ({ owner, member } = await ownerWithMember(control));
  sidecar = await sidecarOf(member);
  value = `planted-${randomBytes(12).toString('hex')}`;
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

async function sidecarOf(user: HostedUser): Promise<TestSidecar> {
  const made = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await made.enrol(user.tokens.access_token);
  return made;
}

/** A connector of a user's own, served by a secret whose path is private. */
async function install(user: HostedUser, spec: object = ITEMS_SPEC): Promise<string> {
  const { id } = await parseReply(installReply, user.call('POST', '/v1/connectors', spec));
  await user.call('POST', '/v1/secrets', { path: 'user/own-name-of-it', value });
  const served = { kind: 'api_key', credential_ref: 'vault://user/own-name-of-it' };
  expect(await outcome(user.call('PUT', `/v1/connectors/${id}/credential`, served))).toBe(200);
  return id;
}

const HUB = {
  name: 'hub',
  mode: 'remote',
  url: 'https://mcp.example.test/mcp',
  headers: { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' },
};

async function serve(user: HostedUser, server: object = HUB): Promise<string> {
  const { id } = await parseReply(mcpServerRecord, user.call('POST', '/v1/mcp-servers', server));
  const credential = { env_var_name: 'TOKEN', secret_value: value };
  expect((await user.call('POST', `/v1/mcp-servers/${id}/credentials`, credential)).ok).toBe(true);
  return id;
}

const share = (by: HostedUser, what: object, receiver: object = { user_id: member.caller.userId }) =>
  by.call('POST', '/v1/shares', { ...what, ...receiver });
const shared = async (...args: Parameters<typeof share>) => parseReply(shareRecord, share(...args));
const received = async (by: HostedUser) =>
  (await parseReply(sharesPage, by.call('GET', '/v1/shares?list=received'))).items;
const acceptAll = async (by: HostedUser) => {
  for (const each of await received(by)) {
    const { revision } = sharedThing(each);
    expect(await outcome(by.call('POST', `/v1/shares/${each.id}/accept`, { revision }))).toBe(200);
  }
};

async function snapshot(of = sidecar) {
  const reply = await of.call('GET', '/v1/sidecar/snapshot', { headers: KNOWS });
  return of.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
}
const KNOWS = { 'svc-snapshot-knows': 'inactive_connectors', 'svc-snapshot-knows-also': 'other_ports,mcp_tools' };

async function connectorsOf(of = sidecar) {
  const read = readSnapshotConnectors((await snapshot(of)).connectors);
  if (!read.ok) throw new Error(read.error);
  return read.value.map(({ connector }) => connector);
}

const serversOf = async (of = sidecar) =>
  readSnapshotMcpServers((await snapshot(of)).mcp_servers).servers.map(({ server }) => server);

async function release(path: string, of = sidecar) {
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'enterprise', path }] };
  const reply = await of.call('POST', '/v1/sidecar/credentials', { body });
  return of.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}

async function releasedValue(path: string, of = sidecar) {
  const { credentials } = await release(path, of);
  return credentials[0] === undefined ? null : of.unseal(credentials[0].sealed);
}

/** Why a user's client cannot use the first server that the control plane serves; null if it can. */
async function servedProblem({ caller }: HostedUser): Promise<string | null> {
  const [served] = await listServedServers(control.context, caller);
  const opened = await openServer(control.context, served!, new AbortController().signal);
  return opened.ok ? null : opened.error;
}

const tokenOf = async (user: HostedUser, scopes: readonly string[]) =>
  (await parseReply(createdToken, user.call('POST', '/v1/tokens', { name: 'ci', scopes }))).token;

const RUN = { connector_fqn: 'acme/items', operation: 'get-item', args: { id: '1' } };
const PLACE = 'connectors/acme/items';

const pending = async (user: HostedUser) =>
  (await parseReply(approvalsPage, user.call('GET', '/v1/approvals'))).items.map(({ connector_id }) => connector_id);

describe('a connector that an admin shares with a group', () => {
  test('is the enterprise’s to the people in it, whose sidecars get the credential and never its path', async () => {
    const id = await install(owner);
    const { id: groupId } = await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name: 'Data team' }));
    await owner.call('PUT', `/v1/groups/${groupId}/members/${member.caller.userId}`);
    const before = await snapshot();
    const given = await shared(owner, { connector_id: id }, { group_id: groupId });
    expect(given).toMatchObject({
      kind: 'connector',
      binding: null,
      connector: { fqn: 'acme/items', hosts: [UPSTREAM_HOST] },
    });
    const now = await snapshot();
    expect([before.connectors, now.version > before.version]).toEqual([[], true]);
    expect(await connectorsOf()).toMatchObject([
      { id, owner: 'enterprise', credential: { owner: 'enterprise', path: PLACE } },
    ]);
    expect(now.credentials).toMatchObject([{ owner: 'enterprise', path: PLACE }]);
    expect(JSON.stringify(now)).not.toContain('own-name-of-it');
    expect(await releasedValue(PLACE)).toEqual({ value });
    expect((await release(PLACE)).credentials[0]?.version).toBe(now.credentials[0]?.version);
    const { rows } = await run(`SELECT data FROM audit_events WHERE type = 'control.credential.released'`);
    expect(JSON.stringify(rows[0]?.['data'])).toContain(
      JSON.stringify(`"svc.control.shared_by":"${owner.caller.userId}"`).slice(1, -1),
    );
    const asked = { method: 'GET', url: `https://${UPSTREAM_HOST}/items/1` };
    expect(await parseReply(explainReply, member.call('POST', '/v1/host-bindings/explain', asked))).toMatchObject({
      decision: 'connector',
    });
    const ran = await parseReply(runReply, member.call('POST', '/v1/connector-operations/run', RUN));
    expect([ran.upstream_status, sent]).toEqual([200, [`Bearer ${value}`]]);
    for (const method of ['GET', 'DELETE']) {
      expect(await outcome(member.call(method, `/v1/connectors/${id}`))).toBe('not_found');
    }
    const stolen = { kind: 'api_key', value: 'another' };
    expect(await outcome(member.call('PUT', `/v1/connectors/${id}/credential`, stolen))).toBe('not_found');
    await owner.call('DELETE', `/v1/groups/${groupId}/members/${member.caller.userId}`);
    expect([await connectorsOf(), await releasedValue(PLACE)]).toEqual([[], null]);
    expect(await outcome(member.call('POST', '/v1/connector-operations/run', RUN))).toBe(
      'connector_operation_not_found',
    );
  });

  test.each<[string, (id: string, shareId: string) => Promise<unknown>]>([
    ['the share ends', (_, shareId) => owner.call('DELETE', `/v1/shares/${shareId}`)],
    ['the connector is removed', (id) => owner.call('DELETE', `/v1/connectors/${id}`)],
    ['its credential is removed', (id) => owner.call('DELETE', `/v1/connectors/${id}/credential`)],
    [
      'whoever shares it is suspended',
      () => run(`UPDATE users SET suspended_at = '2026' WHERE id = '${owner.caller.userId}'`),
    ],
    ['whoever shares it leaves', () => run(`UPDATE users SET left_at = '2026' WHERE id = '${owner.caller.userId}'`)],
  ])('gives no credential once %s', async (_, end) => {
    const id = await install(owner);
    const given = await shared(owner, { connector_id: id });
    const before = await snapshot();
    expect(await releasedValue(PLACE)).toEqual({ value });
    await end(id, given.id);
    const now = await snapshot();
    expect([now.version > before.version, now.credentials, await releasedValue(PLACE)]).toEqual([true, [], null]);
  });

  test('gives the credential also if the same secret serves another one that is shared', async () => {
    const first = await install(owner);
    const elsewhere = itemsSpec('1.0.0', { hosts: ['elsewhere.test'] });
    const named = { ...elsewhere, connector: { ...elsewhere.connector, fqn: 'acme/others' } };
    const second = await install(owner, named);
    for (const id of [first, second]) await shared(owner, { connector_id: id });
    const places = [PLACE, 'connectors/acme/others'];
    expect(new Set((await snapshot()).credentials.map(({ path }) => path))).toEqual(new Set(places));
    for (const path of places) expect(await releasedValue(path)).toEqual({ value });
  });

  test('has the receiver approve what needs an approval, and nobody else', async () => {
    const id = await install(owner);
    await shared(owner, { connector_id: id });
    const removal = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: '1' } };
    expect(await outcome(member.call('POST', '/v1/connector-operations/run', removal))).toBe('approval_required');
    const stranger = await hostedUser(control);
    expect([await pending(member), await pending(owner), await pending(stranger)]).toEqual([[id], [], []]);
    expect(sent).toEqual([]);
  });

  test('gives way to the receiver’s own and to the enterprise’s, of the name or of the host', async () => {
    const id = await install(owner);
    await shared(owner, { connector_id: id });
    const other = itemsSpec('1.0.0');
    const named = { ...other, connector: { ...other.connector, fqn: 'acme/others' } };
    const own = await install(member, named);
    expect((await connectorsOf()).map((each) => each.id)).toEqual([own]);
    expect(await received(member)).toMatchObject([{ state: 'overridden' }]);
    expect(await releasedValue(PLACE)).toBeNull();
    await member.call('DELETE', `/v1/connectors/${own}`);
    expect(await releasedValue(PLACE)).toEqual({ value });
    await parseReply(installReply, owner.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC));
    expect(await releasedValue(PLACE)).toBeNull();
  });
});

describe('a connector that another member shares', () => {
  test('is used by a receiver who accepted this version of it, and not after a new one', async () => {
    const other = await hostedUser(control, owner.caller.enterpriseId);
    const id = await install(other);
    await shared(other, { connector_id: id });
    expect([await connectorsOf(), await releasedValue(PLACE)]).toEqual([[], null]);
    expect(await outcome(member.call('POST', '/v1/connector-operations/run', RUN))).toBe(
      'connector_operation_not_found',
    );
    await acceptAll(member);
    expect([(await connectorsOf()).length, await releasedValue(PLACE)]).toEqual([1, { value }]);
    const moved = itemsSpec('1.1.0', { hosts: ['elsewhere.test'] });
    expect((await other.call('POST', '/v1/connectors', moved)).status).toBe(200);
    expect([await connectorsOf(), await releasedValue(PLACE)]).toEqual([[], null]);
    const [now] = await received(member);
    expect([now?.state, now?.connector?.hosts]).toEqual(['to_accept', ['elsewhere.test']]);
    const { id: shareId } = now!;
    const stale = { revision: '2020-01-01T00:00:00.000Z' };
    expect(await outcome(member.call('POST', `/v1/shares/${shareId}/accept`, stale))).toBe('conflict');
    await acceptAll(member);
    expect(await outcome(member.call('POST', `/v1/shares/${shareId}/decline`))).toBe(204);
    expect(await connectorsOf()).toEqual([]);
  });

  test('is not run by a version that comes between the look at what was accepted and the reading of its spec', async () => {
    const other = await hostedUser(control, owner.caller.enterpriseId);
    const id = await install(other);
    await shared(other, { connector_id: id });
    await acceptAll(member);
    const { client } = control.context.database;
    const real = client.execute.bind(client);
    const execute = vi.spyOn(client, 'execute');
    let isMoved = false;
    execute.mockImplementation(async (statement: InStatement) => {
      const text = typeof statement === 'string' ? statement : statement.sql;
      if (!isMoved && text.includes('"spec"') && !text.includes('"shares"') && JSON.stringify(statement).includes(id)) {
        isMoved = true;
        const spec = JSON.stringify(itemsSpec('1.1.0', { hosts: ['elsewhere.test'] })).replaceAll("'", "''");
        await client.batch([`UPDATE connectors SET spec = '${spec}', updated_at = '2999' WHERE id = '${id}'`], 'write');
      }
      return real(statement);
    });
    expect(await outcome(member.call('POST', '/v1/connector-operations/run', RUN))).toBe(
      'connector_operation_not_found',
    );
    expect([isMoved, sent]).toEqual([true, []]);
  });

  test('says whom to ask when its credential is not usable, and names no path', async () => {
    const id = await install(owner);
    await shared(owner, { connector_id: id });
    await owner.call('DELETE', `/v1/connectors/${id}/credential`);
    const reply = await member.call('POST', '/v1/connector-operations/run', RUN);
    const { error } = errorBody.parse(await reply.json());
    expect(error).toMatchObject({
      code: 'binding_required',
      message: expect.stringContaining('ask whoever shares it'),
    });
    expect(JSON.stringify(error)).not.toContain(id);
  });
});

describe('an MCP server that an admin shares', () => {
  test('is the enterprise’s to the receiver, whose gateway gets its credential', async () => {
    const id = await serve(owner);
    const path = `mcp-servers/${id}/TOKEN`;
    const given = await shared(owner, { mcp_server_id: id });
    expect(given).toMatchObject({ kind: 'mcp_server', mcp_server: { name: 'hub', url: HUB.url, command: [] } });
    expect(await serversOf()).toMatchObject([{ id, owner: 'enterprise', url: HUB.url }]);
    expect((await snapshot()).credentials).toMatchObject([{ owner: 'enterprise', path }]);
    expect(await releasedValue(path)).toEqual({ value });
    expect(await releasedValue(`mcp-servers/${id}/OTHER`)).toBeNull();
    expect(await outcome(member.call('GET', `/v1/mcp-servers/${id}`))).toBe('not_found');
    expect(await outcome(member.call('DELETE', `/v1/mcp-servers/${id}/credentials/TOKEN`))).toBe('not_found');
    expect(await outcome(owner.call('DELETE', `/v1/mcp-servers/${id}`))).toBe(204);
    expect([await serversOf(), await releasedValue(path)]).toEqual([[], null]);
    expect((await run('SELECT * FROM shares')).rows).toEqual([]);
  });

  test('takes the tools and the health that the receiver’s machine reports, and those of nobody else', async () => {
    const id = await serve(owner);
    const tools = [{ name: 'look', inputSchema: { type: 'object' } }];
    const report = (of: TestSidecar) =>
      of.call('POST', '/v1/sidecar/mcp-tools', { body: { server_id: id, kind: 'tool', tools } });
    const known = async () =>
      (await parseReply(mcpToolsReply, owner.call('GET', `/v1/mcp-servers/${id}/tools`))).items.length;
    await report(sidecar);
    expect(await known()).toBe(0);
    await shared(owner, { mcp_server_id: id });
    await report(await sidecarOf(await hostedUser(control)));
    expect(await known()).toBe(0);
    await report(sidecar);
    expect(await known()).toBe(1);
    expect((await snapshot()).mcp_tools).toMatchObject([{ server_id: id }]);
  });

  test('says whom to ask when its credential is not usable, also to clients that the control plane serves', async () => {
    const id = await serve(owner);
    await shared(owner, { mcp_server_id: id });
    await owner.call('DELETE', `/v1/mcp-servers/${id}/credentials/TOKEN`);
    expect(await servedProblem(owner)).toContain('store it on its page');
    expect(await servedProblem(member)).toBe(
      'the credential of what a colleague shares is not available: ask whoever shares it',
    );
  });

  test('gives way to one of the receiver’s own with its name', async () => {
    const id = await serve(owner);
    await shared(owner, { mcp_server_id: id });
    const own = await serve(member);
    expect((await serversOf()).map((each) => each.id)).toEqual([own]);
    expect(await releasedValue(`mcp-servers/${id}/TOKEN`)).toBeNull();
  });
});

test('an MCP server that another member shares is used once accepted, and paused once it runs a program with credentials', async () => {
  const other = await hostedUser(control, owner.caller.enterpriseId);
  const id = await serve(other);
  const path = `mcp-servers/${id}/TOKEN`;
  await shared(other, { mcp_server_id: id });
  expect([await serversOf(), await releasedValue(path)]).toEqual([[], null]);
  await acceptAll(member);
  expect([(await serversOf()).length, await releasedValue(path)]).toEqual([1, { value }]);
  const moved = { ...HUB, url: 'https://evil.example.test/mcp' };
  expect(await outcome(other.call('PUT', `/v1/mcp-servers/${id}`, moved))).toBe(200);
  expect((await received(member))[0]?.state).toBe('to_accept');
  await acceptAll(member);
  const local = { name: 'hub', command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
  expect(await outcome(other.call('PUT', `/v1/mcp-servers/${id}`, local))).toBe(200);
  expect((await received(member))[0]?.state).toBe('paused');
  expect(await serversOf()).toEqual([]);
});

describe('nobody else', () => {
  test('of the enterprise or another one gets, sees, accepts or ends a share of a connector or a server', async () => {
    const [connectorId, serverId] = [await install(owner), await serve(owner)];
    const given = [
      await shared(owner, { connector_id: connectorId }),
      await shared(owner, { mcp_server_id: serverId }),
    ];
    const stranger = await hostedUser(control);
    for (const user of [stranger, await hostedUser(control, owner.caller.enterpriseId)]) {
      const of = await sidecarOf(user);
      expect([await connectorsOf(of), await serversOf(of)]).toEqual([[], []]);
      expect([await releasedValue(PLACE, of), await releasedValue(`mcp-servers/${serverId}/TOKEN`, of)]).toEqual([
        null,
        null,
      ]);
      expect(await received(user)).toEqual([]);
      expect(await outcome(user.call('POST', '/v1/connector-operations/run', RUN))).toBe(
        'connector_operation_not_found',
      );
      for (const what of [{ connector_id: connectorId }, { mcp_server_id: serverId }]) {
        expect(await outcome(share(user, what))).toBe('not_found');
      }
      for (const each of given) {
        const accept = { revision: sharedThing(each).revision };
        expect(await outcome(user.call('POST', `/v1/shares/${each.id}/accept`, accept))).toBe('not_found');
        expect(await outcome(user.call('DELETE', `/v1/shares/${each.id}`))).toBe('not_found');
      }
    }
    expect(await outcome(share(owner, { connector_id: connectorId }, { user_id: stranger.caller.userId }))).toBe(
      'invalid_input',
    );
    expect(sent).toEqual([]);
  });

  test('gets what a job’s sidecar is kept from: one that has its own things only', async () => {
    const id = await install(owner);
    await shared(owner, { connector_id: id });
    await run(`UPDATE sidecars SET own_only = 1 WHERE id = '${sidecar.enrolled.sidecar_id}'`);
    expect([await connectorsOf(), await releasedValue(PLACE)]).toEqual([[], null]);
  });
});

test('a personal token shares and accepts only kinds of things that it may create', async () => {
  const other = await hostedUser(control, owner.caller.enterpriseId);
  const things = [
    ['connectors:write', { connector_id: await install(other) }],
    ['mcp-servers:write', { mcp_server_id: await serve(other) }],
  ] as const;
  const by = async (user: HostedUser, scopes: readonly string[], path: string, body: object) =>
    outcome(callAs(control, await tokenOf(user, scopes), 'POST', path, body));
  for (const [scope, thing] of things) {
    const what = { ...thing, user_id: member.caller.userId };
    expect(await by(other, ['host-bindings:write'], '/v1/shares', what)).toBe('insufficient_scope');
    expect(await by(other, ['host-bindings:write', scope], '/v1/shares', what)).toBe(201);
    const last = (await received(member)).find(({ state }) => state === 'to_accept')!;
    const [accept, body] = [`/v1/shares/${last.id}/accept`, { revision: sharedThing(last).revision }];
    expect(await by(member, ['host-bindings:write'], accept, body)).toBe('insufficient_scope');
    expect(await by(member, ['host-bindings:write', scope], accept, body)).toBe(200);
  }
});

describe('what cannot be shared', () => {
  test('is refused with the reason: one thing at a time, one’s own, with a credential, and no login', async () => {
    const id = await install(owner);
    const reason = async (by: HostedUser, what: object) => {
      const reply = await share(by, what);
      return [reply.status, await reply.text()];
    };
    expect((await share(owner, {})).status).toBe(400);
    expect((await share(owner, { connector_id: id, binding_id: `bnd_${'0'.repeat(26)}` })).status).toBe(400);
    const bare = await parseReply(installReply, member.call('POST', '/v1/connectors', ITEMS_SPEC));
    const toOwner = { user_id: owner.caller.userId };
    expect(await outcome(share(member, { connector_id: bare.id }, toOwner))).toBe('invalid_input');
    const login = await parseReply(installReply, owner.call('POST', '/v1/connectors', LOGIN_SPEC));
    await run(`UPDATE connectors SET activated_at = '2026' WHERE id = '${login.id}'`);
    expect(await reason(owner, { connector_id: login.id })).toEqual([
      400,
      expect.stringContaining('its own person only'),
    ]);
    const local = { name: 'files', command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
    const serverId = await serve(owner, local);
    expect(await reason(owner, { mcp_server_id: serverId })).toEqual([400, expect.stringContaining('would get TOKEN')]);
    const source = { path: 'user/own-name-of-it', source: { kind: 'borrowed' } };
    expect(await outcome(owner.call('POST', '/v1/secret-sources', source))).toBe(200);
    expect(await reason(owner, { connector_id: id })).toEqual([400, expect.stringContaining('is a borrowed secret')]);
  });
});

test('what leaves is shown before it does: by the connector, the server and the person', async () => {
  const [connectorId, serverId] = [await install(owner), await serve(owner)];
  await run(`UPDATE users SET display_name = 'Pat' WHERE id = '${member.caller.userId}'`);
  await shared(owner, { connector_id: connectorId });
  await shared(owner, { mcp_server_id: serverId });
  for (const path of [`/v1/connectors/${connectorId}`, `/v1/mcp-servers/${serverId}`]) {
    const { effects } = await parseReply(removalPreview, owner.call('GET', `${path}/deletion`));
    expect(effects.map(({ names }) => names)).toContainEqual(['Pat']);
  }
  const path = `/v1/members/${owner.caller.userId}/departure`;
  await run(`UPDATE users SET role = 'owner' WHERE id = '${member.caller.userId}'`);
  expect(await parseReply(departureReply, member.call('GET', path))).toMatchObject({
    shares: 2,
    connectors: 1,
    mcp_servers: 1,
  });
});
