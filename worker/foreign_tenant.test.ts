import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC } from '../e2e/runtimes/connector_samples.ts';
import { storeIdentity, storeJoinRequest, storeMcpClient } from '../e2e/runtimes/hosted_rows.ts';
import { hostedUser, type HostedUser, outcome, signInBrowser, startHosted } from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { type Role, ROLES } from '../shared/model/role.ts';
import { grantsPage } from '../shared/wire/approval_grants.ts';
import { approvalPayload } from '../shared/wire/approvals.ts';
import { APPROVAL_TYP } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { sharesPage } from '../shared/wire/sharing/shares.ts';
import { signInsPage } from '../shared/wire/sign_ins.ts';
import { createdToken } from '../shared/wire/tokens.ts';

/** A word that is in every resource of the first tenant. */
const PLANTED = 'planted-of-tenant-one';
const NOTHING = '00000000000000000000000000';

const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ security: z.array(z.record(z.string(), z.unknown())) }))),
});
const withId = z.object({ id: z.string() });

const KEY = { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) };

let control: InProcess;
let tenant: HostedUser;
let stranger: HostedUser;
let strangerSidecar: TestSidecar;
let tenantSidecar: TestSidecar;
let viewId = '';
let managedBindingId = '';
let routes: { method: string; path: string; access: string }[] = [];
/** The id for each path, and a valid body. */
let places: Record<string, { readonly id: string; readonly body?: unknown }> = {};

const BINDING = { host: 'api.example.test', scheme: 'bearer', credential_ref: `vault://${PLANTED}/key` };

async function sidecarOf(user: HostedUser): Promise<TestSidecar> {
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(user.tokens.access_token);
  return sidecar;
}

/**
 * A resource of the first tenant. Personal resources, and those of the enterprise if there are any, are also in the
 * lists.
 */
async function create(path: string, body: object): Promise<string> {
  return (await parseReply(withId, tenant.call('POST', path, body))).id;
}

async function askedApproval(connectorId: string): Promise<string> {
  await tenant.call('PUT', `/v1/connectors/${connectorId}/credential`, { kind: 'api_key', value: 'key-of-a-test' });
  const run = { connector_fqn: ITEMS_SPEC.connector.fqn, operation: 'delete-item', args: { id: PLANTED } };
  const reply = await tenant.call('POST', '/v1/connector-operations/run', run);
  return String(errorBody.parse(await reply.json()).error.details?.['approval_id']);
}

/** An approval that a sidecar of the first tenant waits for. */
async function heldBySidecar(connectorId: string, fingerprint: string): Promise<string> {
  const body = {
    request_id: `request-of-${fingerprint.slice(0, 8)}`,
    connector_id: connectorId,
    operation: 'delete-item',
    fingerprint,
    summary: PLANTED,
    session_id: PLANTED,
  };
  const jws = await (await tenantSidecar.call('POST', '/v1/sidecar/approvals', { body })).text();
  return (await tenantSidecar.verify(jws, APPROVAL_TYP, approvalPayload)).approval_id;
}

/** A grant of the first tenant's. */
async function grantedFor(connectorId: string): Promise<string> {
  const id = await heldBySidecar(connectorId, 'a'.repeat(64));
  await tenant.call('POST', `/v1/approvals/${id}/decide`, { decision: 'approve', grant: { seconds: 3600 } });
  const { items } = await parseReply(grantsPage, tenant.call('GET', '/v1/approval-grants'));
  return items[0]?.id ?? '';
}

beforeAll(async () => {
  control = await startHosted();
  tenant = await hostedUser(control);
  stranger = await hostedUser(control);
  tenantSidecar = await sidecarOf(tenant);
  strangerSidecar = await sidecarOf(stranger);
  const secret = { path: `${PLANTED}/free`, value: 'value-of-a-test' };
  const secretId = await create('/v1/secrets', secret);
  await tenant.call('POST', '/v1/secrets', { ...secret, path: `${PLANTED}/key`, owner: 'enterprise' });
  const bindingId = await create('/v1/host-bindings', { ...BINDING, description: PLANTED });
  await tenant.call('POST', '/v1/host-bindings', { ...BINDING, owner: 'enterprise' });
  const tunnelHostId = await create('/v1/tunnel-hosts', { host: `${PLANTED}.example.test` });
  await create('/v1/tunnel-hosts', { host: `${PLANTED}.example.test`, owner: 'enterprise' });
  const certificate = { host: `${PLANTED}.example.test`, credential_ref: 'vault://user/demo' };
  const certificateId = await create('/v1/client-certificates', certificate);
  const connectorId = await create('/v1/connectors', {
    ...ITEMS_SPEC,
    connector: { ...ITEMS_SPEC.connector, title: PLANTED },
  });
  const server = { name: PLANTED, command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
  const serverId = await create('/v1/mcp-servers', { ...server, registry_id: 'acme/planted' });
  await create('/v1/mcp-servers', { ...server, owner: 'enterprise' });
  const approvalId = await askedApproval(connectorId);
  const grantId = await grantedFor(connectorId);
  const ruleId = await create('/v1/approval-rules', { subject: 'mcp_server', name: PLANTED, role: 'owner' });
  const heldId = await heldBySidecar(connectorId, 'b'.repeat(64));
  viewId = await create(`/v1/approvals/${heldId}/views`, { key: KEY });
  const loginId = await create('/v1/pending-logins', {
    program: PLANTED,
    token_url: 'https://auth.example.test/token',
    client_id: PLANTED,
    grants: ['device_code'],
  });
  const named = { name: PLANTED, scopes: ['account:read'] };
  const { id: tokenId } = await parseReply(createdToken, tenant.call('POST', '/v1/tokens', named));
  await signInBrowser(control, tenant.caller);
  const sessions = (await parseReply(signInsPage, tenant.call('GET', '/v1/sessions'))).items;
  const sessionId = sessions.find(({ kind }) => kind === 'browser')?.id ?? '';
  const { client } = control.context.database;
  await client.execute({
    sql: `UPDATE users SET role = 'owner', display_name = ? WHERE id = ?`,
    args: [PLANTED, tenant.caller.userId],
  });
  const identityId = await storeIdentity(control, tenant.caller, PLANTED);
  const invitationId = await create('/v1/invitations', { email: `${PLANTED}@example.test` });
  const sinkId = await create('/v1/audit-sinks', {
    kind: 'webhook',
    name: PLANTED,
    url: 'https://siem.example.test/in',
  });
  const scimTokenId = await create('/v1/scim-tokens', { name: PLANTED });
  // Of the first tenant's own person, who is a member: its acceptance is refused, and not as unknown.
  const joinRequestId = await storeJoinRequest(control, tenant.caller, PLANTED);
  const groupId = await create('/v1/groups', { name: PLANTED });
  const colleague = await hostedUser(control, tenant.caller.enterpriseId);
  const lent = { ...BINDING, host: 'lent.example.test', effect: 'read' };
  const { id: lentId } = await parseReply(withId, colleague.call('POST', '/v1/host-bindings', lent));
  const given = { binding_id: lentId, user_id: tenant.caller.userId };
  const { id: shareId } = await parseReply(withId, colleague.call('POST', '/v1/shares', given));
  const { items: shares } = await parseReply(sharesPage, tenant.call('GET', '/v1/shares?list=received'));
  const serviceAccountId = await create('/v1/service-accounts', {
    name: PLANTED,
    issuer: 'https://id.example.test',
    audience: PLANTED,
    claims: { sub: PLANTED },
  });
  const managed = `/v1/service-accounts/${serviceAccountId}`;
  await create(`${managed}/secrets`, { path: `${PLANTED}/key`, value: 'value-of-a-test' });
  managedBindingId = await create(`${managed}/host-bindings`, BINDING);
  const mcpClientId = await storeMcpClient(control, tenant.caller, PLANTED);
  const credential = { kind: 'api_key', value: 'key-of-a-test' };
  places = {
    '/v1/secrets/{path}': { id: secretId },
    '/v1/secrets/{path}/deletion': { id: secretId },
    '/v1/host-bindings/{id}': { id: bindingId, body: BINDING },
    '/v1/host-bindings/{id}/deletion': { id: bindingId },
    '/v1/tunnel-hosts/{id}': { id: tunnelHostId },
    '/v1/client-certificates/{id}': { id: certificateId },
    '/v1/connectors/{id}': { id: connectorId },
    '/v1/connectors/{id}/deletion': { id: connectorId },
    '/v1/connectors/{id}/credential': { id: connectorId, body: credential },
    '/v1/connectors/{id}/credential/authorize': { id: connectorId, body: { grant: 'browser' } },
    '/v1/connectors/{id}/credential/revoke': { id: connectorId },
    '/v1/mcp-servers/{id}': { id: serverId, body: server },
    '/v1/mcp-servers/{id}/deletion': { id: serverId },
    '/v1/mcp-servers/{id}/credentials': {
      id: serverId,
      body: { env_var_name: 'TOKEN', secret_value: 'value-of-a-test' },
    },
    '/v1/mcp-servers/{id}/credentials/{name}': { id: serverId },
    '/v1/mcp-servers/{id}/authorize': { id: serverId, body: {} },
    '/v1/mcp-servers/{id}/revisions': { id: serverId },
    '/v1/mcp-servers/{id}/upgrade': { id: serverId, body: {} },
    '/v1/mcp-servers/{id}/tools': { id: serverId },
    '/v1/mcp-servers/{id}/tools/accept': { id: serverId, body: { hashes: ['0'.repeat(64)] } },
    '/v1/mcp-servers/{id}/rollback': { id: serverId, body: { revision: 1 } },
    '/v1/approvals/{id}': { id: approvalId },
    '/v1/approvals/{id}/decide': { id: approvalId, body: { decision: 'approve' } },
    '/v1/approvals/{id}/views': { id: heldId, body: { key: KEY } },
    '/v1/approvals/{id}/views/{view}': { id: heldId },
    '/v1/sidecar/approvals/{id}/views': { id: heldId, body: { view_id: `apv_${NOTHING}`, sealed: 'a..b.c.d' } },
    '/v1/approval-grants/{id}': { id: grantId },
    '/v1/approval-rules/{id}': { id: ruleId },
    '/v1/pending-logins/{id}': { id: loginId },
    '/v1/pending-logins/{id}/store': { id: loginId, body: { path: 'user/x' } },
    '/v1/sidecar/pending-logins/{id}': { id: loginId, body: { sealed: 'x' } },
    '/v1/audit-events/chains/{id}': { id: tenantSidecar.enrolled.sidecar_id },
    '/v1/audit-sinks/{id}': { id: sinkId },
    '/v1/audit-sinks/{id}/rotate': { id: sinkId },
    '/v1/audit-sinks/{id}/enable': { id: sinkId },
    '/v1/audit-sinks/{id}/dead-letters': { id: sinkId },
    '/v1/audit-sinks/{id}/replay': { id: sinkId },
    '/v1/sidecars/{id}': { id: tenantSidecar.enrolled.sidecar_id },
    '/v1/tokens/{id}': { id: tokenId },
    '/v1/identities/{id}': { id: identityId },
    '/v1/mcp-clients/{id}': { id: mcpClientId },
    '/v1/sessions/{id}': { id: sessionId },
    '/v1/enterprises/{id}/sign-in': { id: tenant.caller.enterpriseId },
    '/v1/enterprises/{id}/merge': { id: tenant.caller.enterpriseId, body: { confirm: PLANTED } },
    '/v1/invitations/{id}': { id: invitationId },
    '/v1/scim-tokens/{id}': { id: scimTokenId },
    '/v1/join-requests/{id}': { id: joinRequestId },
    '/v1/join-requests/{id}/accept': { id: joinRequestId, body: {} },
    '/v1/join-requests/{id}/decline': { id: joinRequestId },
    '/v1/groups/{id}': { id: groupId, body: { name: PLANTED } },
    '/v1/groups/{id}/members': { id: groupId },
    '/v1/groups/{id}/members/{user}': { id: groupId },
    '/v1/shares/{id}': { id: shareId },
    '/v1/shares/{id}/accept': { id: shareId, body: { revision: shares[0]?.binding?.revision } },
    '/v1/shares/{id}/decline': { id: shareId },
    '/v1/service-accounts/{id}': {
      id: serviceAccountId,
      body: { name: PLANTED, issuer: 'https://id.example.test', audience: 'x', claims: { sub: PLANTED } },
    },
    '/v1/service-accounts/{id}/secrets': {
      id: serviceAccountId,
      body: { path: `${PLANTED}/other`, value: 'value-of-a-test' },
    },
    '/v1/service-accounts/{id}/secrets/{path}': { id: serviceAccountId },
    '/v1/service-accounts/{id}/host-bindings': {
      id: serviceAccountId,
      body: { ...BINDING, host: 'others.example.test' },
    },
    '/v1/service-accounts/{id}/host-bindings/{binding}': { id: serviceAccountId },
    '/v1/members/{id}/departure': { id: tenant.caller.userId },
    '/v1/members/{id}': { id: tenant.caller.userId, body: { role: 'owner', suspended: false } },
    '/v1/sidecar/approvals/{id}': { id: `${approvalId}?wait=0&request_id=request-of-the-test` },
  };
  const document = await parseReply(openApi, control.send('/openapi.json'));
  routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security }]) => ({
      method: method.toUpperCase(),
      path,
      access: Object.keys(security[0] ?? {})[0] ?? 'anyone',
    })),
  );
});
afterAll(() => control.stop());

/** Registry entries are visible to all tenants. */
const isOfRegistry = (path: string) => path.startsWith('/v1/marketplace/');
const routesWithId = () =>
  routes.filter(({ path, access }) => path.includes('{') && isOfProgram(access) && !isOfRegistry(path));
/** Replies to browsers are pages, and have a test of their own; so have those to directories (worker/scim/scim.test.ts). */
const isOfProgram = (access: string) => !['anyone', 'browser', 'scim'].includes(access);

/** A call by another tenant's user or sidecar to a resource of the first tenant. */
function visit(route: (typeof routes)[number], user: HostedUser, sidecar: TestSidecar): Promise<Response> {
  const place = places[route.path];
  const path = route.path
    .replace(/\{\w+\}/, place?.id ?? '')
    .replace('{name}', 'TOKEN')
    .replace('{user}', tenant.caller.userId)
    .replace('{view}', viewId)
    .replace('{path}', `${PLANTED}/key`)
    .replace('{binding}', managedBindingId);
  const method = route.method === 'POST' ? 'POST' : 'GET';
  if (route.access === 'sidecar') return sidecar.call(method, path, method === 'POST' ? { body: place?.body } : {});
  const takesBody = route.method === 'POST' || route.method === 'PUT';
  return user.call(route.method, path, takesBody ? place?.body : undefined);
}

async function giveRole({ caller }: HostedUser, role: Role): Promise<void> {
  const args = [role, caller.userId];
  await control.context.database.client.execute({ sql: 'UPDATE users SET role = ? WHERE id = ?', args });
}

const REFUSED = /^(?:not_found|admin_required)$/;
/** What belongs to the enterprise, not to one person in it. */
const OF_ENTERPRISE =
  /^\/v1\/(?:approval-rules|audit-sinks|enterprises|groups|invitations|join-requests|members|scim-tokens|service-accounts)\//;
const READ_BY_MEMBERS = ['/v1/audit-events/chains/{id}', '/v1/groups/{id}', '/v1/groups/{id}/members'];
const READ_BY_ADMINS = [
  ...READ_BY_MEMBERS,
  '/v1/audit-sinks/{id}/dead-letters',
  '/v1/service-accounts/{id}',
  '/v1/service-accounts/{id}/host-bindings',
  '/v1/service-accounts/{id}/secrets',
];
/** Only an owner removes the first tenant, who is an owner, and sees what would go. */
const READ_BY_ROLE: Readonly<Record<Role, readonly string[]>> = {
  member: READ_BY_MEMBERS,
  admin: READ_BY_ADMINS,
  owner: [...READ_BY_ADMINS, '/v1/members/{id}/departure'],
};

async function codeOf(reply: Response): Promise<string> {
  const text = await reply.text();
  return reply.status < 400 ? String(reply.status) : errorBody.parse(JSON.parse(text)).error.code;
}

/** The refusal that any unknown id gets. */
async function refusal(answer: Promise<Response>) {
  const reply = await answer;
  const { code, message } = errorBody.parse(await reply.json()).error;
  return { status: reply.status, code, message: message.replaceAll(/[a-z]{3}_[0-9a-z]{26}/g, 'ID') };
}

describe('with the token of another tenant', () => {
  test('this test calls every route that names a resource: add an example for a new one', () => {
    expect(routesWithId().length).toBeGreaterThan(14);
    expect(routesWithId().filter(({ path }) => places[path] === undefined)).toEqual([]);
    expect(Object.entries(places).filter(([, { id }]) => id === '' || id.startsWith('undefined'))).toEqual([]);
  });

  test.each(ROLES)('each route answers the role %s as for an unknown id: "not found"', async (role) => {
    await giveRole(stranger, role);
    for (const route of routesWithId()) {
      const foreign = await refusal(visit(route, stranger, strangerSidecar));
      // Members have nothing to do with service accounts, not even with those of their own enterprise.
      const isAdmins = role === 'member' && route.path.startsWith('/v1/service-accounts/');
      const expected = isAdmins ? [403, 'admin_required'] : [404, 'not_found'];
      expect([route.method, route.path, foreign.status, foreign.code]).toEqual([route.method, route.path, ...expected]);
      const place = places[route.path];
      places[route.path] = { ...place, id: (place?.id ?? '').replace(/_[0-9a-z]{26}/, `_${NOTHING}`) };
      const absent = await refusal(visit(route, stranger, strangerSidecar));
      places[route.path] = place ?? { id: '' };
      expect([route.path, absent]).toEqual([route.path, foreign]);
    }
  });

  test('each route answers "not found" to another user of the same person too', async () => {
    await giveRole(stranger, 'owner');
    const { client } = control.context.database;
    const personOf = `(SELECT person_id FROM users WHERE id = '${tenant.caller.userId}')`;
    const { rows } = await client.execute(`SELECT person_id FROM users WHERE id = '${stranger.caller.userId}'`);
    await client.execute(`UPDATE users SET person_id = ${personOf} WHERE id = '${stranger.caller.userId}'`);
    // Identities and own requests are the person's, so both users have them, and the person may go on as the other user.
    const ofPerson = [
      '/v1/identities/{id}',
      '/v1/enterprises/{id}/sign-in',
      '/v1/enterprises/{id}/merge',
      '/v1/join-requests/{id}',
    ];
    const ofUsers = routesWithId().filter(({ path }) => !ofPerson.includes(path));
    for (const route of ofUsers) {
      const { status, code } = await refusal(visit(route, stranger, strangerSidecar));
      expect([route.method, route.path, status, code]).toEqual([route.method, route.path, 404, 'not_found']);
    }
    const own = {
      sql: 'UPDATE users SET person_id = ? WHERE id = ?',
      args: [rows[0]?.['person_id'] ?? '', stranger.caller.userId],
    };
    await client.execute(own);
  });

  test.each(ROLES)('no list and no other reply shows the role %s anything of the first tenant', async (role) => {
    await giveRole(stranger, role);
    const ids = Object.values(places).map(({ id }) => id.split('?')[0] ?? '');
    const readable = routes.filter(
      ({ method, path }) => method === 'GET' && !path.includes('{') && !path.endsWith('/stream'),
    );
    expect(readable.length).toBeGreaterThan(10);
    for (const { path, access } of readable) {
      const reply = await (access === 'sidecar' ? strangerSidecar.call('GET', path) : stranger.call('GET', path));
      const text = await reply.text();
      const decoded =
        text +
        text
          .split('.')
          .map((part) => Buffer.from(part, 'base64url').toString())
          .join('');
      expect([path, [PLANTED, tenant.caller.enterpriseId, ...ids].filter((word) => decoded.includes(word))]).toEqual([
        path,
        [],
      ]);
    }
  });

  test("pages for another tenant's resources look like pages for unknown ids", async () => {
    const cookie = await signInBrowser(control, stranger.caller);
    const ofBrowsers = routes.filter(({ path, access }) => access === 'browser' && path.includes('{id}'));
    expect(ofBrowsers.map(({ path }) => path)).toEqual(['/auth/connectors/{id}/authorize']);
    const open = async (id: string) => {
      const path = `/auth/connectors/${id}/authorize`;
      const reply = await control.send(path, { headers: { cookie }, redirect: 'manual' });
      return { status: reply.status, page: (await reply.text()).replaceAll(id, 'ID') };
    };
    const id = places['/v1/connectors/{id}']?.id ?? '';
    const foreign = await open(id);
    expect(foreign).toEqual(await open(`con_${NOTHING}`));
    expect([foreign.status, foreign.page.includes(PLANTED)]).toEqual([400, false]);
  });

  test('resources named in a body are looked up among the caller’s own', async () => {
    const run = { connector_fqn: ITEMS_SPEC.connector.fqn, operation: 'get-item', args: { id: '1' } };
    expect(await outcome(stranger.call('POST', '/v1/connector-operations/run', run))).toBe(
      'connector_operation_not_found',
    );
    const checked = await stranger.call('POST', '/v1/secrets/check', { values: ['value-of-a-test'] });
    expect(await checked.text()).not.toContain(PLANTED);
    const explained = await stranger.call('POST', '/v1/host-bindings/explain', {
      method: 'GET',
      url: 'https://api.example.test/items/1',
    });
    expect(await explained.json()).toMatchObject({ decision: 'passthrough' });
  });

  test('a binding of the same name uses the caller’s own secret, and a personal binding never uses an enterprise’s', async () => {
    for (const user of [stranger, tenant]) {
      const body = { ...BINDING, host: 'other.example.test', owner: 'personal' };
      expect(await outcome(user.call('POST', '/v1/host-bindings', body))).toBe(201);
    }
    for (const sidecar of [strangerSidecar, tenantSidecar]) {
      const credentials = [{ owner: 'personal', path: `${PLANTED}/key` }];
      const body = { request_id: 'request-of-the-test', credentials };
      const jws = await (await sidecar.call('POST', '/v1/sidecar/credentials', { body })).text();
      const payload: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
      expect(payload).toMatchObject({ credentials: [], missing: credentials });
    }
    const enterprise = [{ owner: 'enterprise', path: `${PLANTED}/key` }];
    const foreign = { request_id: 'request-of-the-test', credentials: enterprise };
    const jws = await (await strangerSidecar.call('POST', '/v1/sidecar/credentials', { body: foreign })).text();
    expect(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()).toContain('"credentials":[]');
  });
});

describe('a colleague of the first tenant', () => {
  let colleague: HostedUser;
  let sidecar: TestSidecar;
  beforeAll(async () => {
    colleague = await hostedUser(control, tenant.caller.enterpriseId);
    sidecar = await sidecarOf(colleague);
  });

  test.each(ROLES)('reads with the role %s only what is the enterprise’s', async (role) => {
    await giveRole(colleague, role);
    for (const route of routesWithId().filter(({ method }) => method === 'GET')) {
      const code = await codeOf(await visit(route, colleague, sidecar));
      const expected = READ_BY_ROLE[role].includes(route.path) ? /^200$/ : REFUSED;
      expect([route.path, code]).toEqual([route.path, expect.stringMatching(expected)]);
    }
  });

  test('changes nothing as a member', async () => {
    await giveRole(colleague, 'member');
    for (const route of routesWithId().filter(({ method }) => method !== 'GET')) {
      const reply = await visit(route, colleague, sidecar);
      expect([route.method, route.path, await codeOf(reply)]).toEqual([
        route.method,
        route.path,
        expect.stringMatching(REFUSED),
      ]);
    }
  });

  test.each(ROLES)('finds with the role %s nothing in a list that is the first tenant’s own', async (role) => {
    await giveRole(colleague, role);
    const own = Object.entries(places).filter(([path]) => !OF_ENTERPRISE.test(path));
    const ids = own.map(([, { id }]) => id.split('?')[0] ?? '');
    expect(ids.length).toBeGreaterThan(20);
    // Admins read the whole audit log, which names what everybody did.
    const lists = routes.filter(
      ({ method, path, access }) =>
        method === 'GET' && access === 'user' && !path.includes('{') && !path.startsWith('/v1/audit-events'),
    );
    for (const { path } of lists) {
      const text = await (await colleague.call('GET', path)).text();
      expect([path, ids.filter((id) => text.includes(id))]).toEqual([path, []]);
    }
  });
});

test('the first tenant finds each of its resources at the same path', async () => {
  const order = ['GET', 'PUT', 'POST', 'DELETE'];
  const deepFirst = routesWithId().toSorted(
    (a, b) => order.indexOf(a.method) - order.indexOf(b.method) || b.path.length - a.path.length,
  );
  for (const route of deepFirst) {
    // Its own sidecar did not request this approval: it is for a run of the user's.
    if (route.access === 'sidecar') continue;
    const reply = await visit(route, tenant, tenantSidecar);
    expect([route.method, route.path, reply.status]).not.toEqual([route.method, route.path, 404]);
  }
});
