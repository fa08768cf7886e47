import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HostedUser, ownerWithMember, signInBrowser, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;

const VALUE = `planted-${crypto.randomUUID()}`;

beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  await owner.call('POST', '/v1/secrets', { path: 'user/zebra-own', value: VALUE });
  await owner.call('POST', '/v1/secrets', { path: 'team/zebra-shared', value: 'value-of-team', owner: 'enterprise' });
  const binding = { host: 'zebra.example.test', scheme: 'bearer', credential_ref: 'vault://user/zebra-own' };
  await owner.call('POST', '/v1/host-bindings', binding);
  await owner.call('POST', '/v1/mcp-servers', { name: 'zebra-files', command: ['files-server'] });
});
afterAll(() => control.stop());

async function find(user: HostedUser, text: string): Promise<string> {
  const path = `/find?q=${encodeURIComponent(text)}`;
  const reply = await control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
  expect(reply.status).toBe(200);
  return (await reply.text()).replace(/^[^]*id="palette-found"/, '');
}

test('finds a secret, a binding and a server by a part of the name, with links', async () => {
  const found = await find(owner, 'ZEBRA');
  expect(found).toContain('4 results');
  expect(found).toMatch(/href="\/bindings\/bnd_[^"]+"[^]*zebra\.example\.test/);
  expect(found).toMatch(/href="\/mcp-servers\/mcp_/);
  expect(found).toContain('href="/secrets?q=user%2Fzebra-own"');
});

test('leads from a pasted id to its page, and from an unknown one nowhere', async () => {
  const page = auditEventsPage.parse(await (await owner.call('GET', '/v1/audit-events?limit=1')).json());
  const id = page.items[0]?.id ?? '';
  expect(await find(owner, ` ${id} `)).toContain(`href="/audit/${id}"`);
  for (const unknown of ['evt_00000000000000000000000000', 'ses_unknown', 'apr_00000000000000000000000000']) {
    expect(await find(owner, unknown)).not.toMatch(/href="\/audit\/(?:evt|ses)/);
  }
});

test('finds nothing of a colleague, and what the enterprise has', async () => {
  const found = await find(member, 'zebra');
  expect(found).toContain('1 result');
  expect(found).toContain('vault://team/zebra-shared');
});

test('finds no secret by its value', async () => {
  expect(await find(owner, VALUE)).toContain('Nothing of yours has this name');
});

test('offers a page only to those who may open it', async () => {
  expect(await find(owner, 'members')).toContain('href="/members"');
  expect(await find(member, 'members')).not.toContain('href="/members"');
});

test('offers to explain a pasted URL, without its query and user information', async () => {
  const found = await find(owner, `https://name:${VALUE}@zebra.example.test/a?token=${VALUE}`);
  expect(found).toContain('href="/bindings?method=GET&amp;url=https%3A%2F%2Fzebra.example.test%2Fa"');
  expect(found).not.toContain(VALUE);
});
