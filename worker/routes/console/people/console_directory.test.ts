import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownerWithMember, signInBrowser } from '../../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, NO_OUTBOUND } from '../../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../../e2e/sign_in/test_browser.ts';
import type { Caller } from '../../../kernel/caller.ts';

let control: InProcess;
let owner: TestBrowser;
let member: TestBrowser;
let memberId: string;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  const people = await ownerWithMember(control);
  memberId = people.member.caller.userId;
  [owner, member] = await Promise.all([browserOf(people.owner.caller), browserOf(people.member.caller)]);
});
afterEach(() => control.stop());

async function browserOf(caller: Caller): Promise<TestBrowser> {
  const browser = new TestBrowser(control.send, FRONT);
  const [name = '', value = ''] = (await signInBrowser(control, caller)).split('=');
  browser.cookies.set(name, value);
  return browser;
}

const text = async (reply: Promise<Response>) => (await reply).text();

test('an owner creates a token, which is shown once, and revokes it by its name', async () => {
  expect(await text(owner.get('/directory'))).toContain('No directory is connected');
  const created = await owner.submit('/directory/tokens', { name: 'Okta', expires_in_days: '30' });
  const page = await created.text();
  expect([created.status, page]).toEqual([201, expect.stringMatching(/svc_scim_[\w-]{43}/)]);
  expect(page).toContain('/scim/v2');
  const listed = await text(owner.get('/directory'));
  expect(listed).not.toContain('svc_scim_');
  expect(listed).toMatch(/Okta[^]+Active[^]+never/);
  const path = /href="(\/directory\/tokens\/sct_\w+\/revoke)"/.exec(listed)?.[1] ?? '';
  expect((await owner.submit(path, { confirm: 'okta?' })).status).toBe(400);
  const revoked = await owner.submit(path, { confirm: 'Okta' });
  expect(revoked.headers.get('location')).toBe('/directory?done=token_revoked');
  expect((await owner.get(path)).status).toBe(404);
});

test('a wrong form says why, and only owners have one', async () => {
  expect((await owner.submit('/directory/tokens', { name: '', expires_in_days: '0' })).status).toBe(400);
  expect((await member.get('/directory')).status).toBe(403);
  await control.context.database.client.execute(`UPDATE users SET role = 'admin' WHERE id = '${memberId}'`);
  const page = await text(member.get('/directory'));
  expect([page.includes('No directory is connected'), page.includes('New token')]).toEqual([true, false]);
  expect((await member.submit('/directory/tokens', { name: 'x', expires_in_days: '1' })).status).toBe(403);
});
