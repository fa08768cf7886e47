import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostedUser, type HostedUser, outcome, ownerWithMember, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { joinOffersReply, joinRequestsPage, ownJoinRequest } from '../../shared/wire/people/join_requests.ts';
import { createdScimToken } from '../../shared/wire/scim_tokens.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { findAccount } from '../store/accounts.ts';
import { acceptRequest, askToJoin, listJoinOffers, withdrawRequest } from './join_requests.ts';
import { passwordIdentity } from './password_identity.ts';
import { signInIdentity } from './sign_in_identity.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let enterpriseId: string;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  ({ enterpriseId } = owner.caller);
});
afterEach(() => control.stop());

const run = (sql: string, args: string[] = []) => control.context.database.client.execute({ sql, args });
const prove = () => run(`INSERT INTO enterprise_domains VALUES ('acme.test', ?, '2026-01-01')`, [enterpriseId]);
const joining = (how: string) => run(`UPDATE enterprises SET domain_joining = ? WHERE id = ?`, [how, enterpriseId]);
const day = 24 * 3600 * 1000;

/** Somebody signs in by a password, which proves the address. */
async function signIn(address: string, provider = 'password'): Promise<Caller> {
  control.clock.ms += 1000;
  const identity = passwordIdentity(address, 'Pat');
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  if (!signedIn.ok) throw new Error(signedIn.error.code);
  const { user } = (await findAccount(control.context.database, signedIn.value.userId))!;
  const { id: userId, role } = user;
  return { userId, enterpriseId: user.enterpriseId, role, signIn: await sha256Base64Url(signedIn.value.token) };
}

/** Somebody who had an account before the enterprise proved the domain. */
async function early(address = 'pat@acme.test'): Promise<Caller> {
  const pat = await signIn(address);
  await prove().catch(() => null);
  return pat;
}

const offers = (who: Caller) => listJoinOffers(control.context, who);
async function ask(who: Caller, id = enterpriseId) {
  const asked = await askToJoin(control.context, who, id);
  return asked.ok ? asked.value : asked.error.code;
}
const requests = async () => (await parseReply(joinRequestsPage, owner.call('GET', '/v1/join-requests'))).items;
const decide = (id: string, how: string, by = owner, body?: object) =>
  outcome(by.call('POST', `/v1/join-requests/${id}/${how}`, body));
const open = async () => (await requests()).find(({ state }) => state === 'open')?.id ?? 'none';
const usersOf = async (who: Caller) => {
  const sql = `SELECT enterprise_id, role FROM users WHERE left_at IS NULL AND person_id = (SELECT person_id FROM users WHERE id = ?)`;
  return (await run(sql, [who.userId])).rows.map((row) => [row['enterprise_id'], row['role']]);
};

/** The refusal for an id, without the id. */
const answer = async (who: Caller, id: string) => {
  const asked = await askToJoin(control.context, who, id);
  return asked.ok ? asked : JSON.stringify(asked.error).replaceAll(id, 'ID');
};

describe('asking', () => {
  test('is offered by a proven address, listed for admins, and accepted with a role', async () => {
    const pat = await early();
    expect(await offers(pat)).toMatchObject([{ enterprise_id: enterpriseId, email: 'pat@acme.test', request: null }]);
    expect(await ask(pat)).toMatchObject({ state: 'open', enterprise_id: enterpriseId });
    expect(await requests()).toMatchObject([{ email: 'pat@acme.test', display_name: 'Pat', state: 'open' }]);
    const id = await open();
    expect(await decide(id, 'accept', member)).toBe('admin_required');
    await run(`UPDATE users SET role = 'admin' WHERE id = ?`, [member.caller.userId]);
    expect(await decide(id, 'accept', member, { role: 'owner' })).toBe('admin_required');
    expect(await decide(id, 'accept', owner, { role: 'admin' })).toBe(200);
    expect(await usersOf(pat)).toEqual(
      expect.arrayContaining([
        [pat.enterpriseId, 'owner'],
        [enterpriseId, 'admin'],
      ]),
    );
    expect(await offers(pat)).toEqual([]);
    expect(await decide(id, 'accept')).toBe('join_request_over');
    const { items } = await parseReply(auditEventsPage, owner.call('GET', '/v1/audit-events'));
    const types = ['control.join_request.created', 'control.join_request.accepted', 'control.user.created'];
    for (const type of types) expect(items.map((each) => each.type)).toContain(type);
    // The log of the enterprise names nobody of another one.
    expect(JSON.stringify(items)).not.toContain(pat.userId);
  });

  test('a declined person asks again 30 days after asking, not earlier', async () => {
    const pat = await early();
    await ask(pat);
    expect(await decide(await open(), 'decline')).toBe(200);
    expect(await ask(pat)).toBe('conflict');
    control.clock.ms += 29 * day;
    expect(await ask(await signIn('pat@acme.test'))).toBe('conflict');
    control.clock.ms += 2 * day;
    expect(await ask(await signIn('pat@acme.test'))).toMatchObject({ state: 'open' });
    expect(await usersOf(pat)).toEqual([[pat.enterpriseId, 'owner']]);
  });

  test('a request ends after 14 days, and its person may take it back and ask again', async () => {
    const pat = await early();
    const first = ownJoinRequest.parse(await ask(pat));
    expect(await ask(pat)).toBe('conflict');
    expect(await withdrawRequest(control.context, pat, first.id)).toMatchObject({ ok: true });
    expect(await decide(first.id, 'accept')).toBe('join_request_over');
    expect(await ask(pat)).toMatchObject({ state: 'open' });
    const id = await open();
    control.clock.ms += 15 * day;
    const accepted = await acceptRequest(control.context, { ...owner.caller, role: 'owner' }, id, 'member');
    expect(accepted).toMatchObject({ ok: false, error: { code: 'join_request_over' } });
    expect(await usersOf(pat)).toHaveLength(1);
  });

  test('is limited for a person and for an enterprise', async () => {
    const pat = await early();
    for (let count = 0; count < 5; count += 1) {
      const asked = ownJoinRequest.parse(await ask(pat));
      await withdrawRequest(control.context, pat, asked.id);
    }
    expect(await ask(pat)).toBe('too_many_attempts');
    const sam = await early('sam@acme.test').catch(() => null);
    expect(sam?.enterpriseId).toBe(enterpriseId);
    await run(`INSERT INTO join_requests (id, enterprise_id, person_id, email, display_name, created_at, ends_at, expires_at)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
      SELECT 'jrq_' || i, '${enterpriseId}', (SELECT min(id) FROM people), 'x', 'x', 'x', 9999999999, 9999999999 FROM n`);
    control.clock.ms += 2 * day;
    const again = await signIn('pat@acme.test');
    expect(await ask(again)).toBe('limit_reached');
  });
});

describe('what is told to whom', () => {
  test('a closed enterprise, one without the domain, and none at all are told apart by nothing', async () => {
    const pat = await early();
    const stranger = await early('pat@elsewhere.test');
    await joining('closed');
    const unknown = 'ent_00000000000000000000000000';
    const answers = [await answer(pat, enterpriseId), await answer(pat, unknown), await answer(stranger, enterpriseId)];
    expect(new Set(answers).size).toBe(1);
    expect([await offers(pat), await offers(stranger)]).toEqual([[], []]);
    expect(await requests()).toEqual([]);
  });

  test('an unproven address, and a sign-in that an enterprise vouches for, are offered nothing', async () => {
    const pat = await early();
    await run(`UPDATE identities SET email_verified = 0`);
    await run(`UPDATE people SET verified_email = NULL`);
    expect(await offers(pat)).toEqual([]);
    await run(
      `UPDATE people SET verified_email = 'pat@acme.test' WHERE id = (SELECT person_id FROM users WHERE id = ?)`,
      [pat.userId],
    );
    expect(await offers(pat)).toHaveLength(1);
    expect(await parseReply(joinOffersReply, (await hostedUser(control)).call('GET', '/v1/join-offers'))).toEqual({
      items: [],
    });
    await run(`UPDATE identities SET vouched_by = ?`, [pat.enterpriseId]);
    expect(await offers(pat)).toEqual([]);
    expect(await ask(pat)).toBe('own_sign_in_required');
  });

  test('an address, or a domain, that is no longer proven is not accepted', async () => {
    const pat = await early();
    await ask(pat);
    const id = await open();
    await run(`UPDATE people SET verified_email = NULL`);
    await run(`UPDATE identities SET email_verified = 0`);
    expect(await decide(id, 'accept')).toBe('join_request_over');
    expect(await usersOf(pat)).toHaveLength(1);
  });

  test('admins of another enterprise neither see nor decide a request', async () => {
    const pat = await early();
    await ask(pat);
    const id = await open();
    const { owner: other } = await ownerWithMember(control);
    expect((await parseReply(joinRequestsPage, other.call('GET', '/v1/join-requests'))).items).toEqual([]);
    for (const how of ['accept', 'decline']) expect(await decide(id, how, other)).toBe('not_found');
    expect(await outcome(other.call('DELETE', `/v1/join-requests/${id}`))).toBe('not_found');
  });
});

describe('the rule of the domain', () => {
  test.each([
    ['automatic', true],
    ['request', false],
    ['closed', false],
  ])('%s: somebody new joins at the first sign-in: %s', async (how, joins) => {
    await prove();
    await joining(how);
    const pat = await signIn('pat@acme.test');
    expect(pat.enterpriseId === enterpriseId).toBe(joins);
    expect((await offers(pat)).length).toBe(how === 'request' ? 1 : 0);
  });

  test('the enterprise’s own provider adds its people in any case', async () => {
    await prove();
    await joining('closed');
    expect((await signIn('pat@acme.test', enterpriseId)).enterpriseId).toBe(enterpriseId);
  });

  test('is set with the other settings, and stays if it is left out', async () => {
    const settings = {
      name: 'E',
      billing_email: null,
      allowed_domains: [],
      allowed_providers: null,
      sso_required: false,
      oidc: null,
    };
    const put = async (more: object) => (await owner.call('PUT', '/v1/enterprise', { ...settings, ...more })).json();
    expect(await put({ domain_joining: 'request' })).toMatchObject({ domain_joining: 'request' });
    expect(await put({})).toMatchObject({ domain_joining: 'request' });
  });
});

test('who asks under an address that the directory has a user for joins at once, as that user', async () => {
  const pat = await early();
  const { token } = await parseReply(createdScimToken, owner.call('POST', '/v1/scim-tokens', { name: 'Okta' }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const scim = (method: string, path: string, body?: object) =>
    control.send(`/scim/v2${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const { id } = await parseReply(z.object({ id: z.string() }), scim('POST', '/Users', { userName: 'pat@acme.test' }));
  expect(await ask(pat)).toMatchObject({ state: 'accepted' });
  expect(await usersOf(pat)).toEqual(expect.arrayContaining([[enterpriseId, 'member']]));
  const { rows } = await run(`SELECT person_id FROM users WHERE id = ?`, [id]);
  const { rows: own } = await run(`SELECT person_id FROM users WHERE id = ?`, [pat.userId]);
  expect(rows[0]!['person_id']).toBe(own[0]!['person_id']);
  // So the directory can remove whoever asked.
  expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
  expect(await usersOf(pat)).toEqual([[pat.enterpriseId, 'owner']]);
});

test('a user whom the directory renames to another’s address is not adopted by that other person', async () => {
  const mallory = await early('mallory@acme.test');
  const { token } = await parseReply(createdScimToken, owner.call('POST', '/v1/scim-tokens', { name: 'Okta' }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const scim = (method: string, path: string, body?: object) =>
    control.send(`/scim/v2${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const { id } = await parseReply(z.object({ id: z.string() }), scim('POST', '/Users', { userName: 'ivy@acme.test' }));
  // Ivy signs in by the enterprise’s provider alone.
  const ivy = await signIn('ivy@acme.test', enterpriseId);
  expect(ivy.userId).toBe(id);
  const renamed = await scim('PUT', `/Users/${id}`, { userName: 'mallory@acme.test' });
  expect(renamed.status).toBe(200);
  expect(await ask(mallory)).toMatchObject({ state: 'open' });
  expect(await usersOf(mallory)).toEqual([[mallory.enterpriseId, 'owner']]);
  expect((await signIn('ivy@acme.test', enterpriseId)).userId).toBe(id);
});

test('a user who signs in by the enterprise’s provider with the address is adopted, with that sign-in and its role', async () => {
  const pat = await early();
  const { token } = await parseReply(createdScimToken, owner.call('POST', '/v1/scim-tokens', { name: 'Okta' }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ userName: 'pat@acme.test' });
  const { id } = await parseReply(
    z.object({ id: z.string() }),
    control.send('/scim/v2/Users', { method: 'POST', headers, body }),
  );
  expect((await signIn('Pat@Acme.test', enterpriseId)).userId).toBe(id);
  await run(`UPDATE users SET role = 'owner' WHERE id = ?`, [id]);
  expect(await ask(pat)).toMatchObject({ state: 'accepted' });
  expect(await usersOf(pat)).toEqual(expect.arrayContaining([[enterpriseId, 'owner']]));
  expect((await signIn('Pat@Acme.test', enterpriseId)).userId).toBe(id);
});
