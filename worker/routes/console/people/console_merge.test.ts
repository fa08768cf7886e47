import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, NO_OUTBOUND } from '../../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../../e2e/sign_in/test_browser.ts';
import { passwordIdentity } from '../../../sign_in/password_identity.ts';
import { signInIdentity } from '../../../sign_in/sign_in_identity.ts';

let control: InProcess;
let pat: TestBrowser;
/** Pat's own enterprise. */
let path: string;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  pat = await browserOf('pat');
});
afterEach(() => control.stop());

async function browserOf(name: string): Promise<TestBrowser> {
  control.clock.ms += 1000;
  const identity = passwordIdentity(`${name}@acme.test`, name);
  const signedIn = await signInIdentity(control.context, identity, { provider: 'password', client: '' });
  const browser = new TestBrowser(control.send, FRONT);
  browser.cookies.set('__Host-session', signedIn.ok ? signedIn.value.token : '');
  return browser;
}

const text = async (reply: Promise<Response>) => (await reply).text();
const store = (name: string) => pat.submit('/secrets', { path: name, value: `value-of-${name}`, owner: 'personal' });

/** Pat joins Olga's enterprise, and is there from then on. */
async function join(): Promise<void> {
  const olga = await browserOf('olga');
  const form = { email: 'pat@acme.test', role: 'member', expires_in_days: '7' };
  const shown = await text(olga.submit('/members/invite', form));
  await pat.submit(/https:\/\/[^/]+(\/invitations\/[\w-]+)/.exec(shown)?.[1] ?? 'no link', {});
  path = /href="(\/enterprises\/\w+\/merge)"/.exec(await text(pat.get('/enterprises')))?.[1] ?? 'no link';
}

test('everything moves into the team once its slug was typed', async () => {
  await store('user/github');
  await join();
  const asked = await text(pat.get(path));
  expect(asked).toContain('1 secret');
  const slug = /Type (\S+) to confirm/.exec(asked)?.[1] ?? 'no slug';
  expect((await pat.submit(path, { confirm: 'olga' })).status).toBe(400);
  expect(await text(pat.get('/secrets'))).not.toContain('user/github');
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  expect((await pat.submit(path, { confirm: slug }, foreign)).status).toBe(403);
  expect((await pat.submit(path, { confirm: slug })).headers.get('location')).toBe('/enterprises?done=merged');
  expect(await text(pat.get('/secrets'))).toContain('user/github');
  expect(await text(pat.get(path))).toContain('Nothing to move');
});

test('names that clash are shown, and nothing moves', async () => {
  await store('user/github');
  await join();
  await store('user/github');
  const asked = await text(pat.get(path));
  expect(asked).toContain('Names clash');
  expect(asked).toContain('user/github');
  expect(asked).not.toContain('<form class="stack" method="post"');
});

test('another’s enterprise, and one of which the person is no owner, is not offered', async () => {
  await join();
  const olgas = await browserOf('sam');
  const refused = await olgas.get(path);
  expect(refused.status).toBe(404);
  // Where to go on, and how.
  expect(await refused.text()).toMatch(/sign out and sign in the way that you do there[^]*href="\/enterprises">Your/);
  expect(await text(olgas.get('/enterprises'))).not.toContain('/merge"');
});
