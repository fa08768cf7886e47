import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  callAs,
  hostedUser,
  type HostedUser,
  outcome,
  signInBrowser,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { type DeviceReply, deviceReply, tokenPair } from '../../shared/wire/device.ts';
import { meReply } from '../../shared/wire/account.ts';
import { createApp } from '../app.ts';
import { fileAssets } from '../entries/file_assets.ts';
import { signOutEverywhere } from '../store/members.ts';
import { endAllSignIns } from '../store/passwords.ts';
import { decideOnProgram } from './device_approval.ts';

const ADDRESS = '203.0.113.9';

let control: InProcess;
let user: HostedUser;
let cookie: string;
let send: (path: string, init?: RequestInit) => Promise<Response>;
beforeEach(async () => {
  control = await startHosted();
  const { context } = control;
  const app = createApp({
    context: () => context,
    assets: fileAssets(),
    log: () => undefined,
    clientAddress: () => ADDRESS,
  });
  send = async (path, init) => app.fetch(new Request(`http://127.0.0.1:7420${path}`, init));
  user = await hostedUser(control);
  cookie = await signInBrowser(control, user.caller);
});
afterEach(() => control.stop());

const post = (path: string, body: unknown) =>
  send(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const ask = (name = 'svc on laptop') => parseReply(deviceReply, post('/auth/device/code', { client_name: name }));
const poll = (device: DeviceReply) => post('/auth/device/token', { device_code: device.device_code });

/** A form from one of our own pages, as a browser sends it. */
const submit = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  send(path, {
    method: 'POST',
    headers: { cookie, origin: 'null', 'sec-fetch-site': 'same-origin', ...headers },
    body: new URLSearchParams(fields),
  });
const decide = (code: string, decision: string) => submit('/device/decide', { user_code: code, decision });
const wait = (seconds: number) => {
  control.clock.ms += seconds * 1000;
};

describe('a program that requests a sign-in', () => {
  test("gets a code of eight letters to show, and the page's URL at the configured address", async () => {
    const device = await ask();
    expect(device.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(device).toMatchObject({
      verification_uri: 'https://control.example.test/device',
      expires_in: 600,
      interval: 5,
    });
    const database = await control.databaseBytes();
    expect(database.includes(device.device_code)).toBe(false);
    expect(database.includes(device.user_code.replace('-', ''))).toBe(false);
  });

  test('is signed in as the user who approves it, once', async () => {
    const device = await ask();
    expect(await outcome(poll(device))).toBe('authorization_pending');
    expect((await decide(device.user_code, 'approve')).status).toBe(200);
    wait(5);
    const tokens = await parseReply(tokenPair, poll(device));
    const me = await parseReply(meReply, callAs(control, tokens.access_token, 'GET', '/v1/me'));
    expect(me.id).toBe(user.caller.userId);
    wait(60);
    expect(await outcome(poll(device))).toBe('expired_token');
  });

  test('that polls twice at the same time gets tokens once', async () => {
    const device = await ask();
    await decide(device.user_code, 'approve');
    const replies = await Promise.all([1, 2, 3].map(() => outcome(poll(device))));
    expect(replies.filter((reply) => reply === 200).length).toBe(1);
  });

  test('is told that it was denied', async () => {
    const device = await ask();
    expect((await decide(device.user_code, 'deny')).status).toBe(200);
    expect(await outcome(poll(device))).toBe('access_denied');
    wait(60);
    expect(await outcome(poll(device))).toBe('expired_token');
  });

  test('that polls too early must wait longer and longer', async () => {
    const device = await ask();
    expect(await outcome(poll(device))).toBe('authorization_pending');
    wait(4);
    expect(await outcome(poll(device))).toBe('slow_down');
    wait(9);
    expect(await outcome(poll(device))).toBe('slow_down');
    wait(15);
    expect(await outcome(poll(device))).toBe('authorization_pending');
  });

  test('has ten minutes', async () => {
    const device = await ask();
    wait(599);
    expect(await outcome(poll(device))).toBe('authorization_pending');
    wait(2);
    expect(await outcome(poll(device))).toBe('expired_token');
    expect((await decide(device.user_code, 'approve')).status).toBe(404);
  });

  test('is not signed in as a user who was suspended meanwhile', async () => {
    const device = await ask();
    await decide(device.user_code, 'approve');
    const { client } = control.context.database;
    await client.execute({ sql: `UPDATE users SET suspended_at = 'x' WHERE id = ?`, args: [user.caller.userId] });
    expect(await outcome(poll(device))).toBe('access_denied');
  });

  test.each([
    ['set another password', endAllSignIns],
    ['was suspended and resumed', signOutEverywhere],
  ])('is not signed in as a user who approved it and then %s', async (_what, end) => {
    const device = await ask();
    await decide(device.user_code, 'approve');
    const { database } = control.context;
    expect((await database.write(end(database, user.caller.userId, '2026-01-01T00:00:00.000Z'))).ok).toBe(true);
    expect(await outcome(poll(device))).toBe('expired_token');
  });

  test('cannot be approved by a browser that was signed out while it answered', async () => {
    const device = await ask();
    const caller = { ...user.caller, signIn: 'of a session that is gone' };
    const decided = await decideOnProgram(control.context, caller, { typed: device.user_code, decision: 'approve' });
    expect(decided).toMatchObject({ ok: false, error: { code: 'unauthenticated' } });
    expect(await outcome(poll(device))).toBe('authorization_pending');
  });

  test('may start at most thirty times from one address in ten minutes', async () => {
    for (let n = 0; n < 30; n += 1) await ask();
    expect(await outcome(post('/auth/device/code', { client_name: 'x' }))).toBe('too_many_attempts');
    wait(601);
    await ask();
  });

  test('is refused if the control plane has no configured address', async () => {
    Object.assign(control.context, { publicUrl: null });
    expect(await outcome(post('/auth/device/code', { client_name: 'x' }))).toBe('public_url_missing');
  });

  test('with an unknown code gets the same answer as with an expired one', async () => {
    expect(await outcome(post('/auth/device/token', { device_code: 'x' }))).toBe('expired_token');
  });
});

describe('the page', () => {
  test('shows who asks and from where, as text, before the decision', async () => {
    const device = await ask('<b>evil</b> & co');
    const shown = await (await submit('/device', { user_code: device.user_code.toLowerCase() })).text();
    expect(shown).toContain('&lt;b&gt;evil&lt;/b&gt; &amp; co');
    expect(shown).not.toContain('<b>evil');
    expect(shown).toContain(ADDRESS);
    expect(await outcome(poll(device))).toBe('authorization_pending');
  });

  test('accepts the code with or without its dash', async () => {
    const device = await ask();
    const typed = device.user_code.replace('-', ' ').toLowerCase();
    expect((await submit('/device', { user_code: typed })).status).toBe(200);
    expect((await submit('/device', { user_code: 'XXXX-XXXX' })).status).toBe(404);
  });

  test('requires a signed-in browser', async () => {
    const device = await ask();
    for (const request of [
      send('/device'),
      submit('/device', { user_code: device.user_code }, { cookie: '' }),
      submit('/device/decide', { user_code: device.user_code, decision: 'approve' }, { cookie: '' }),
    ]) {
      expect((await request).status).toBe(401);
    }
    expect((await send('/device', { headers: { cookie } })).status).toBe(200);
    expect(await outcome(poll(device))).toBe('authorization_pending');
  });

  test.each([
    ['another site', { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { origin: 'https://a.example.test', 'sec-fetch-site': 'same-site' }],
    ['an old browser that does not say', { origin: 'null', 'sec-fetch-site': '' }],
  ])('refuses a form of %s', async (_, headers) => {
    const device = await ask();
    const fields = { user_code: device.user_code, decision: 'approve' };
    expect((await submit('/device/decide', fields, headers)).status).toBe(403);
    expect(await outcome(poll(device))).toBe('authorization_pending');
  });

  test('limits the codes that a user may try', async () => {
    const device = await ask();
    for (let n = 0; n < 20; n += 1) expect((await decide('BBBB-BBBB', 'approve')).status).toBe(404);
    expect((await decide(device.user_code, 'approve')).status).toBe(429);
    expect((await submit('/device', { user_code: device.user_code })).status).toBe(429);
  });

  test('decides once', async () => {
    const device = await ask();
    await decide(device.user_code, 'deny');
    expect((await decide(device.user_code, 'approve')).status).toBe(404);
  });

  test('does not take the code from a link, which anybody could send', async () => {
    const device = await ask();
    const reply = await send(`/device?user_code=${device.user_code}`, { headers: { cookie } });
    expect(await reply.text()).not.toContain(device.user_code);
  });
});

test('a program refreshes its tokens and signs out', async () => {
  const body = { refresh_token: user.tokens.refresh_token };
  const next = await parseReply(tokenPair, post('/auth/refresh', body));
  expect((await post('/auth/revoke', { refresh_token: next.refresh_token })).status).toBe(204);
  expect(await outcome(post('/auth/refresh', { refresh_token: next.refresh_token }))).toBe('sign_in_over');
  expect((await post('/auth/revoke', { refresh_token: 'nobody' })).status).toBe(204);
});
