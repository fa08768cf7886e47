import { afterAll, beforeAll, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import {
  type HostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import {
  connectorRecord,
  connectorsPage,
  type InstallReply,
  installReply,
} from '../../../shared/wire/connectors/connectors.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let id = '';

beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  ({ id } = installReply.parse(await (await owner.call('POST', '/v1/connectors', ITEMS_SPEC)).json()));
});
afterAll(() => control.stop());

async function open(user: HostedUser, path: string): Promise<Response> {
  return control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
}

async function addRule(fields: Readonly<Record<string, string>>): Promise<string> {
  const headers = { cookie: await signInBrowser(control, owner.caller), origin: PUBLIC_URL };
  const typed = { spec: JSON.stringify(ITEMS_SPEC), from: id, step: 'rule', rule_operation: 'create-item', ...fields };
  const reply = await control.inBrowser('/connectors', { method: 'POST', headers, body: new URLSearchParams(typed) });
  return reply.text();
}

test('the installed spec can be changed, and only by who sees the connector', async () => {
  const shown = await (await open(owner, `/connectors/install?from=${id}`)).text();
  expect(shown).toContain('Change the spec');
  expect(shown).toContain('&quot;acme/items&quot;');
  expect(shown).toContain('What it would have matched');
  expect((await open(member, `/connectors/install?from=${id}`)).status).toBe(404);
});

async function submit(user: HostedUser, fields: Readonly<Record<string, string>>): Promise<Response> {
  const headers = { cookie: await signInBrowser(control, user.caller), origin: PUBLIC_URL };
  return control.inBrowser('/connectors', { method: 'POST', headers, body: new URLSearchParams(fields) });
}

function specText(version: string, change: { readonly title?: string; readonly fqn?: string } = {}): string {
  return JSON.stringify({ ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, version, ...change } });
}

async function installShared(fqn: string): Promise<InstallReply> {
  const spec = { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, fqn } };
  return parseReply(installReply, owner.call('POST', '/v1/connectors?owner=enterprise', spec));
}

const stored = (connector: string) => parseReply(connectorRecord, owner.call('GET', `/v1/connectors/${connector}`));

test('the connector of an enterprise is changed by an admin, in its place, and by no member', async () => {
  const shared = await installShared('acme/shared');
  const page = await (await open(owner, `/connectors/install?from=${shared.id}`)).text();
  expect(page).not.toContain('name="owner"');
  const fields = { from: shared.id, read: shared.content_hash, spec: specText('2.0.0', { fqn: 'acme/shared' }) };
  expect((await open(member, `/connectors/install?from=${shared.id}`)).status).toBe(403);
  expect((await submit(member, { ...fields, owner: 'personal' })).status).toBe(403);
  const mine = await parseReply(connectorsPage, member.call('GET', '/v1/connectors'));
  expect(mine.items.map(({ id: each, owner: by }) => [each, by])).toEqual([[shared.id, 'enterprise']]);
  expect((await submit(owner, { ...fields, owner: 'personal' })).status).toBe(303);
  expect(await stored(shared.id)).toMatchObject({ owner: 'enterprise', version: '2.0.0' });
});

test('a change of one connector does not install another one', async () => {
  const { id: shared, content_hash: read } = await installShared('acme/renamed');
  const reply = await submit(owner, { from: shared, read, spec: specText('2.0.0', { fqn: 'acme/elsewhere' }) });
  expect(reply.status).toBe(400);
  expect(await reply.text()).toContain('names acme/elsewhere, but this form changes acme/renamed');
});

const textOf = (version: string, title: string) => specText(version, { fqn: 'acme/contended', title });

test('a change that somebody makes meanwhile is not undone, and both are shown', async () => {
  const { id: shared, content_hash: read } = await installShared('acme/contended');
  const first = { from: shared, read, spec: textOf('2.0.0', 'First') };
  expect((await submit(owner, first)).status).toBe(303);
  expect((await submit(owner, first)).status).toBe(303);
  const second = await submit(owner, { from: shared, read, spec: textOf('2.0.1', 'Second') });
  expect(second.status).toBe(409);
  const page = await second.text();
  expect(page).toContain('the connector was changed meanwhile');
  for (const title of ['First', 'Second'])
    expect(page).toContain(`&quot;title&quot;:${title === 'First' ? ' ' : ''}&quot;${title}`);
  const { title, content_hash: hash } = await stored(shared);
  expect(title).toBe('First');
  expect(page).toContain(`name="read" value="${hash}"`);
  expect((await submit(owner, { from: shared, read: hash, spec: textOf('2.0.1', 'Second') })).status).toBe(303);
  expect((await stored(shared)).title).toBe('Second');
});

test('the text of a change stays if the connector is removed meanwhile', async () => {
  const { id: shared, content_hash: read } = await installShared('acme/removed');
  expect((await owner.call('DELETE', `/v1/connectors/${shared}`)).status).toBe(204);
  const reply = await submit(owner, { from: shared, read, spec: specText('2.0.0', { fqn: 'acme/removed' }) });
  expect(reply.status).toBe(404);
  const page = await reply.text();
  expect(page).toContain('was removed meanwhile');
  expect(page).toContain('acme/removed');
  expect(page).toContain('name="owner"');
});

test('a rule is written into the spec, and its operation is tried on the last requests', async () => {
  const page = await addRule({ rule_pointer: '/amount', rule_at_most: '100' });
  expect(page).toMatch(/&quot;pointer&quot;: &quot;\/amount&quot;,\s+&quot;at_most&quot;: 100/);
  expect(page).toContain('What it would have matched');
  expect(page).toContain(`href="/connectors/${id}"`);
});

test('a rule that is wrong changes nothing, and says what is wrong', async () => {
  const page = await addRule({ rule_operation: 'gone', rule_pointer: '/amount', rule_at_most: '100' });
  expect(page).toContain('no operation of the spec');
  expect(page).not.toContain('&quot;at_most&quot;');
});
