import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownerWithMember, signInBrowser, hostedUser, type HostedUser } from '../../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, NO_OUTBOUND } from '../../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../../e2e/sign_in/test_browser.ts';

let control: InProcess;
let owner: TestBrowser;
let pat: TestBrowser;
let enterpriseId: string;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  const people = await ownerWithMember(control);
  ({ enterpriseId } = people.owner.caller);
  owner = await browserOf(people.owner);
  const stranger = await hostedUser(control);
  const { userId } = stranger.caller;
  await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${enterpriseId}', '2026-01-01')`);
  await run(`INSERT INTO identities (id, provider, issuer, subject, user_id, email, email_verified, created_at, last_sign_in_at)
    VALUES ('idn_x', 'general', 'https://id.test', 'pat', '${userId}', 'pat@acme.test', 1, '2026', '2026')`);
  pat = await browserOf(stranger);
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);
async function browserOf({ caller }: HostedUser): Promise<TestBrowser> {
  const browser = new TestBrowser(control.send, FRONT);
  const [name = '', value = ''] = (await signInBrowser(control, caller)).split('=');
  browser.cookies.set(name, value);
  return browser;
}
const text = async (reply: Promise<Response>) => (await reply).text();
const location = async (reply: Promise<Response>) => (await reply).headers.get('location');
const actionOf = (page: string, end: string) => new RegExp(`action="([^"]+/${end})"`).exec(page)?.[1] ?? `no ${end}`;

test('somebody asks, takes it back, asks again, and an admin accepts with a role', async () => {
  const offered = await text(pat.get('/enterprises'));
  expect(offered).toContain('pat@acme.test');
  expect(await location(pat.submit(actionOf(offered, 'ask'), {}))).toBe('/enterprises?done=asked_to_join');
  const asked = await text(pat.get('/enterprises'));
  expect(await location(pat.submit(actionOf(asked, 'withdraw'), {}))).toBe('/enterprises?done=join_withdrawn');
  await pat.submit(`/enterprises/${enterpriseId}/ask`, {});
  const listed = await text(owner.get('/members/requests'));
  expect(listed).toContain('pat@acme.test');
  expect((await pat.submit(actionOf(listed, 'accept'), { role: 'member' })).status).toBe(404);
  expect(await location(owner.submit(actionOf(listed, 'accept'), { role: 'admin' }))).toBe(
    '/members/requests?done=join_accepted',
  );
  const { rows } = await run(
    `SELECT role FROM users WHERE enterprise_id = '${enterpriseId}' AND email = 'pat@acme.test'`,
  );
  expect(rows.map(({ role }) => role)).toEqual(['admin']);
  expect(await text(pat.get('/enterprises'))).not.toContain('Ask to join');
});

test('an admin declines, and the page of who asked says so', async () => {
  await pat.submit(`/enterprises/${enterpriseId}/ask`, {});
  const listed = await text(owner.get('/members/requests'));
  expect(await location(owner.submit(actionOf(listed, 'decline'), {}))).toBe('/members/requests?done=join_declined');
  expect(await text(pat.get('/enterprises'))).toContain('Declined');
  expect((await pat.submit(`/enterprises/${enterpriseId}/ask`, {})).status).toBe(409);
});

test('the settings say who joins by a domain', async () => {
  const revision = /name="revision" value="(\w+)"/.exec(await text(owner.get('/enterprise')))?.[1] ?? 'none';
  await owner.submit('/enterprise', { name: 'Acme', providers: 'every', domain_joining: 'closed', revision });
  const { rows } = await run(`SELECT domain_joining FROM enterprises WHERE id = '${enterpriseId}'`);
  expect(rows[0]!['domain_joining']).toBe('closed');
});
