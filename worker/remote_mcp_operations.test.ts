import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  decideInBrowser,
  pkce,
  registered,
  type RemoteUser,
  remoteUser,
  type RemoteWorld,
  startRemoteWorld,
} from '../e2e/mcp/remote_world.ts';
import { PUBLIC_URL } from '../e2e/runtimes/hosted_users.ts';
import { ITEMS_SPEC, itemsSpec, UPSTREAM_HOST } from '../e2e/runtimes/connector_samples.ts';
import { parseReply } from '../e2e/runtimes/in_process.ts';
import { approvalsPage } from '../shared/wire/approvals.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import { mcpTokens } from '../shared/wire/mcp/mcp_clients.ts';

// The operations of connectors as tools of the MCP endpoint of a hosted control plane.

const KEY = `planted-${randomBytes(20).toString('hex')}`;
const REDIRECT = 'https://client.example.com/callback';
const GET_ITEM = 'svc_run__acme_items__get-item';
const DELETE_ITEM = 'svc_run__acme_items__delete-item';

let world: RemoteWorld;
let user: RemoteUser;
beforeEach(async () => {
  world = await startRemoteWorld();
  user = await remoteUser(world.control);
  world.hosts.set(UPSTREAM_HOST, (request) => {
    const { pathname } = new URL(request.url);
    return Response.json({ path: pathname, said: request.headers.get('authorization') });
  });
});
afterEach(() => world.stop());

async function install(who = user, owner = 'personal', spec: object = ITEMS_SPEC, key = KEY): Promise<string> {
  const { id } = await parseReply(installReply, who.call('POST', `/v1/connectors?owner=${owner}`, spec));
  const stored = await who.call('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: key });
  expect(stored.status).toBeLessThan(300);
  return id;
}

/** The access token of a client that this person has connected. */
async function connect(who = user, name = 'Phone'): Promise<string> {
  const form = (path: string, body: string | URLSearchParams) =>
    world.control.send(PUBLIC_URL + path, { method: 'POST', body });
  const client = JSON.stringify({ client_name: name, redirect_uris: [REDIRECT] });
  const { client_id: clientId } = await parseReply(registered, form('/oauth/register', client));
  const { verifier, challenge } = await pkce();
  const asked = { client_id: clientId, redirect_uri: REDIRECT };
  const url = new URL(`${PUBLIC_URL}/oauth/authorize`);
  const code = { response_type: 'code', code_challenge: challenge, code_challenge_method: 'S256', scope: 'mcp admin' };
  url.search = new URLSearchParams({ ...asked, ...code }).toString();
  const back = await decideInBrowser(world.control, who.cookie, url.href);
  const given = new URL(back.headers.get('location') ?? 'none:').searchParams.get('code') ?? '';
  const exchange = { ...asked, grant_type: 'authorization_code', code: given, code_verifier: verifier };
  const tokens = await parseReply(mcpTokens, form('/oauth/token', new URLSearchParams(exchange)));
  return tokens.access_token;
}

async function send(token: string, method: string, params: object): Promise<string> {
  const reply = await world.control.send(`${PUBLIC_URL}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return reply.text();
}
const list = (token: string) => send(token, 'tools/list', {});
const call = (token: string, name: string, args: object = {}) => send(token, 'tools/call', { name, arguments: args });
const approvals = async (who = user) => (await parseReply(approvalsPage, who.call('GET', '/v1/approvals'))).items;
const decide = (id: string | undefined, decision: string, who = user) =>
  who.call('POST', `/v1/approvals/${id}/decide`, { decision });
const events = async (type: string, who = user) =>
  (await parseReply(auditEventsPage, who.call('GET', `/v1/audit-events?type=${type}`))).items;
const sentUpstream = () => world.calls.filter(({ url }) => url.includes(UPSTREAM_HOST)).map(({ method }) => method);

describe('the operations of connectors', () => {
  test('are tools with the schema and the effect of the operation', async () => {
    await install();
    const listed = await list(await connect());
    expect(listed).toContain(`"name":"${GET_ITEM}"`);
    expect(listed).toContain('"required":["id"],"additionalProperties":false');
    expect(listed).toContain('Each call needs the approval of a person.');
    expect(listed).toContain('"readOnlyHint":true');
    expect(listed).not.toContain(KEY);
  });

  test('are run with the credential, which no reply and no event shows', async () => {
    await install();
    const result = await call(await connect(), GET_ITEM, { id: 'a1' });
    expect(result).toContain('/items/a1');
    expect(world.calls.at(-1)?.headers['authorization']).toBe(`Bearer ${KEY}`);
    const [event] = await events('connector.proxy.proxied');
    expect(event?.data).toMatchObject({
      'svc.connector.operation': 'get-item',
      'svc.connector.tool': GET_ITEM,
      'svc.mcp.client': expect.stringMatching(/^svc_client_/),
    });
    expect(result + JSON.stringify(event)).not.toContain(KEY);
  });

  test('name what is wrong with the arguments, as at a gateway', async () => {
    await install();
    const token = await connect();
    expect(await call(token, GET_ITEM, {})).toContain('invalid_args: these arguments are invalid');
    expect(await call(token, GET_ITEM, { id: '../secrets' })).toContain('invalid_args');
    expect(await call(token, 'svc_run__acme_items__gone')).toContain('Unknown tool');
    expect(sentUpstream()).toEqual([]);
  });

  test('of the enterprise are for its people, and for no other tenant', async () => {
    await install(user, 'enterprise');
    const colleague = await remoteUser(world.control, user.caller.enterpriseId);
    const stranger = await remoteUser(world.control);
    expect(await call(await connect(colleague), GET_ITEM, { id: 'b2' })).toContain('/items/b2');
    const foreign = await connect(stranger);
    expect(await list(foreign)).not.toContain('svc_run__');
    expect(await call(foreign, GET_ITEM, { id: 'b2' })).toContain('Unknown tool');
    expect(sentUpstream()).toEqual(['GET']);
  });

  test('are those of the connector that a run would choose: the own one before that of the enterprise', async () => {
    await install(user, 'enterprise');
    await install(user, 'personal', itemsSpec('2.0.0', { operations: ITEMS_SPEC.operations.slice(0, 1) }));
    const listed = await list(await connect());
    expect(listed.split(GET_ITEM).length).toBe(2);
    expect(listed).not.toContain(DELETE_ITEM);
  });

  test('are not for a client whose person was asked about servers only', async () => {
    await install();
    const token = await connect();
    await world.control.context.database.client.execute('UPDATE mcp_connections SET has_operations = 0');
    expect(await list(token)).not.toContain('svc_run__');
    expect(await call(token, GET_ITEM, { id: 'a1' })).toContain('Unknown tool');
    expect(sentUpstream()).toEqual([]);
  });
});

describe('an operation that needs an approval', () => {
  test('is sent once for each approval, with the same arguments', async () => {
    await install();
    const token = await connect();
    expect(await call(token, DELETE_ITEM, { id: 'a1' })).toMatch(/approval_required.*svc approvals approve apr_/s);
    const [asked] = await approvals();
    expect(asked?.summary).toMatch(/^MCP client "Phone", as it calls itself: Items: Delete an item/);
    await decide(asked?.id, 'approve');
    expect(await call(token, DELETE_ITEM, { id: 'a2' })).toContain('approval_required');
    expect(await call(token, DELETE_ITEM, { id: 'a1' })).toContain('/items/a1');
    expect(await call(token, DELETE_ITEM, { id: 'a1' })).toContain('approval_required');
    expect(sentUpstream()).toEqual(['DELETE']);
  });

  test('is sent once if it is called twice at the same time', async () => {
    await install();
    const token = await connect();
    await call(token, DELETE_ITEM, { id: 'a1' });
    await decide((await approvals())[0]?.id, 'approve');
    await Promise.all([1, 2, 3].map(() => call(token, DELETE_ITEM, { id: 'a1' })));
    expect(sentUpstream()).toEqual(['DELETE']);
  });

  test('is approved for one client, and for no other nor for its person', async () => {
    await install();
    const first = await connect();
    const second = await connect(user, 'Other');
    await call(first, DELETE_ITEM, { id: 'a1' });
    await decide((await approvals())[0]?.id, 'approve');
    expect(await call(second, DELETE_ITEM, { id: 'a1' })).toContain('approval_required');
    const own = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: 'a1' } };
    expect(await (await user.call('POST', '/v1/connector-operations/run', own)).text()).toContain('approval_required');
    expect(sentUpstream()).toEqual([]);
    expect(await call(first, DELETE_ITEM, { id: 'a1' })).toContain('/items/a1');
  });

  test('is refused once a person has denied it', async () => {
    await install();
    const token = await connect();
    await call(token, DELETE_ITEM, { id: 'a1' });
    await decide((await approvals())[0]?.id, 'deny');
    expect(await call(token, DELETE_ITEM, { id: 'a1' })).toContain('approval_denied');
    expect(sentUpstream()).toEqual([]);
  });

  test('can fill a part of the list of its person only', async () => {
    await install();
    const token = await connect();
    for (let at = 0; at < 20; at += 1) await call(token, DELETE_ITEM, { id: `a${at}` });
    expect(await call(token, DELETE_ITEM, { id: 'one-more' })).toContain('too_many_approvals');
    expect(await call(await connect(), DELETE_ITEM, { id: 'one-more' })).toContain('approval_required');
  });
});
