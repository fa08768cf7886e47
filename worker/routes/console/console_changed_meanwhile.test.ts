import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { mcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { membersPage } from '../../../shared/wire/members.ts';
import { createApp } from '../../app.ts';
import { fileAssets } from '../../entries/file_assets.ts';
import type { Database } from '../../store/database.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  ({ owner, member } = await ownerWithMember(control));
});
afterAll(() => control.stop());

/** The owner sends a form; somebody else's change is stored after the form's handler has read, and before it writes. */
async function submit(path: string, fields: Record<string, string>, meanwhile: () => Promise<Response>) {
  const { context, consoleOrigin } = control;
  let theirs: number | null = null;
  const write: Database['write'] = async (statements) => {
    if (theirs === null) {
      theirs = 0;
      theirs = (await meanwhile()).status;
    }
    return context.database.write(statements);
  };
  const disturbed = { ...context, database: { ...context.database, write } };
  const app = createApp({ context: () => disturbed, assets: fileAssets(), log: () => undefined });
  const headers = { cookie: await signInBrowser(control, owner.caller), origin: PUBLIC_URL };
  const body = new URLSearchParams(fields);
  const reply = await app.fetch(new Request(consoleOrigin + path, { method: 'POST', headers, body }));
  expect(theirs).toBe(200);
  return reply;
}

const FILES = { name: 'files', command: ['npx', '-y', '@acme/files@1.2.3'] };

test('an MCP server is not disabled over a change of its tools', async () => {
  const { id } = await parseReply(mcpServerRecord, owner.call('POST', '/v1/mcp-servers', FILES));
  const path = `/v1/mcp-servers/${id}`;
  const tools = { deny: ['drop_*'] };
  const reply = await submit(`/mcp-servers/${id}/enabled`, { enabled: 'false' }, () =>
    owner.call('PUT', path, { ...FILES, tools }),
  );
  expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('changed after you read it')]);
  const after = await parseReply(mcpServerRecord, owner.call('GET', path));
  expect(after).toMatchObject({ enabled: true, tools, revision: 2 });
});

const revised = z.looseObject({ revision: z.string() });

async function memberNow() {
  const { items } = await parseReply(membersPage, owner.call('GET', '/v1/members'));
  return items.find(({ id }) => id === member.caller.userId)!;
}

test.each([
  ['a new role does not lift a suspension', 'role', { suspended: true }, 409, ['member', true]],
  ['a suspension does not give a role back', 'suspend', { role: 'member' }, 303, ['member', true]],
  ['an end of a suspension does not give a role back', 'resume', { role: 'member' }, 409, ['member', true]],
] as const)('%s', async (_name, form, theirs, status, expected) => {
  const { userId } = member.caller;
  const path = `/v1/members/${userId}`;
  const before = { role: form === 'role' ? 'member' : 'admin', suspended: form === 'resume' };
  expect((await owner.call('PUT', path, before)).status).toBe(200);
  const { revision = '' } = await memberNow();
  const fields = { role: 'admin', confirm: userId, revision };
  const reply = await submit(`/members/${userId}/${form}`, fields, () =>
    owner.call('PUT', path, { ...before, ...theirs }),
  );
  expect(reply.status).toBe(status);
  const told = (await reply.text()).includes('Somebody changed this member meanwhile');
  expect(told).toBe(status === 409);
  const after = await memberNow();
  expect([after.role, after.suspended_at !== null]).toEqual(expected);
});

test('the settings of an enterprise are not saved over a change of another admin', async () => {
  const { revision } = await parseReply(revised, owner.call('GET', '/v1/enterprise'));
  const theirs = { name: 'Theirs', billing_email: null, allowed_domains: [], allowed_providers: null };
  const put = () => owner.call('PUT', '/v1/enterprise', { ...theirs, sso_required: false, oidc: null });
  const typed = { billing_email: 'mine@a.test', domain_joining: 'closed' };
  const fields = { name: 'Mine', providers: 'every', ...typed, revision };
  const reply = await submit('/enterprise', fields, put);
  const page = await reply.text();
  expect([reply.status, page]).toEqual([
    409,
    expect.stringMatching(/Somebody changed the settings meanwhile[^]*value="Theirs"/),
  ]);
  const table = page
    .slice(page.indexOf('What differs'))
    .replace(/<[^>]+>|\s+/g, ' ')
    .replace(/ +/g, ' ');
  expect(table).toContain(' Name Theirs Mine ');
  expect(table).toContain(' Billing email nothing mine@a.test ');
  expect(table).toContain(' Joining by a proven domain automatic closed ');
  expect(await parseReply(revised, owner.call('GET', '/v1/enterprise'))).toMatchObject({ name: 'Theirs' });
});

test.each([
  ['/groups/{id}/rename', { name: '' }],
  ['/members/{id}/role', { role: 'emperor' }],
])('the refused form of %s is shown with the revision that it was read with', async (path, input) => {
  const group = await parseReply(z.looseObject({ id: z.string() }), owner.call('POST', '/v1/groups', { name: 'Data' }));
  const id = path.startsWith('/groups') ? group.id : member.caller.userId;
  const headers = { cookie: await signInBrowser(control, owner.caller), origin: PUBLIC_URL };
  const revision = 'a'.repeat(64);
  const body = new URLSearchParams({ ...input, revision });
  const reply = await control.send(control.consoleOrigin + path.replace('{id}', id), { method: 'POST', headers, body });
  expect(await reply.text()).toContain(`name="revision" value="${revision}"`);
});

test.each(['/enterprise', '/members/{id}/role', '/members/{id}/resume'])(
  'a form of %s without a revision changes nothing',
  async (path) => {
    const headers = { cookie: await signInBrowser(control, owner.caller), origin: PUBLIC_URL };
    const body = new URLSearchParams({ name: 'Mine', providers: 'every', domain_joining: 'closed', role: 'admin' });
    const url = `${control.consoleOrigin}${path.replace('{id}', member.caller.userId)}`;
    expect((await control.send(url, { method: 'POST', headers, body })).status).toBe(409);
    expect((await memberNow()).role).toBe('member');
  },
);
