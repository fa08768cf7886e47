import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callAs, hostedUser, type HostedUser, signInProgram, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../e2e/runtimes/in_process.ts';
import { refreshTokens, signProgramOut } from './program_sign_ins.ts';

let control: InProcess;
let user: HostedUser;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  user = await hostedUser(control);
});
afterAll(() => control.stop());

const DAY_MS = 24 * 3600 * 1000;
const refresh = async (token: string) => {
  const pair = await refreshTokens(control.context, token);
  return pair.ok ? pair.value : null;
};
const isIn = async (token: string) => (await callAs(control, token, 'GET', '/v1/me')).status === 200;

describe('a refresh token', () => {
  test('gives new tokens once', async () => {
    const next = await refresh(user.tokens.refresh_token);
    expect(next?.refresh_token).not.toBe(user.tokens.refresh_token);
    expect(await isIn(next!.access_token)).toBe(true);
    expect(await refresh(next!.refresh_token)).not.toBeNull();
  });

  test('that is reused ends the whole sign-in, with its tokens', async () => {
    const next = await refresh(user.tokens.refresh_token);
    expect(await refresh(user.tokens.refresh_token)).toBeNull();
    expect(await refresh(next!.refresh_token)).toBeNull();
    expect(await isIn(next!.access_token)).toBe(false);
    expect(await isIn(user.tokens.access_token)).toBe(false);
  });

  test('that is used twice at the same time works at most once, and ends the sign-in', async () => {
    const both = await Promise.all([1, 2].map(() => refresh(user.tokens.refresh_token)));
    const given = both.filter((pair) => pair !== null);
    expect(given.length).toBeLessThanOrEqual(1);
    for (const pair of given) expect(await refresh(pair.refresh_token)).toBeNull();
  });

  test('of another sign-in of the same user still works', async () => {
    const other = await signInProgram(control, user.caller, 'other');
    await refresh(user.tokens.refresh_token);
    await refresh(user.tokens.refresh_token);
    expect(await refresh(other.refresh_token)).not.toBeNull();
  });

  test('expires after a month without use, and after three months in any case', async () => {
    control.clock.ms += 31 * DAY_MS;
    expect(await refresh(user.tokens.refresh_token)).toBeNull();
    const own = await hostedUser(control);
    let token = own.tokens.refresh_token;
    for (const _ of [1, 2, 3]) {
      control.clock.ms += 29 * DAY_MS;
      token = (await refresh(token))!.refresh_token;
    }
    control.clock.ms += 4 * DAY_MS;
    expect(await refresh(token)).toBeNull();
  });

  test('of a suspended user is refused', async () => {
    const { client } = control.context.database;
    await client.execute({ sql: `UPDATE users SET suspended_at = 'x' WHERE id = ?`, args: [user.caller.userId] });
    expect(await refresh(user.tokens.refresh_token)).toBeNull();
  });

  test('is stored only as a hash', async () => {
    expect((await control.databaseBytes()).includes(user.tokens.refresh_token)).toBe(false);
  });

  test('is refused with the same message for every reason', async () => {
    await refresh(user.tokens.refresh_token);
    const tokens = ['', 'svc_rt_none', user.tokens.refresh_token, user.tokens.access_token];
    const errors = [];
    for (const token of tokens) errors.push(await refreshTokens(control.context, token));
    expect(new Set(errors.map((error) => JSON.stringify(error))).size).toBe(1);
  });
});

test('a program that refreshes endlessly is told to wait, and stays signed in', async () => {
  let token = user.tokens.refresh_token;
  token = (await refresh(token))!.refresh_token;
  // Records the rest of the sixty without their work.
  await control.context.database.client.execute('UPDATE throttles SET count = 59');
  token = (await refresh(token))!.refresh_token;
  expect(await refreshTokens(control.context, token)).toMatchObject({ error: { code: 'too_many_attempts' } });
  control.clock.ms += 601_000;
  expect(await refresh(token)).not.toBeNull();
});

test('a program that signs out is out at once, also with a token that was used before', async () => {
  const next = await refresh(user.tokens.refresh_token);
  await signProgramOut(control.context, user.tokens.refresh_token);
  expect(await isIn(next!.access_token)).toBe(false);
  expect(await refresh(next!.refresh_token)).toBeNull();
  await signProgramOut(control.context, user.tokens.refresh_token);
  await signProgramOut(control.context, 'nobody');
});
