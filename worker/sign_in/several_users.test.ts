import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess } from '../../e2e/runtimes/in_process.ts';
import { signInBrowser, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import type { Caller } from '../kernel/caller.ts';
import { nowText } from '../kernel/service_context.ts';
import { endSignInsBy } from '../store/identities.ts';
import { signOutEverywhere } from '../store/members.ts';
import { endAllSignInsOfPerson } from '../store/passwords.ts';
import type { Statement } from '../store/database.ts';
import { passwordIdentity } from './password_identity.ts';
import { signInIdentity } from './sign_in_identity.ts';

const PAT = passwordIdentity('pat@acme.test', 'Pat');

let control: InProcess;
/** Pat's user in an own enterprise, and the newer one in a team's. */
let own: Caller;
let inTeam: Caller;
let stranger: Caller;

beforeEach(async () => {
  control = await startHosted();
  const first = await signIn();
  own = { userId: first, enterpriseId: await enterpriseOf(first), role: 'owner' };
  control.clock.ms += 1000;
  inTeam = await addUser(control.context, null);
  await run(`UPDATE users SET person_id = (SELECT person_id FROM users WHERE id = '${own.userId}')
    WHERE id = '${inTeam.userId}'`);
  stranger = await addUser(control.context, inTeam.enterpriseId);
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

async function enterpriseOf(userId: string): Promise<string> {
  const { rows } = await run(`SELECT enterprise_id FROM users WHERE id = '${userId}'`);
  const id = rows[0]?.['enterprise_id'];
  return typeof id === 'string' ? id : '';
}

/** The id of the user, or the code of the refusal. */
async function signIn(identity = PAT, provider = 'password'): Promise<string> {
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  return signedIn.ok ? signedIn.value.userId : signedIn.error.code;
}

describe('a person with users in two enterprises', () => {
  test('signs in to the newer one', async () => {
    expect(await signIn()).toBe(inTeam.userId);
  });

  test.each([
    ['suspended the user', `UPDATE users SET suspended_at = '2026' WHERE id = '$USER'`],
    ['does not allow this way to sign in', `UPDATE enterprises SET allowed_providers = '[]' WHERE id = '$ENTERPRISE'`],
    ['requires its own provider', `UPDATE enterprises SET sso_required = 1 WHERE id = '$ENTERPRISE'`],
    ['does not allow the domain', `UPDATE enterprises SET allowed_domains = '["team.test"]' WHERE id = '$ENTERPRISE'`],
  ])('signs in to the other one if the newer enterprise %s', async (_, rule) => {
    await run(rule.replace('$USER', inTeam.userId).replace('$ENTERPRISE', inTeam.enterpriseId));
    expect(await signIn()).toBe(own.userId);
  });

  test('gets the refusal of the newer one if neither admits it', async () => {
    await run(`UPDATE users SET suspended_at = '2026' WHERE id = '${inTeam.userId}'`);
    await run(`UPDATE enterprises SET allowed_providers = '[]' WHERE id = '${own.enterpriseId}'`);
    expect(await signIn()).toBe('account_unavailable');
  });

  test("signs in by an enterprise's own provider to that enterprise alone", async () => {
    const identity = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
    expect(await signIn(identity, own.enterpriseId)).toBe(own.userId);
    expect(await signIn(identity, own.enterpriseId)).toBe(own.userId);
    await run(`UPDATE users SET suspended_at = '2026' WHERE id = '${own.userId}'`);
    expect(await signIn(identity, own.enterpriseId)).toBe('account_unavailable');
  });

  test('joins by its verified address, with another provider', async () => {
    expect(await signIn({ ...PAT, issuer: 'https://code.test', subject: '1' }, 'codehost')).toBe(inTeam.userId);
  });
});

/** The statuses of calls by a session of each user, after these statements. */
async function statusesAfter(statements: readonly Statement[]): Promise<readonly number[]> {
  const tokens = [];
  for (const user of [own, inTeam, stranger]) tokens.push(await signInBrowser(control, user));
  await run(`UPDATE browser_sessions SET provider = 'password'`);
  expect((await control.context.database.write(statements)).ok).toBe(true);
  const statuses = [];
  for (const token of tokens) {
    statuses.push((await control.inBrowser('/v1/me', { headers: { cookie: token } })).status);
  }
  return statuses;
}

describe('the sessions of a person with users in two enterprises', () => {
  test('end in both with a new password', async () => {
    const { context } = control;
    const ended = endAllSignInsOfPerson(context.database, own.userId, nowText(context));
    expect(await statusesAfter(ended)).toEqual([401, 401, 200]);
  });

  test('end in both when the identity that they used is removed', async () => {
    const { context } = control;
    const by = { userId: own.userId, provider: 'password', vouchedBy: null, except: '', now: nowText(context) };
    expect(await statusesAfter(endSignInsBy(context.database, by))).toEqual([401, 401, 200]);
  });

  test('end in one when that one is suspended', async () => {
    const { context } = control;
    const ended = signOutEverywhere(context.database, inTeam.userId, nowText(context));
    expect(await statusesAfter(ended)).toEqual([200, 401, 200]);
  });
});
