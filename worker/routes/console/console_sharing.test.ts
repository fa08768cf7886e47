import { afterEach, beforeEach, expect, test } from 'vitest';
import { hostedUser, type HostedUser, ownerWithMember, signInBrowser } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, NO_OUTBOUND, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../e2e/sign_in/test_browser.ts';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import { installReply } from '../../../shared/wire/connectors/connectors.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { mcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let pages: Record<'owner' | 'member', TestBrowser>;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  ({ owner, member } = await ownerWithMember(control));
  await control.context.database.client.execute(
    `UPDATE users SET email = 'pat@acme.test', display_name = 'Pat' WHERE id = '${member.caller.userId}'`,
  );
  pages = { owner: await browserOf(owner), member: await browserOf(member) };
});
afterEach(() => control.stop());

async function browserOf({ caller }: HostedUser): Promise<TestBrowser> {
  const browser = new TestBrowser(control.send, FRONT);
  const [name = '', value = ''] = (await signInBrowser(control, caller)).split('=');
  browser.cookies.set(name, value);
  return browser;
}

const text = async (reply: Promise<Response>) => (await reply).text();
const location = async (reply: Promise<Response>) => (await reply).headers.get('location');
const actionOf = (page: string, end: string) => new RegExp(`action="([^"]+/${end})"`).exec(page)?.[1] ?? `no ${end}`;

async function bind(user: HostedUser): Promise<string> {
  const binding = { host: 'api.test', scheme: 'bearer', credential_ref: 'vault://user/key', effect: 'read' };
  return (await parseReply(hostBindingRecord, user.call('POST', '/v1/host-bindings', binding))).id;
}

test('an admin creates a group, puts people in and out, renames and deletes it', async () => {
  const made = (await location(pages.owner.submit('/groups', { name: 'Data team' }))) ?? '';
  const path = made.split('?')[0] ?? '';
  expect(made).toBe(`${path}?done=group_created`);
  expect(await text(pages.owner.get(path))).toContain('Pat (pat@acme.test)');
  await pages.owner.submit(`${path}/members`, { user: member.caller.userId });
  const inside = await text(pages.owner.get(path));
  expect(inside).not.toContain('Pat (pat@acme.test)');
  expect(await text(pages.member.get('/groups'))).toContain('Data team');
  const seen = await text(pages.member.get(path));
  expect([seen.includes('Pat'), seen.includes('<form class="panel')]).toEqual([true, false]);
  expect((await pages.member.submit(`${path}/members`, { user: owner.caller.userId })).status).toBe(403);
  expect((await pages.member.submit('/groups', { name: 'Mine' })).status).toBe(403);
  expect(await location(pages.owner.submit(actionOf(inside, 'remove'), {}))).toBe(`${path}?done=group_member_removed`);
  expect((await pages.owner.submit('/groups', { name: 'data team' })).status).toBe(409);
  expect((await pages.owner.submit(`${path}/rename`, { name: ' ' })).status).toBe(400);
  const revision = /name="revision" value="(\w+)"/.exec(inside)?.[1] ?? 'none';
  const rename = (name: string) => pages.owner.submit(`${path}/rename`, { name, revision });
  expect(await location(rename('Data'))).toBe(`${path}?done=group_renamed`);
  const stale = await rename('Older');
  expect([stale.status, await stale.text()]).toEqual([
    409,
    expect.stringMatching(/Somebody changed this group meanwhile[^]*value="Data"/),
  ]);
  expect((await pages.owner.submit(`${path}/delete`, { confirm: 'Dat' })).status).toBe(400);
  expect(await text(pages.owner.get(`${path}/delete`))).toContain('Type Data to confirm');
  expect(await location(pages.owner.submit(`${path}/delete`, { confirm: 'Data' }))).toBe('/groups?done=group_deleted');
  expect((await pages.owner.get(path)).status).toBe(404);
  const stranger = await browserOf(await hostedUser(control));
  expect((await stranger.get(path)).status).toBe(404);
});

test('a colleague shares, the receiver accepts and declines, and the share ends', async () => {
  expect(await text(pages.member.get('/shares'))).toContain('create one of your own first');
  const id = await bind(member);
  await control.context.database.client.execute(
    `UPDATE users SET email = 'boss@acme.test' WHERE id = '${owner.caller.userId}'`,
  );
  expect((await pages.member.submit('/shares', { binding_id: id, group_id: '', email: '' })).status).toBe(400);
  expect((await pages.member.submit('/shares', { binding_id: id, email: 'x@acme.test' })).status).toBe(400);
  const form = { binding_id: id, group_id: '', email: 'boss@acme.test' };
  const told = 'each of your colleagues accepts it again';
  const edit = async () => (await text(pages.member.get(`/bindings/${id}/edit`))).replaceAll(/\s+/g, ' ');
  expect(await edit()).not.toContain(told);
  expect(await location(pages.member.submit('/shares', form))).toBe('/shares?done=shared');
  expect(await edit()).toContain(told);
  const offered = await text(pages.owner.get('/shares'));
  expect(offered).toContain('To accept');
  const [, revision = ''] = /name="revision" value="([^"]+)"/.exec(offered) ?? [];
  const accept = actionOf(offered, 'accept');
  expect((await pages.owner.submit(accept, { revision: 'x' })).status).toBe(400);
  expect((await pages.owner.submit(accept, { revision: '2020-01-01T00:00:00.000Z' })).status).toBe(409);
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  expect((await pages.owner.submit(accept, { revision }, foreign)).status).toBe(403);
  expect(await location(pages.owner.submit(accept, { revision }))).toBe('/shares?done=share_accepted');
  const used = await text(pages.owner.get('/shares'));
  expect(used).toContain('In use');
  expect(await location(pages.owner.submit(actionOf(used, 'decline'), {}))).toBe('/shares?done=share_declined');
  const given = await text(pages.member.get('/shares'));
  expect(await location(pages.member.submit(actionOf(given, 'end'), {}))).toBe('/shares?done=share_ended');
  expect(await text(pages.owner.get('/shares'))).toContain('Nothing is shared with you');
});

test('a connector and an MCP server are shared in the same form, one at a time', async () => {
  const { id: connectorId } = await parseReply(installReply, owner.call('POST', '/v1/connectors', ITEMS_SPEC));
  await owner.call('PUT', `/v1/connectors/${connectorId}/credential`, { kind: 'api_key', value: 'value-of-a-test' });
  const hub = { name: 'hub', mode: 'remote', url: 'https://mcp.example.test/mcp' };
  const { id: serverId } = await parseReply(mcpServerRecord, owner.call('POST', '/v1/mcp-servers', hub));
  const program = { name: 'files', command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
  await owner.call('POST', '/v1/mcp-servers', program);
  const form = await text(pages.owner.get('/shares'));
  expect(form).toContain('acme/items');
  expect([form.includes('>hub<'), form.includes('>files<')]).toEqual([true, false]);
  const both = { connector_id: connectorId, mcp_server_id: serverId, email: 'pat@acme.test' };
  expect((await pages.owner.submit('/shares', both)).status).toBe(400);
  for (const what of [{ connector_id: connectorId }, { mcp_server_id: serverId }]) {
    const fields = { binding_id: '', connector_id: '', mcp_server_id: '', ...what, email: 'pat@acme.test' };
    expect(await location(pages.owner.submit('/shares', fields))).toBe('/shares?done=shared');
  }
  const seen = await text(pages.member.get('/shares'));
  expect(seen).toContain('3 operations of api.example.test');
  expect(seen).toContain('https://mcp.example.test/mcp');
});
