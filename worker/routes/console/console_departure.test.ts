import { afterEach, beforeEach, expect, test } from 'vitest';
import { addUser, type InProcess, NO_OUTBOUND } from '../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../e2e/sign_in/test_browser.ts';
import { passwordIdentity } from '../../sign_in/password_identity.ts';
import { signInIdentity } from '../../sign_in/sign_in_identity.ts';
import { findAccount } from '../../store/accounts.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
});
afterEach(() => control.stop());

test('an owner removes a member after its name was typed, and leaves when there is another owner', async () => {
  const { context } = control;
  const identity = passwordIdentity('olga@acme.test', 'Olga');
  const signedIn = await signInIdentity(context, identity, { provider: 'password', client: '' });
  const { userId, token } = signedIn.ok ? signedIn.value : { userId: '', token: '' };
  const browser = new TestBrowser(control.send, FRONT);
  browser.cookies.set('__Host-session', token);
  const enterpriseId = (await findAccount(context.database, userId))?.enterprise.id ?? '';
  const [member, heir] = [await addUser(context, enterpriseId), await addUser(context, enterpriseId)];
  const path = `/members/${member.userId}/remove`;
  expect(await (await browser.get(path)).text()).toContain('is signed out everywhere at once');
  expect((await browser.submit(path, { confirm: 'x' })).status).toBe(400);
  const removed = await browser.submit(path, { confirm: member.userId });
  expect(removed.headers.get('location')).toBe('/members?done=member_removed');
  expect((await browser.get('/enterprises/leave')).status).toBe(409);
  await context.database.client.execute(`UPDATE users SET role = 'owner' WHERE id = '${heir.userId}'`);
  expect(await (await browser.get('/enterprises/leave')).text()).toContain('Type Olga to confirm');
  const left = await browser.submit('/enterprises/leave', { confirm: 'Olga' });
  expect(left.headers.get('location')).toBe('/sign-in?done=left');
  expect((await browser.get('/members')).status).toBe(401);
});

test('a person deletes the account after its address was typed', async () => {
  const identity = passwordIdentity('olga@acme.test', 'Olga');
  const signedIn = await signInIdentity(control.context, identity, { provider: 'password', client: '' });
  const browser = new TestBrowser(control.send, FRONT);
  browser.cookies.set('__Host-session', signedIn.ok ? signedIn.value.token : '');
  expect(await (await browser.get('/account')).text()).toContain('href="/account/delete"');
  expect(await (await browser.get('/account/delete')).text()).toContain('Type olga@acme.test to confirm');
  expect((await browser.submit('/account/delete', { confirm: 'Olga' })).status).toBe(400);
  const deleted = await browser.submit('/account/delete', { confirm: 'olga@acme.test' });
  expect(deleted.headers.get('location')).toBe('/sign-in?done=account_deleted');
  expect((await browser.get('/account')).status).toBe(401);
});

test('an owner deletes the enterprise after its slug was typed', async () => {
  const { context } = control;
  const identity = passwordIdentity('olga@acme.test', 'Olga');
  const signedIn = await signInIdentity(context, identity, { provider: 'password', client: '' });
  const browser = new TestBrowser(control.send, FRONT);
  browser.cookies.set('__Host-session', signedIn.ok ? signedIn.value.token : '');
  expect(await (await browser.get('/enterprise')).text()).toContain('href="/enterprise/delete"');
  expect(await (await browser.get('/enterprise/delete')).text()).toContain('Type olga-acme to confirm');
  expect((await browser.submit('/enterprise/delete', { confirm: 'Olga' })).status).toBe(400);
  const deleted = await browser.submit('/enterprise/delete', { confirm: 'olga-acme' });
  expect(deleted.headers.get('location')).toBe('/sign-in?done=enterprise_deleted');
  expect((await browser.get('/enterprise')).status).toBe(401);
});
