import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type HostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
});
afterAll(() => control.stop());

async function open(user: HostedUser, path: string): Promise<string> {
  const reply = await control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
  return reply.text();
}

async function send(user: HostedUser, path: string, fields: Record<string, string>, origin = PUBLIC_URL) {
  const headers = { cookie: await signInBrowser(control, user.caller), origin };
  const init = { method: 'POST', headers, body: new URLSearchParams(fields), redirect: 'manual' as const };
  const reply = await control.inBrowser(path, init);
  return { status: reply.status, location: reply.headers.get('location') ?? '', page: await reply.text() };
}

const FILTERS = { host: 'api.github.com', method: 'DELETE', since: '2026-01-01T00:00:00' };
const KEPT = '/audit?host=api.github.com&amp;method=DELETE';

test('keeps what is asked by name, without the times, and shows it on the page of the log', async () => {
  expect(await open(owner, '/audit')).not.toContain('Saved views');
  expect(await open(owner, '/audit?host=github')).toContain('Save these filters');
  const saved = await send(owner, '/audit/views', { ...FILTERS, name: ' deletions ' });
  expect([saved.status, saved.location]).toEqual([303, '/audit?host=api.github.com&method=DELETE&done=view_saved']);
  const page = await open(owner, '/audit');
  expect(page).toMatch(new RegExp(`href="${KEPT.replace('?', String.raw`\?`)}"[^]*?deletions`));
});

test('a view is only for the person who saved it', async () => {
  expect(await open(member, '/audit')).not.toContain('deletions');
  await send(member, '/audit/views/forget', { name: 'deletions' });
  expect(await open(owner, '/audit')).toContain('deletions');
});

test('one of the same name is replaced, and one that is shown can be forgotten', async () => {
  await send(owner, '/audit/views', { ...FILTERS, host: 'example.test', name: 'deletions' });
  expect(await open(owner, '/audit')).not.toContain(KEPT);
  expect(await open(owner, '/audit?host=example.test&method=DELETE')).toContain('Forget the view');
  expect((await send(owner, '/audit/views/forget', { name: 'deletions' })).location).toBe('/audit?done=view_forgotten');
  expect(await open(owner, '/audit')).not.toContain('Saved views');
});

test.each([
  ['', 'is empty'],
  ['x'.repeat(61), 'is longer than 60'],
  ['a\u202Eb', 'has invisible characters'],
])('refuses the name %j', async (name, why) => {
  const refused = await send(owner, '/audit/views', { ...FILTERS, name });
  expect([refused.status, refused.page.includes(why)]).toEqual([400, true]);
});

test('a name is text, a filter that is wrong is not kept, and another site cannot save', async () => {
  await send(owner, '/audit/views', { ...FILTERS, name: '<b>x</b>' });
  expect(await open(owner, '/audit')).not.toContain('<b>x</b>');
  expect((await send(owner, '/audit/views', { status: 'nonsense', name: 'wrong' })).status).toBe(400);
  expect((await send(owner, '/audit/views', { ...FILTERS, name: 'evil' }, 'https://evil.example')).status).toBe(403);
  const page = await open(owner, '/audit');
  for (const name of ['wrong', 'evil']) expect(page).not.toContain(`>${name}<`);
});

test('a person keeps at most 30', async () => {
  for (let index = 0; index < 30; index += 1) await send(member, '/audit/views', { ...FILTERS, name: `view ${index}` });
  expect((await send(member, '/audit/views', { ...FILTERS, name: 'one more' })).page).toContain(
    'You have 30 saved views',
  );
  expect((await send(member, '/audit/views', { host: 'other.test', name: 'view 3' })).status).toBe(303);
});
