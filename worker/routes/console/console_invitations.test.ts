import { afterEach, beforeEach, expect, test } from 'vitest';
import { FRONT, startHostedSignIn } from '../../../e2e/sign_in/hosted_sign_in.ts';
import { type InProcess, NO_OUTBOUND } from '../../../e2e/runtimes/in_process.ts';
import { TestBrowser } from '../../../e2e/sign_in/test_browser.ts';
import { passwordIdentity } from '../../sign_in/password_identity.ts';
import { signInIdentity } from '../../sign_in/sign_in_identity.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
});
afterEach(() => control.stop());

/** A browser that is signed in as the owner of an address. */
async function browserOf(name: string): Promise<TestBrowser> {
  control.clock.ms += 1000;
  const identity = passwordIdentity(`${name}@acme.test`, name);
  const signedIn = await signInIdentity(control.context, identity, { provider: 'password', client: '' });
  const browser = new TestBrowser(control.send, FRONT);
  browser.cookies.set('__Host-session', signedIn.ok ? signedIn.value.token : '');
  return browser;
}

const text = async (reply: Promise<Response>) => (await reply).text();

/** Invites an address, and returns the path of the link. */
async function invite(by: TestBrowser, email: string): Promise<string> {
  const shown = await text(by.submit('/members/invite', { email, role: 'member', expires_in_days: '7' }));
  return /https:\/\/[^/]+(\/invitations\/[\w-]+)/.exec(shown)?.[1] ?? `no link: ${shown}`;
}

test('an owner invites, and the invited person joins, goes on there, and can switch back', async () => {
  const [owner, pat] = [await browserOf('olga'), await browserOf('pat')];
  expect(await text(owner.get('/members/invite'))).toContain('Invite somebody');
  const path = await invite(owner, 'pat@acme.test');
  expect(await text(owner.get('/members/invitations'))).toContain('pat@acme.test');
  const asked = await text(new TestBrowser(control.send, FRONT).get(path));
  expect(asked).toContain(`return_to=${encodeURIComponent(path)}`);
  for (const word of ['olga', 'Member', 'pat@acme.test']) expect(asked).toContain(word);
  expect(await text(owner.submit(path, {}))).toContain('for another address');
  const foreign = await pat.submit(path, {}, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' });
  expect(foreign.status).toBe(403);
  expect((await pat.submit(path, {})).headers.get('location')).toBe('/');
  const page = await text(pat.get('/enterprises'));
  expect(page).toMatch(/member of\s+<a href="\/enterprises"[^>]*>olga</);
  const [, other = ''] = /action="(\/enterprises\/\w+\/use)"/.exec(page) ?? [];
  expect((await pat.submit(other, {})).headers.get('location')).toBe('/');
  expect(await text(pat.get('/enterprises'))).toMatch(/owner of\s+<a href="\/enterprises"[^>]*>pat</);
  expect((await pat.submit('/enterprises/ent_nothing/use', {})).status).toBe(404);
});

test('a used or revoked invitation says so, without asking for a sign-in', async () => {
  const [owner, pat] = [await browserOf('olga'), await browserOf('pat')];
  const used = await invite(owner, 'pat@acme.test');
  await pat.submit(used, {});
  const revoked = await invite(owner, 'sam@acme.test');
  const [, form = ''] = /action="([^"]+\/revoke)"/.exec(await text(owner.get('/members/invitations'))) ?? [];
  expect((await owner.submit(form, {})).headers.get('location')).toBe('/members/invitations?done=invitation_revoked');
  for (const path of [used, revoked]) {
    const reply = await new TestBrowser(control.send, FRONT).get(path);
    expect([reply.status, await reply.text()]).toEqual([410, expect.stringContaining('used or revoked')]);
  }
  expect((await owner.get('/invitations/nothing')).status).toBe(404);
});

test('members neither see invitations nor invite', async () => {
  const [owner, pat] = [await browserOf('olga'), await browserOf('pat')];
  await pat.submit(await invite(owner, 'pat@acme.test'), {});
  expect((await pat.get('/members/invitations')).status).toBe(403);
  const asked = await pat.submit('/members/invite', { email: 'x@acme.test', role: 'member', expires_in_days: '7' });
  expect(asked.status).toBe(403);
  const wrong = await owner.submit('/members/invite', { email: 'x', role: 'member', expires_in_days: 'y' });
  expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining('is not an email address')]);
});
