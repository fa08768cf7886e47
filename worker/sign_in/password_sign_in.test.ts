import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHEAP_PASSWORDS, type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { TestBrowser } from '../../e2e/sign_in/test_browser.ts';
import { meReply } from '../../shared/wire/account.ts';
import { providersReply, signupReply } from '../../shared/wire/auth.ts';
import { ERROR_STATUS, errorBody } from '../../shared/wire/errors.ts';
import { Secret } from '../../shared/model/secret.ts';
import { hashPassword } from '../services/people/passwords.ts';
import { setPassword } from '../store/passwords.ts';
import { signInIdentity } from './sign_in_identity.ts';
import { passwordIdentity } from './password_identity.ts';
import { CLIENT_TRIES, PASSWORD_TRIES, signInWithPassword } from './password_sign_in.ts';
import { beginSignup, CLIENT_SIGNUPS, SIGNUP_TRIES } from './signup.ts';
import { takeAttempt, type Throttle } from './throttle.ts';

const EMAIL = 'alice@acme.test';
const PASSWORD = 'correct horse battery';
let control: InProcess;
let hash: string;
let mails: Readonly<Record<string, string>>[];

beforeAll(async () => {
  hash = await hashPassword(new Secret(PASSWORD), CHEAP_PASSWORDS);
});
beforeEach(async () => {
  mails = [];
  control = await startInProcess({ printMail: (mail) => mails.push(mail) });
});
afterEach(() => control.stop());

const post = (path: string, body: object) =>
  control.inBrowser(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const signUp = (more: object = {}) => post('/auth/signup', { email: EMAIL, password: PASSWORD, ...more });
const logIn = (more: object = {}) => post('/auth/login', { email: EMAIL, password: PASSWORD, ...more });
const lastCode = () => /\b(\d{8})\b/.exec(mails.at(-1)?.['text'] ?? '')?.[1] ?? '';
const wrongCode = () => lastCode().replace(/^./, (digit) => String((Number(digit) + 1) % 10));

async function begun(more: object = {}) {
  return parseReply(signupReply, signUp(more));
}

async function account(more: object = {}): Promise<Response> {
  const { signup_id: id } = await begun(more);
  return post('/auth/verify', { signup_id: id, code: lastCode() });
}

/** Records attempts without the cost of a password hash. */
async function spend(throttle: Throttle, email: string, times: number): Promise<void> {
  for (let number = 0; number < times; number += 1) {
    expect((await takeAttempt(control.context, throttle, email)).ok).toBe(true);
  }
}

/** An account with the password. */
async function existing(): Promise<void> {
  await signInIdentity(control.context, passwordIdentity(EMAIL, 'Alice'), { provider: 'password', client: '' });
  const row = { email: EMAIL, hash, updatedAt: '2026-01-01T00:00:00.000Z' };
  await control.context.database.write([setPassword(control.context.database, row)]);
}

const cookieOf = (reply: Response) => (reply.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
const me = async (reply: Response) =>
  parseReply(meReply, control.inBrowser('/v1/me', { headers: { cookie: cookieOf(reply) } }));

async function refusal(reply: Promise<Response>) {
  const answered = await reply;
  const { error } = errorBody.parse(await answered.json());
  expect([answered.status, answered.headers.getSetCookie()]).toEqual([ERROR_STATUS[error.code], []]);
  return error;
}

describe('a signup', () => {
  test('sends a code to the address, which creates an account and signs in', async () => {
    const reply = await account({ display_name: 'Alice' });
    expect(reply.status).toBe(200);
    expect(mails).toMatchObject([{ to: EMAIL, subject: 'Your code for svc' }]);
    expect(await me(reply)).toMatchObject({ email: EMAIL, display_name: 'Alice', role: 'owner' });
    expect((await logIn({ email: 'Alice@ACME.test' })).status).toBe(200);
  });

  test('creates nothing without the code', async () => {
    await begun();
    expect(await refusal(logIn())).toMatchObject({ code: 'wrong_email_or_password' });
  });

  test('accepts no code after five wrong ones, not even the right one', async () => {
    const { signup_id: id } = await begun();
    for (let tries = 0; tries < 5; tries += 1) {
      expect(await refusal(post('/auth/verify', { signup_id: id, code: wrongCode() }))).toMatchObject({
        code: 'verification_failed',
      });
    }
    expect((await post('/auth/verify', { signup_id: id, code: lastCode() })).status).toBe(400);
  });

  test('accepts its code once, within ten minutes', async () => {
    const { signup_id: id } = await begun();
    const verify = () => post('/auth/verify', { signup_id: id, code: lastCode() });
    const both = await Promise.all([verify(), verify()]);
    expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 400]));
    const { signup_id: late } = await begun();
    control.clock.ms += 600_000;
    expect((await post('/auth/verify', { signup_id: late, code: lastCode() })).status).toBe(400);
  });

  test("of a stranger cannot be completed with the code that the address's owner requested", async () => {
    const stranger = await begun({ password: 'chosen by a stranger' });
    await begun();
    expect((await post('/auth/verify', { signup_id: stranger.signup_id, code: lastCode() })).status).toBe(400);
  });

  test('answers the same for an address with an account and one without', async () => {
    await existing();
    const [with_, without] = [await begun(), await begun({ email: 'nobody@acme.test' })];
    expect(Object.keys(with_)).toEqual(Object.keys(without));
    const texts = mails.slice(-2).map(({ text = '' }) => text.replace(/\d{8}/, ''));
    expect(texts[0]).toBe(texts[1]);
  });

  test('for an existing account sets a new password, and signs out everybody who used the old one', async () => {
    const first = await account();
    const id = (await me(first)).id;
    const second = await account({ password: 'another long password' });
    expect((await me(second)).id).toBe(id);
    expect((await control.inBrowser('/v1/me', { headers: { cookie: cookieOf(first) } })).status).toBe(401);
    expect(await refusal(logIn())).toMatchObject({ code: 'wrong_email_or_password' });
    expect((await logIn({ password: 'another long password' })).status).toBe(200);
  });

  test('sends at most five mails an hour to one address', async () => {
    await spend(SIGNUP_TRIES, EMAIL, 4);
    expect((await signUp()).status).toBe(202);
    expect(await refusal(signUp())).toMatchObject({
      code: 'too_many_attempts',
      details: { retry_after_seconds: 3600 },
    });
    expect(mails.length).toBe(1);
    expect((await signUp({ email: 'bob@acme.test' })).status).toBe(202);
    control.clock.ms += 3_601_000;
    expect((await signUp()).status).toBe(202);
  });

  test.each([
    ['email', { email: 'alice' }],
    ['email', { email: 'al\u0131ce@acme.test' }],
    ['password', { password: 'short' }],
    ['display_name', { display_name: 'a\nb' }],
  ])('names the field %s if it is invalid', async (field, more) => {
    const { code, details } = await refusal(signUp(more));
    expect([code, details]).toMatchObject(['invalid_input', { fields: [{ field }] }]);
  });

  test('does not set the password of an account that cannot sign in', async () => {
    await existing();
    await control.context.database.client.execute("UPDATE users SET suspended_at = '2026' WHERE email IS NOT NULL");
    expect((await account({ password: 'another long password' })).status).toBe(401);
    await control.context.database.client.execute('UPDATE users SET suspended_at = NULL');
    expect((await logIn()).status).toBe(200);
  });

  test('leaves no password and no code in the database', async () => {
    await account();
    const bytes = await control.databaseBytes();
    expect([bytes.includes(PASSWORD), bytes.includes(lastCode()), bytes.includes('scrypt$16$8$1$')]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe('a password', () => {
  test('gets the same answer whether it is wrong or the address has no account', async () => {
    await existing();
    const wrong = await refusal(logIn({ password: 'not the right one' }));
    const nobody = await refusal(logIn({ email: 'nobody@acme.test' }));
    expect({ ...wrong, request_id: '' }).toEqual({ ...nobody, request_id: '' });
  });

  test('may be tried ten times in a quarter of an hour, whether the address has an account or not', async () => {
    await existing();
    for (const email of [EMAIL, 'nobody@acme.test']) {
      await spend(PASSWORD_TRIES, email, 9);
      expect(await refusal(logIn({ email, password: 'not the right one' }))).toMatchObject({
        code: 'wrong_email_or_password',
      });
      expect(await refusal(logIn({ email }))).toMatchObject({ code: 'too_many_attempts' });
    }
    control.clock.ms += 901_000;
    expect((await logIn()).status).toBe(200);
  });

  test('resets the count if it is right', async () => {
    await existing();
    await spend(PASSWORD_TRIES, EMAIL, 9);
    expect((await logIn()).status).toBe(200);
    await spend(PASSWORD_TRIES, EMAIL, 9);
    expect((await logIn()).status).toBe(200);
  });

  test('may be tried ten times, also concurrently', async () => {
    const tries = Array.from({ length: 30 }, () => takeAttempt(control.context, PASSWORD_TRIES, EMAIL));
    expect((await Promise.all(tries)).filter(({ ok }) => ok).length).toBe(10);
  });

  test('does not sign in a suspended user', async () => {
    await existing();
    await control.context.database.client.execute("UPDATE users SET suspended_at = '2026' WHERE email IS NOT NULL");
    expect(await refusal(logIn())).toMatchObject({ code: 'account_unavailable' });
  });

  test('is not offered where no mail can be sent', async () => {
    const plain = await startInProcess();
    const body = JSON.stringify({ email: EMAIL, password: PASSWORD });
    for (const path of ['/auth/signup', '/auth/login']) {
      const headers = { 'content-type': 'application/json' };
      expect((await plain.inBrowser(path, { method: 'POST', headers, body })).status).toBe(404);
    }
    expect((await plain.inBrowser('/sign-up')).status).toBe(404);
    expect(await parseReply(providersReply, plain.inBrowser('/auth/providers'))).toMatchObject({ password: false });
    await plain.stop();
  });
});

test('a form of another site cannot sign anybody in, because it cannot send JSON', async () => {
  await existing();
  const body = JSON.stringify({ email: EMAIL, password: PASSWORD });
  const answer = async (type: string) => {
    const headers = { 'content-type': type, 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
    const reply = await control.inBrowser('/auth/login', { method: 'POST', headers, body });
    return [reply.status, reply.headers.getSetCookie().length];
  };
  expect(await answer('application/json')).toEqual([200, 1]);
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/json',
  ]) {
    expect([type, ...(await answer(type))]).toEqual([type, 415, 0]);
  }
});

describe('one client', () => {
  const ADDRESS = '203.0.113.7';
  const input = { email: EMAIL, password: PASSWORD };

  test('may try a limited number of addresses, without affecting other clients', async () => {
    await spend(CLIENT_TRIES, ADDRESS, CLIENT_TRIES.most);
    const other = { ...input, email: 'other@acme.test' };
    const tried = await signInWithPassword(control.context, other, { client: '', address: ADDRESS });
    expect(tried).toMatchObject({ ok: false, error: { code: 'too_many_attempts' } });
    expect(await signInWithPassword(control.context, input, { client: '', address: '203.0.113.8' })).toMatchObject({
      error: { code: 'wrong_email_or_password' },
    });
  });

  test('may request a limited number of codes', async () => {
    await spend(CLIENT_SIGNUPS, ADDRESS, CLIENT_SIGNUPS.most);
    const asked = await beginSignup(control.context, { ...input, email: 'other@acme.test' }, ADDRESS);
    expect(asked).toMatchObject({ ok: false, error: { code: 'too_many_attempts' } });
    expect(mails).toEqual([]);
  });
});

describe('the pages', () => {
  test('sign up and in', async () => {
    const browser = new TestBrowser(control.inBrowser);
    expect(await (await browser.get('/sign-in')).text()).toContain('action="/sign-in"');
    expect(await (await browser.get('/sign-up')).text()).toContain('action="/sign-up"');
    const form = { email: EMAIL, password: PASSWORD, display_name: '' };
    const asked = await (await browser.submit('/sign-up', form)).text();
    const id = /name="signup_id" value="([\w-]+)"/.exec(asked)?.[1] ?? '';
    expect((await browser.submit('/sign-up/code', { signup_id: id, code: lastCode() })).headers.get('location')).toBe(
      '/',
    );
    expect((await browser.get('/v1/me')).status).toBe(200);
    browser.cookies.clear();
    const back = await browser.submit('/sign-in?return_to=/docs', { email: EMAIL, password: PASSWORD });
    expect([back.status, back.headers.get('location')]).toEqual([303, '/docs']);
    expect((await browser.get('/v1/me')).status).toBe(200);
  });

  test('show a refused form again, with the address and without the password or the code', async () => {
    await existing();
    const browser = new TestBrowser(control.inBrowser);
    const wrong = { email: EMAIL, password: 'a wrong password' };
    const again = await browser.submit('/sign-in?return_to=/docs', wrong);
    const page = await again.text();
    expect(again.status).toBe(401);
    expect(page).toContain('role="alert"');
    expect(page).toContain(`value="${EMAIL}"`);
    expect(page).toContain('action="/sign-in?return_to=%2Fdocs"');
    expect(page).not.toContain(wrong.password);
    const unknown = await browser.get('/auth/sso?email=ann@nowhere.test');
    expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining('value="ann@nowhere.test"')]);
    const asked = await (await browser.submit('/sign-up', { email: EMAIL, password: PASSWORD })).text();
    const id = /name="signup_id" value="([\w-]+)"/.exec(asked)?.[1] ?? '';
    const refused = await (await browser.submit('/sign-up/code', { signup_id: id, code: '00000000' })).text();
    expect(refused).toContain('The code is wrong');
    expect(refused).toContain(`name="signup_id" value="${id}"`);
    expect(refused).not.toContain('value="00000000"');
    expect((await browser.submit('/sign-up/code', { signup_id: id, code: lastCode() })).status).toBe(303);
  });

  test('refuse a form of another site, which would sign a person in as somebody else', async () => {
    await existing();
    const browser = new TestBrowser(control.inBrowser);
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
    expect((await browser.submit('/sign-in', { email: EMAIL, password: PASSWORD }, headers)).status).toBe(403);
    expect(browser.cookies.size).toBe(0);
  });

  test('each browser session gets a new token', async () => {
    const cookies = [await account(), await logIn()].map((reply) => cookieOf(reply));
    expect(new Set(cookies).size).toBe(2);
  });
});
