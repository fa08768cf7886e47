import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  callAs,
  type HostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { signInsPage } from '../../../shared/wire/sign_ins.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import { exportEvents } from './audit_file.ts';

// A reply that goes on for minutes ends with the access by which it was asked for.

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
});
afterEach(() => control.stop());

const MINUTE_MS = 60_000;

/** Opens a stream, ends the access to it, and returns after how long it has ended. */
async function endedAfterMs(headers: Record<string, string>, end: () => Promise<unknown>): Promise<number> {
  const reply = await control.send('/v1/audit-events/stream', { headers });
  expect(reply.status).toBe(200);
  const reader = reply.body!.getReader();
  await reader.read();
  await reader.read();
  const beganMs = control.clock.now();
  await end();
  for (;;) {
    const { done } = await reader.read();
    if (done) return control.clock.now() - beganMs;
  }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('a stream of a browser ends when its person signs out', async () => {
  const cookie = await signInBrowser(control, member.caller);
  const signOut = () =>
    control.send('/auth/logout', {
      method: 'POST',
      headers: { cookie, origin: PUBLIC_URL, 'sec-fetch-site': 'same-origin' },
    });
  expect(await endedAfterMs({ cookie }, signOut)).toBeLessThan(MINUTE_MS);
});

test('a stream of a browser ends when its sign-in is ended from elsewhere', async () => {
  const cookie = await signInBrowser(control, member.caller);
  const end = async () => {
    const { items } = await parseReply(signInsPage, member.call('GET', '/v1/sessions'));
    const { id } = items.find(({ kind }) => kind === 'browser')!;
    expect((await member.call('DELETE', `/v1/sessions/${id}`)).status).toBe(204);
  };
  expect(await endedAfterMs({ cookie }, end)).toBeLessThan(MINUTE_MS);
});

const signOutPrograms = () => control.context.database.client.execute(`UPDATE token_families SET revoked_at = '2026'`);

test('a stream of a program ends when the program is signed out', async () => {
  expect(await endedAfterMs(bearer(member.tokens.access_token), signOutPrograms)).toBeLessThan(MINUTE_MS);
});

test('a stream of a personal token ends when the token is revoked', async () => {
  const made = member.call('POST', '/v1/tokens', { name: 'ci', scopes: ['audit-events:read'] });
  const { id, token } = await parseReply(createdToken, made);
  const end = () => member.call('DELETE', `/v1/tokens/${id}`);
  expect(await endedAfterMs(bearer(token), end)).toBeLessThan(MINUTE_MS);
});

test('a stream ends when its user is suspended', async () => {
  const cookie = await signInBrowser(control, member.caller);
  const end = () => owner.call('PUT', `/v1/members/${member.caller.userId}`, { role: 'member', suspended: true });
  expect(await endedAfterMs({ cookie }, end)).toBeLessThan(MINUTE_MS);
});

test('the end of another sign-in of its user ends no stream', async () => {
  const [cookie, other] = [await signInBrowser(control, member.caller), await signInBrowser(control, member.caller)];
  const signOut = () =>
    control.send('/auth/logout', { method: 'POST', headers: { cookie: other, origin: PUBLIC_URL } });
  expect(await endedAfterMs({ cookie }, signOut)).toBeGreaterThan(10 * MINUTE_MS);
});

test('a file of events breaks off when its reader signs out', async () => {
  for (let n = 0; n < 3; n += 1) {
    await callAs(control, owner.tokens.access_token, 'POST', '/v1/secrets', {
      path: `user/k${n}`,
      value: 'value-of-a-test',
    });
  }
  const caller = { ...owner.caller, signIn: 'a-sign-in-that-has-ended' };
  const opened = await exportEvents(control.context, caller, { limit: 1 }, 'csv');
  if (!opened.ok) throw new Error(opened.error.code);
  await expect(new Response(opened.value).text()).rejects.toThrow('signed out');
});
