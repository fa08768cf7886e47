import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  outcome,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { createdScimToken, scimTokensPage } from '../../shared/wire/scim_tokens.ts';
import { createdToken } from '../../shared/wire/tokens.ts';
import { passwordIdentity } from '../sign_in/password_identity.ts';
import { signInIdentity } from '../sign_in/sign_in_identity.ts';
import { findAccount } from '../store/accounts.ts';

const DOMAIN = 'acme.test';
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

const resource = z.looseObject({ id: z.string(), schemas: z.array(z.string()) });
const list = z.object({ totalResults: z.number(), startIndex: z.number(), Resources: z.array(resource) });
const scimError = z.object({
  schemas: z.array(z.string()),
  status: z.string(),
  scimType: z.string().optional(),
  detail: z.string(),
});

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let token: string;

beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  await prove(DOMAIN, owner);
  token = (await newToken()).token;
});
afterEach(() => control.stop());

const run = (sql: string, args: string[] = []) => control.context.database.client.execute({ sql, args });
const prove = (domain: string, { caller }: HostedUser) =>
  run(`INSERT INTO enterprise_domains (domain, enterprise_id, proven_at) VALUES (?, ?, '2026-01-01')`, [
    domain,
    caller.enterpriseId,
  ]);
const newToken = (by = owner) => parseReply(createdScimToken, by.call('POST', '/v1/scim-tokens', { name: 'Okta' }));

/** A call of a directory. */
function scim(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  control.clock.ms += 10;
  return control.send(`/scim/v2${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function refusal(reply: Response | Promise<Response>) {
  const { status, scimType } = scimError.parse(await (await reply).json());
  return [Number(status), scimType];
}

const userOf = (name: string, more: object = {}) => ({
  schemas: [USER],
  userName: `${name}@${DOMAIN}`,
  active: true,
  ...more,
});
const createUser = (name: string, more: object = {}) =>
  parseReply(resource, scim('POST', '/Users', userOf(name, more)));
const createGroup = (displayName: string, members: string[] = []) =>
  parseReply(
    resource,
    scim('POST', '/Groups', { schemas: [GROUP], displayName, members: members.map((value) => ({ value })) }),
  );
const patch = (path: string, ...Operations: object[]) => scim('PATCH', path, { schemas: [PATCH], Operations });
const find = (path: string, filter: string) =>
  parseReply(list, scim('GET', `${path}?filter=${encodeURIComponent(filter)}`));
const events = async () => (await parseReply(auditEventsPage, owner.call('GET', '/v1/audit-events?limit=500'))).items;

/** Signs in with an address, by a way of one's own or the enterprise's provider; the code of a refusal. */
async function signIn(address: string, provider = 'password', subject = address) {
  control.clock.ms += 1000;
  const identity = { ...passwordIdentity(address, 'Somebody'), subject };
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  return signedIn.ok ? (await findAccount(control.context.database, signedIn.value.userId))! : signedIn.error.code;
}

/** The external ids of the users that a filter finds, without their beginning. */
const findIds = async (filter: string) =>
  (await find('/Users', filter)).Resources.map((each) => String(each['externalId']).slice(2));

/** What a member holds. */
async function holder(id: string) {
  await run(`UPDATE users SET email = ? WHERE id = ?`, [`m@${DOMAIN}`, id]);
  await run(`UPDATE people SET verified_email = ? WHERE id = (SELECT person_id FROM users WHERE id = ?)`, [
    `m@${DOMAIN}`,
    id,
  ]);
  expect((await createUser('m')).id).toBe(id);
  const cookie = await signInBrowser(control, member.caller);
  const pat = (
    await parseReply(createdToken, member.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] }))
  ).token;
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(member.tokens.access_token);
  return async () => ({
    program: (await member.call('GET', '/v1/me')).status,
    browser: (await control.send('/v1/me', { headers: { cookie } })).status,
    pat: (await control.send('/v1/me', { headers: { authorization: `Bearer ${pat}` } })).status,
    sidecar: (await sidecar.call('GET', '/v1/sidecar/snapshot')).status,
  });
}

describe('tokens', () => {
  test('are shown once, stored as a hash, listed with their last use, revoked, and audited', async () => {
    expect(token).toMatch(/^svc_scim_[\w-]{43}$/);
    expect((await control.databaseBytes()).includes(token)).toBe(false);
    expect((await scim('GET', '/Users')).status).toBe(200);
    await control.settle();
    const { items } = await parseReply(scimTokensPage, owner.call('GET', '/v1/scim-tokens'));
    expect(items).toMatchObject([{ name: 'Okta', created_by: owner.caller.userId, last_used_at: expect.any(String) }]);
    expect(await outcome(owner.call('DELETE', `/v1/scim-tokens/${items[0]!.id}`))).toBe(204);
    expect(await refusal(scim('GET', '/Users'))).toEqual([401, undefined]);
    expect(await outcome(owner.call('DELETE', `/v1/scim-tokens/${items[0]!.id}`))).toBe('not_found');
    const types = (await events()).map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['control.scim_token.created', 'control.scim_token.revoked']));
  });

  test('are created by owners alone, and end', async () => {
    expect(await outcome(member.call('POST', '/v1/scim-tokens', { name: 'x' }))).toBe('admin_required');
    expect(await outcome(member.call('GET', '/v1/scim-tokens'))).toBe('admin_required');
    await run(`UPDATE users SET role = 'admin' WHERE id = ?`, [member.caller.userId]);
    expect(await outcome(member.call('POST', '/v1/scim-tokens', { name: 'x' }))).toBe('admin_required');
    expect(await outcome(member.call('GET', '/v1/scim-tokens'))).toBe(200);
    control.clock.ms += 367 * 24 * 3600 * 1000;
    expect(await refusal(scim('GET', '/Users'))).toEqual([401, undefined]);
  });

  test('work at the SCIM endpoints alone, and nothing else works there', async () => {
    for (const path of ['/v1/me', '/v1/members', '/v1/scim-tokens', '/v1/secrets']) {
      const reply = await control.send(path, { headers: { authorization: `Bearer ${token}` } });
      expect([path, reply.status]).toEqual([path, 401]);
    }
    const cookie = await signInBrowser(control, owner.caller);
    const of = async (headers: Record<string, string>) => (await control.send('/scim/v2/Users', { headers })).status;
    expect(await of({ authorization: `Bearer ${owner.tokens.access_token}` })).toBe(401);
    expect(await of({ cookie })).toBe(401);
    expect(await of({})).toBe(401);
    expect(await of({ authorization: `Basic ${token}` })).toBe(401);
  });

  test('are limited in number', async () => {
    for (let count = 1; count < 5; count += 1) await newToken();
    expect(await outcome(owner.call('POST', '/v1/scim-tokens', { name: 'x' }))).toBe('limit_reached');
  });
});

describe('discovery', () => {
  test('describes the server, its resources and their schemas', async () => {
    const config = await (await scim('GET', '/ServiceProviderConfig')).json();
    expect(config).toMatchObject({ patch: { supported: true }, bulk: { supported: false }, etag: { supported: true } });
    const types = await parseReply(list, scim('GET', '/ResourceTypes'));
    expect(types.Resources).toMatchObject([
      { id: 'User', endpoint: '/Users' },
      { id: 'Group', endpoint: '/Groups' },
    ]);
    const schemas = await parseReply(list, scim('GET', '/Schemas'));
    expect(schemas.Resources.map(({ id }) => id)).toEqual([USER, GROUP]);
    expect((await scim('GET', `/Schemas/${USER}`)).status).toBe(200);
    expect(await refusal(scim('GET', '/Schemas/urn:x'))).toEqual([404, undefined]);
  });

  test('errors have the form of the RFC on every path', async () => {
    const unknown = await scim('GET', '/Nothing', undefined, { accept: 'text/html' });
    expect([unknown.status, unknown.headers.get('content-type')]).toEqual([404, 'application/scim+json']);
    expect(await refusal(unknown)).toEqual([404, undefined]);
    expect(await refusal(scim('DELETE', '/Users'))).toEqual([405, undefined]);
    expect(await refusal(scim('POST', '/Users', 'x', { 'content-type': 'text/plain' }))).toEqual([415, undefined]);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const noJson = control.send('/scim/v2/Users', { method: 'POST', headers, body: '{' });
    expect(await refusal(noJson)).toEqual([400, 'invalidSyntax']);
    expect(await refusal(scim('POST', '/Users', { ...userOf('a'), nickName: 'x'.repeat(2_000_000) }))).toEqual([
      413,
      undefined,
    ]);
  });
});

describe('users', () => {
  test('Okta provisions, finds and renames', async () => {
    const search = await find('/Users', `userName eq "anna@${DOMAIN}"`);
    expect(search).toMatchObject({ totalResults: 0, startIndex: 1, Resources: [] });
    const names = {
      name: { givenName: 'Anna', familyName: 'Ask' },
      emails: [{ primary: true, value: `anna@${DOMAIN}`, type: 'work' }],
      displayName: 'Anna Ask',
      locale: 'en-US',
      externalId: '00ujl29u0le5T6Aj10h7',
      groups: [],
      password: '1mz050nq',
    };
    const body = { ...userOf('anna'), ...names };
    const reply = await scim('POST', '/Users', body);
    expect(reply.status).toBe(201);
    const created = resource.parse(await reply.json());
    expect(reply.headers.get('location')).toBe(`https://control.example.test/scim/v2/Users/${created.id}`);
    expect(created).toMatchObject({ userName: `anna@${DOMAIN}`, name: body.name, emails: body.emails, active: true });
    expect(JSON.stringify(created)).not.toContain('1mz050nq');
    expect((await control.databaseBytes()).includes('1mz050nq')).toBe(false);
    expect(await find('/Users', `USERNAME EQ "ANNA@${DOMAIN}"`)).toMatchObject({ totalResults: 1 });
    const renamed = { ...body, id: created.id, displayName: 'Anna Bee' };
    expect(await parseReply(resource, scim('PUT', `/Users/${created.id}`, renamed))).toMatchObject({
      displayName: 'Anna Bee',
    });
    const members = await (await owner.call('GET', '/v1/members')).json();
    expect(members).toMatchObject({
      items: expect.arrayContaining([
        expect.objectContaining({ id: created.id, display_name: 'Anna Bee', role: 'member' }),
      ]),
    });
  });

  test('Entra deactivates with a string, activates, and changes single attributes', async () => {
    const { id } = await createUser('ben');
    const off = await parseReply(resource, patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' }));
    expect(off['active']).toBe(false);
    expect(await signIn(`ben@${DOMAIN}`)).toBe('account_unavailable');
    const on = await parseReply(resource, patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'True' }));
    expect(on['active']).toBe(true);
    const work = { op: 'Add', path: 'emails[type eq "work"].value', value: `benno@${DOMAIN}` };
    const title = { op: 'Add', path: `${USER}:title`, value: 'Boss' };
    expect(await parseReply(resource, patch(`/Users/${id}`, work, title))).toMatchObject({
      emails: [{ type: 'work', value: `benno@${DOMAIN}` }],
    });
    expect(await signIn(`benno@${DOMAIN}`)).toMatchObject({ user: { id } });
  });

  test('only addresses of proven domains are taken, and names are unique in whatever case', async () => {
    const elsewhere = { ...userOf('x'), userName: 'x@other.test' };
    expect(await refusal(scim('POST', '/Users', elsewhere))).toEqual([400, 'invalidValue']);
    expect(await refusal(scim('POST', '/Users', { ...userOf('x'), emails: [{ value: 'x@other.test' }] }))).toEqual([
      400,
      'invalidValue',
    ]);
    expect(await refusal(scim('POST', '/Users', { ...userOf('x'), userName: 'x' }))).toEqual([400, 'invalidValue']);
    expect(await refusal(scim('POST', '/Users', { schemas: [USER] }))).toEqual([400, 'invalidValue']);
    const { id } = await createUser('cleo');
    expect(await refusal(scim('POST', '/Users', userOf('CLEO')))).toEqual([409, 'uniqueness']);
    const other = await createUser('dora');
    expect(await refusal(scim('PUT', `/Users/${other.id}`, userOf('cleo')))).toEqual([409, 'uniqueness']);
    expect(await refusal(patch(`/Users/${id}`, { op: 'replace', path: 'userName', value: 'c@other.test' }))).toEqual([
      400,
      'invalidValue',
    ]);
    await run('DELETE FROM enterprise_domains');
    expect(await refusal(scim('POST', '/Users', userOf('eva')))).toEqual([400, 'invalidValue']);
  });

  test('lists are paged, filtered and trimmed', async () => {
    const names = ['ada', 'bob', 'cyd', 'dan', 'eve'];
    for (const name of names)
      await createUser(name, { externalId: `X-${name}`, name: { familyName: name.toUpperCase() } });
    const page = await parseReply(list, scim('GET', '/Users?startIndex=2&count=2'));
    expect(page).toMatchObject({
      totalResults: 5,
      startIndex: 2,
      Resources: [{ externalId: 'X-bob' }, { externalId: 'X-cyd' }],
    });
    expect(await parseReply(list, scim('GET', '/Users?count=0'))).toMatchObject({ totalResults: 5, Resources: [] });
    expect(await parseReply(list, scim('GET', '/Users?startIndex=-5&count=-1'))).toMatchObject({
      startIndex: 1,
      Resources: [],
    });
    expect(await refusal(scim('GET', '/Users?count=x'))).toEqual([400, 'invalidValue']);
    expect(await findIds('externalId eq "X-cyd"')).toEqual(['cyd']);
    expect(await findIds('externalId eq "x-CYD"')).toEqual([]);
    expect(await findIds('userName sw "a" or userName co "OB@"')).toEqual(['ada', 'bob']);
    expect(await findIds('name.familyName eq "eve" and active eq true')).toEqual(['eve']);
    expect(await findIds('name.givenName pr')).toEqual([]);
    expect(await findIds('not (userName sw "a") and not (externalId ew "e")')).toEqual(['bob', 'cyd', 'dan']);
    expect(await findIds('active eq "False"')).toEqual([]);
    expect(await findIds('meta.created gt "2030-01-01T00:00:00Z"')).toEqual([]);
    expect(await findIds('meta.created lt "2030-01-01T00:00:00Z" and userName ne "x"')).toEqual(names);
    expect(await findIds('emails pr')).toEqual([]);
    expect(await findIds('unknown eq "x"')).toEqual([]);
    expect(await findIds('displayName eq null')).toEqual(names);
    const trimmed = await parseReply(list, scim('GET', '/Users?attributes=userName&count=1'));
    expect(Object.keys(trimmed.Resources[0]!).toSorted()).toEqual(['id', 'meta', 'schemas', 'userName']);
  });

  test('hostile filters are refused or find nothing, and change nothing', async () => {
    await createUser('ada', { emails: [{ value: `ada@${DOMAIN}`, type: 'work' }] });
    for (const filter of [
      `userName eq "x' OR '1'='1"`,
      `userName co "%"`,
      `emails[value co "_"]`,
      `groups eq "' --"`,
    ]) {
      expect([filter, await find('/Users', filter)]).toEqual([filter, expect.objectContaining({ totalResults: 0 })]);
    }
    for (const filter of [
      'userName eq',
      "userName eq 'x'",
      'x'.repeat(3000),
      `${'('.repeat(500)}a pr`,
      'a; DROP TABLE users',
    ]) {
      expect(await refusal(scim('GET', `/Users?filter=${encodeURIComponent(filter)}`))).toEqual([400, 'invalidFilter']);
    }
    expect(await find('/Users', `emails[type eq "work" and value ew "@${DOMAIN}"]`)).toMatchObject({ totalResults: 1 });
    expect(await find('/Users', `emails.value eq "ADA@${DOMAIN}"`)).toMatchObject({ totalResults: 1 });
  });

  test('entity tags keep one change from undoing another', async () => {
    const { id } = await createUser('fay');
    const etag = (await scim('GET', `/Users/${id}`)).headers.get('etag') ?? '';
    expect(etag).toMatch(/^W\/"[\w-]{22}"$/);
    expect((await scim('GET', `/Users/${id}`, undefined, { 'if-none-match': etag })).status).toBe(304);
    const name = { ...userOf('fay'), displayName: 'Fay' };
    expect((await scim('PUT', `/Users/${id}`, name, { 'if-match': etag })).status).toBe(200);
    expect(await refusal(scim('PUT', `/Users/${id}`, userOf('fay'), { 'if-match': etag }))).toEqual([412, undefined]);
    expect(await refusal(scim('DELETE', `/Users/${id}`, undefined, { 'if-match': etag }))).toEqual([412, undefined]);
    expect((await scim('DELETE', `/Users/${id}`, undefined, { 'if-match': '*' })).status).toBe(204);
  });

  test('a change that changes nothing writes nothing', async () => {
    const { id } = await createUser('gil');
    const before = (await events()).length;
    await scim('PUT', `/Users/${id}`, userOf('gil'));
    await patch(`/Users/${id}`, { op: 'replace', value: { active: true } });
    expect(await events()).toHaveLength(before);
  });
});

describe('who a user is', () => {
  test('the first sign-in with the address is the user, by the enterprise’s provider and by a way of one’s own', async () => {
    const ann = await createUser('ann');
    const provider = owner.caller.enterpriseId;
    expect(await signIn(`ann@${DOMAIN}`, provider, 'sub-ann')).toMatchObject({ user: { id: ann.id, role: 'member' } });
    const bea = await createUser('bea');
    expect(await signIn(`bea@${DOMAIN}`)).toMatchObject({ user: { id: bea.id } });
  });

  test('an account elsewhere is not taken over, and the reply does not tell that there is one', async () => {
    const mine = await signIn(`pat@${DOMAIN}`.replace(DOMAIN, 'pats.test'));
    expect(mine).toMatchObject({ user: { role: 'owner' } });
    await prove('pats.test', owner);
    const body = { ...userOf('pat'), userName: 'pat@pats.test' };
    const taken = await scim('POST', '/Users', body);
    expect(taken.status).toBe(201);
    const made = resource.parse(await taken.json());
    const free = resource.parse(await (await scim('POST', '/Users', { ...body, userName: 'pia@pats.test' })).json());
    const shapeOf = (each: z.infer<typeof resource>) => Object.keys(each);
    expect(shapeOf(made)).toEqual(shapeOf(free));
    // The person still signs in to the own account, and the enterprise's provider reaches only the new user.
    expect(await signIn('pat@pats.test')).toMatchObject({ user: { id: typeof mine === 'string' ? '' : mine.user.id } });
    const byProvider = await signIn('pat@pats.test', owner.caller.enterpriseId, 'sub-pat');
    expect(byProvider).toMatchObject({ user: { id: made.id } });
    expect(typeof byProvider !== 'string' && typeof mine !== 'string' && byProvider.person.id !== mine.person.id).toBe(
      true,
    );
    // Removal by the directory leaves the own account alone.
    expect((await scim('DELETE', `/Users/${made.id}`)).status).toBe(204);
    expect(await signIn('pat@pats.test')).toMatchObject({ user: { suspendedAt: null } });
    expect(await signIn('pat@pats.test', owner.caller.enterpriseId, 'sub-pat')).toBe('account_unavailable');
  });

  test('a user whom somebody has signed in to does not become another’s by a new address', async () => {
    const { id } = await createUser('ivy');
    await signIn(`ivy@${DOMAIN}`, owner.caller.enterpriseId, 'sub-ivy');
    await patch(`/Users/${id}`, { op: 'replace', path: 'userName', value: `mallory@${DOMAIN}` });
    const mallory = await signIn(`mallory@${DOMAIN}`, owner.caller.enterpriseId, 'sub-mallory');
    expect(typeof mallory !== 'string' && mallory.user.id !== id).toBe(true);
    const own = await signIn(`mallory@${DOMAIN}`);
    expect(typeof own !== 'string' && own.user.id !== id).toBe(true);
    expect(await signIn(`ivy@${DOMAIN}`, owner.caller.enterpriseId, 'sub-ivy')).toMatchObject({ user: { id } });
  });

  test('a member with the proven address is linked, with the role it has; an unproven address links nobody', async () => {
    await run(`UPDATE people SET verified_email = ? WHERE id = (SELECT person_id FROM users WHERE id = ?)`, [
      `own@${DOMAIN}`,
      owner.caller.userId,
    ]);
    const linked = await createUser('own');
    expect(linked.id).toBe(owner.caller.userId);
    expect(await refusal(patch(`/Users/${linked.id}`, { op: 'replace', value: { active: false } }))).toEqual([
      409,
      undefined,
    ]);
    expect(await refusal(scim('DELETE', `/Users/${linked.id}`))).toEqual([409, undefined]);
    expect(await outcome(owner.call('GET', '/v1/me'))).toBe(200);
    await run(`UPDATE users SET email = ? WHERE id = ?`, [`m@${DOMAIN}`, member.caller.userId]);
    expect((await createUser('m')).id).not.toBe(member.caller.userId);
  });

  test('who left comes back as the same user without a role', async () => {
    const { id } = await createUser('kim');
    await signIn(`kim@${DOMAIN}`, owner.caller.enterpriseId, 'sub-kim');
    await run(`UPDATE users SET role = 'admin' WHERE id = ?`, [id]);
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    expect(await refusal(scim('GET', `/Users/${id}`))).toEqual([404, undefined]);
    expect(await signIn(`kim@${DOMAIN}`, owner.caller.enterpriseId, 'sub-kim')).toBe('account_unavailable');
    const back = await createUser('kim');
    expect(back.id).toBe(id);
    expect(await signIn(`kim@${DOMAIN}`, owner.caller.enterpriseId, 'sub-kim')).toMatchObject({
      user: { id, role: 'member' },
    });
  });
});

describe('deprovisioning', () => {
  const ENDED = { program: 401, browser: 401, pat: 401, sidecar: 401 };

  test.each([
    ['active: false', (id: string) => patch(`/Users/${id}`, { op: 'replace', value: { active: false } })],
    ['DELETE', (id: string) => scim('DELETE', `/Users/${id}`)],
  ])('%s ends sessions, tokens and sidecars at once, for good', async (_how, end) => {
    const { userId } = member.caller;
    const held = await holder(userId);
    expect(await held()).toEqual({ program: 200, browser: 200, pat: 200, sidecar: 200 });
    expect((await end(userId)).ok).toBe(true);
    expect(await held()).toEqual(ENDED);
    await createUser('m').catch(() => null);
    await patch(`/Users/${userId}`, { op: 'replace', value: { active: true } });
    expect(await held()).toEqual(ENDED);
    const changes = (await events()).filter(({ data }) => data['svc.control.scim_token'] !== undefined);
    expect(changes.map(({ type }) => type)).toContain(
      _how === 'DELETE' ? 'control.member.removed' : 'control.member.changed',
    );
  });

  test('a deactivated member is not activated by hand, and a suspension by an admin is not lifted by the directory', async () => {
    const { userId } = member.caller;
    await holder(userId);
    const byHand = (suspended: boolean) =>
      outcome(owner.call('PUT', `/v1/members/${userId}`, { role: 'member', suspended }));
    const active = async (value: boolean) =>
      (await parseReply(resource, patch(`/Users/${userId}`, { op: 'replace', value: { active: value } })))['active'];
    expect(await active(false)).toBe(false);
    expect(await byHand(false)).toBe('managed_by_directory');
    expect(await active(true)).toBe(true);
    expect(await byHand(true)).toBe(200);
    expect(await active(true)).toBe(false);
    expect(await active(false)).toBe(false);
    expect(await active(true)).toBe(false);
    expect(await byHand(false)).toBe(200);
    expect(await active(true)).toBe(true);
  });

  test('an enterprise keeps an owner, whatever two calls ask at once', async () => {
    const ids = [owner.caller.userId, member.caller.userId];
    await run(`UPDATE users SET role = 'owner' WHERE id = ?`, [member.caller.userId]);
    for (const [index, id] of ids.entries()) {
      await run(`UPDATE people SET verified_email = ? WHERE id = (SELECT person_id FROM users WHERE id = ?)`, [
        `o${index}@${DOMAIN}`,
        id,
      ]);
      expect((await createUser(`o${index}`)).id).toBe(id);
    }
    const replies = await Promise.all(ids.map((id) => scim('DELETE', `/Users/${id}`)));
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, 409]);
  });
});

describe('groups', () => {
  test('Entra and Okta create, fill, rename and delete', async () => {
    const [ada, bob] = [await createUser('ada'), await createUser('bob')];
    const { id } = await createGroup('Data', [ada.id]);
    expect(await find('/Groups', 'displayName eq "data"')).toMatchObject({
      totalResults: 1,
      Resources: [{ id, members: [{ value: ada.id }] }],
    });
    const bare = await parseReply(
      list,
      scim('GET', `/Groups?excludedAttributes=members&filter=${encodeURIComponent('displayName eq "Data"')}`),
    );
    expect(bare.Resources[0]).not.toHaveProperty('members');
    await patch(`/Groups/${id}`, { op: 'Add', path: 'members', value: [{ $ref: null, value: bob.id }] });
    expect(await find('/Groups', `id eq "${id}" and members eq "${bob.id}"`)).toMatchObject({ totalResults: 1 });
    expect(await parseReply(resource, scim('GET', `/Users/${bob.id}`))).toMatchObject({
      groups: [{ value: id, display: 'Data' }],
    });
    await patch(`/Groups/${id}`, { op: 'remove', path: `members[value eq "${ada.id}"]` });
    const renamed = await parseReply(
      resource,
      patch(`/Groups/${id}`, { op: 'replace', value: { id, displayName: 'Data 2' } }),
    );
    expect(renamed).toMatchObject({ displayName: 'Data 2', members: [{ value: bob.id, display: `bob@${DOMAIN}` }] });
    const people = await (await owner.call('GET', `/v1/groups/${id}/members`)).json();
    expect(people).toMatchObject({ items: [{ id: bob.id }] });
    expect((await scim('DELETE', `/Groups/${id}`)).status).toBe(204);
    expect(await outcome(owner.call('GET', `/v1/groups/${id}`))).toBe('not_found');
    const types = (await events()).map(({ type }) => type);
    expect(types).toEqual(
      expect.arrayContaining([
        'control.group.created',
        'control.group.member_added',
        'control.group.member_removed',
        'control.group.updated',
        'control.group.deleted',
      ]),
    );
  });

  test('are not edited by hand while a token works, and are afterwards', async () => {
    const { id } = await createGroup('Data');
    const calls = () => [
      owner.call('PUT', `/v1/groups/${id}`, { name: 'Mine' }),
      owner.call('PUT', `/v1/groups/${id}/members/${member.caller.userId}`),
      owner.call('DELETE', `/v1/groups/${id}/members/${member.caller.userId}`),
      owner.call('DELETE', `/v1/groups/${id}`),
    ];
    expect(await Promise.all(calls().map(outcome))).toEqual(Array(4).fill('managed_by_directory'));
    expect(await (await owner.call('GET', `/v1/groups/${id}`)).json()).toMatchObject({
      managed_by: 'scim',
      name: 'Data',
    });
    const { items } = await parseReply(scimTokensPage, owner.call('GET', '/v1/scim-tokens'));
    await owner.call('DELETE', `/v1/scim-tokens/${items[0]!.id}`);
    expect(await (await owner.call('GET', `/v1/groups/${id}`)).json()).toMatchObject({ managed_by: null });
    expect(await outcome(owner.call('PUT', `/v1/groups/${id}`, { name: 'Mine' }))).toBe(200);
  });

  test('those that were made by hand are neither shown nor taken over, and only the directory’s users are members', async () => {
    const { id } = z
      .object({ id: z.string() })
      .parse(await (await owner.call('POST', '/v1/groups', { name: 'By hand' })).json());
    expect(await find('/Groups', 'displayName pr')).toMatchObject({ totalResults: 0 });
    expect(await refusal(scim('POST', '/Groups', { schemas: [GROUP], displayName: 'BY HAND' }))).toEqual([
      409,
      'uniqueness',
    ]);
    for (const method of ['GET', 'DELETE'])
      expect(await refusal(scim(method, `/Groups/${id}`))).toEqual([404, undefined]);
    const group = await createGroup('Data');
    expect(
      await refusal(
        patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value: [{ value: member.caller.userId }] }),
      ),
    ).toEqual([400, 'invalidValue']);
    expect(await refusal(scim('PUT', `/Groups/${group.id}`, { displayName: 'By hand' }))).toEqual([409, 'uniqueness']);
    expect(await refusal(scim('GET', `/Users/${member.caller.userId}`))).toEqual([404, undefined]);
  });

  test('one request changes a limited number of members', async () => {
    const group = await createGroup('Data');
    const value = Array.from({ length: 1_001 }, (_, index) => ({ value: `usr_${index}` }));
    expect(await refusal(patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value }))).toEqual([
      413,
      undefined,
    ]);
  });
});

test('a directory of another enterprise sees, finds and changes nothing, and learns nothing of ids', async () => {
  const [user, group] = [await createUser('ada'), await createGroup('Data')];
  const { owner: other } = await ownerWithMember(control);
  await prove('other.test', other);
  token = (await newToken(other)).token;
  for (const path of ['/Users', '/Groups'])
    expect(await parseReply(list, scim('GET', path))).toMatchObject({ totalResults: 0 });
  const unknown = await (await scim('GET', '/Users/usr_0')).text();
  for (const path of [`/Users/${user.id}`, `/Groups/${group.id}`]) {
    const calls = [
      scim('GET', path),
      scim(
        'PUT',
        path,
        path.startsWith('/Users') ? { ...userOf('x'), userName: 'x@other.test' } : { displayName: 'x' },
      ),
      patch(path, { op: 'replace', value: { active: false } }),
      scim('DELETE', path),
    ];
    for (const call of calls) {
      const text = await (await call).text();
      expect(text.replace(path.split('/')[2]!, 'usr_0')).toBe(unknown);
    }
  }
  expect(await refusal(scim('POST', '/Users', userOf('ada')))).toEqual([400, 'invalidValue']);
  const mine = await createGroup('Mine');
  const add = { op: 'add', path: 'members', value: [{ value: user.id }] };
  expect(await refusal(patch(`/Groups/${mine.id}`, add))).toEqual([400, 'invalidValue']);
  const { rows } = await run(`SELECT suspended_at, left_at FROM users WHERE id = ?`, [user.id]);
  expect(rows).toEqual([expect.objectContaining({ suspended_at: null, left_at: null })]);
});

test('no body of a directory makes the server fail', async () => {
  const user = await createUser('ada');
  const group = await createGroup('Data', [user.id]);
  const name = fc.constantFrom(
    'userName',
    'emails',
    'members',
    'active',
    'name',
    'displayName',
    'externalId',
    'groups',
    '__proto__',
  );
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(user.id, [{ value: user.id }], { value: 1 }, 'True'),
  );
  const path = fc.oneof(
    name,
    fc.string(),
    fc.constantFrom('emails[type eq "work"].value', 'members[value pr]', 'name.x'),
  );
  const operation = fc.record(
    { op: fc.constantFrom('add', 'Replace', 'remove', 'x'), path, value },
    { requiredKeys: ['op'] },
  );
  const body = fc.oneof(
    fc.dictionary(name, value).map((part) => ({ ...userOf('ada'), displayName: 'Data', ...part })),
    fc.array(operation, { maxLength: 4 }).map((Operations) => ({ schemas: [PATCH], Operations })),
    fc.jsonValue(),
  );
  const place = fc.constantFrom(`/Users/${user.id}`, `/Groups/${group.id}`, '/Users', '/Groups');
  const call = fc.tuple(fc.constantFrom('PUT', 'PATCH', 'POST'), place, body);
  await fc.assert(
    fc.asyncProperty(call, async ([method, where, sent]) => {
      const reply = await scim(method, where, sent);
      if (!reply.ok) scimError.parse(await reply.json());
      expect(reply.status).toBeLessThan(500);
    }),
    { numRuns: 150 },
  );
  const { rows } = await run(`SELECT count(*) AS n FROM users WHERE role <> 'member' AND enterprise_id = ?`, [
    owner.caller.enterpriseId,
  ]);
  expect(rows[0]!['n']).toBe(1);
});

test('a token that is revoked while a call is under way changes nothing', async () => {
  const { database } = control.context;
  const write = database.write.bind(database);
  let isRevoked = false;
  Object.assign(control.context.database, {
    write: async (...args: Parameters<typeof database.write>) => {
      if (!isRevoked && args[0].length > 3) {
        isRevoked = true;
        await run(`UPDATE scim_tokens SET revoked_at = '2026-01-01T00:00:00.000Z'`);
      }
      return write(...args);
    },
  });
  expect(await refusal(scim('POST', '/Users', userOf('ada')))).toEqual([401, undefined]);
  expect((await run('SELECT * FROM scim_users')).rows).toEqual([]);
});
