import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess } from '../../e2e/runtimes/in_process.ts';
import { startHosted } from '../../e2e/runtimes/hosted_users.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { findAccount } from '../store/accounts.ts';
import { endOtherSignIns } from '../store/admitted_sign_ins.ts';
import { deleteEnterpriseOidc, setDomains } from '../store/enterprise_settings.ts';
import { listIdentityPage, removeIdentity } from './identities.ts';
import { linkIdentity, offerLink } from './linking.ts';
import { passwordIdentity } from './password_identity.ts';
import type { Identity } from './provider.ts';
import { signInIdentity } from './sign_in_identity.ts';
import { voucherOf } from './voucher.ts';

const PAT = passwordIdentity('pat@acme.test', 'Pat');
const AT_COMPANY: Identity = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
/** An account of whoever runs the company's provider. */
const MALLORY: Identity = { ...PAT, issuer: 'https://code.test', subject: '666', email: 'mallory@evil.test' };

let control: InProcess;
let company: string;
beforeEach(async () => {
  control = await startHosted();
  company = (await addUser(control.context, null)).enterpriseId;
  await run(`INSERT INTO enterprise_oidc (enterprise_id, issuer, client_id, sealed_secret, updated_at)
    VALUES ('${company}', 'https://id.acme.test', 'c', '', '2026')`);
  await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${company}', '2026')`);
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

/** The caller of a sign-in's browser session. */
async function signIn(identity: Identity, provider: string): Promise<Caller> {
  control.clock.ms += 1000;
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  if (!signedIn.ok) throw new Error(signedIn.error.code);
  const account = await findAccount(control.context.database, signedIn.value.userId);
  const { id: userId, enterpriseId, role } = account!.user;
  return { userId, enterpriseId, role, signIn: await sha256Base64Url(signedIn.value.token) };
}

async function link(caller: Caller, identity: Identity, provider: string): Promise<void> {
  const linker = { userId: caller.userId, session: caller.signIn ?? '' };
  const offered = await offerLink(control.context, linker, { provider, identity });
  const linked = offered.ok ? await linkIdentity(control.context, caller, offered.value) : offered;
  if (!linked.ok) throw new Error(linked.error.code);
}

/** Gives a person a newer user, in another enterprise. */
async function joinTeam({ userId }: Caller): Promise<Caller> {
  control.clock.ms += 1000;
  const inTeam = await addUser(control.context, null);
  await run(`UPDATE users SET person_id = (SELECT person_id FROM users WHERE id = '${userId}')
    WHERE id = '${inTeam.userId}'`);
  return inTeam;
}

async function listed(caller: Caller): Promise<{ id: string; provider: string }[]> {
  const page = await listIdentityPage(control.context, caller, { limit: 100 });
  if (!page.ok) throw new Error(page.error.code);
  return page.value.items.map(({ id, provider }) => ({ id, provider }));
}

const remove = (caller: Caller, id: string) => removeIdentity(control.context, caller, id);
const named = async (caller: Caller) => new Set((await listed(caller)).map(({ provider }) => provider));
const idOf = async (caller: Caller, by: string) =>
  (await listed(caller)).find(({ provider }) => provider === by)?.id ?? '';

test("an identity that was added in a sign-in by an enterprise's provider signs in to that enterprise alone", async () => {
  const atCompany = await signIn(AT_COMPANY, company);
  await link(atCompany, MALLORY, 'codehost');
  const byMallory = await signIn(MALLORY, 'codehost');
  expect(await voucherOf(control.context, byMallory)).toBe(company);
  await link(byMallory, { ...MALLORY, subject: '667' }, 'general');
  await joinTeam(atCompany);
  expect((await signIn(MALLORY, 'codehost')).userId).toBe(atCompany.userId);
  expect((await signIn({ ...MALLORY, subject: '667' }, 'general')).userId).toBe(atCompany.userId);
});

test("a person's own identity signs in to all, also if the enterprise's provider came first", async () => {
  const atCompany = await signIn(AT_COMPANY, company);
  const own = await signIn(PAT, 'password');
  expect([own.userId, await voucherOf(control.context, own)]).toEqual([atCompany.userId, null]);
  await link(own, MALLORY, 'codehost');
  const inTeam = await joinTeam(own);
  expect((await signIn(PAT, 'password')).userId).toBe(inTeam.userId);
  expect((await signIn(MALLORY, 'codehost')).userId).toBe(inTeam.userId);
  expect((await signIn(AT_COMPANY, company)).userId).toBe(atCompany.userId);
});

test("an identity that an enterprise vouches for sets no person's address", async () => {
  const own = await signIn({ ...MALLORY, subject: '1', emailVerified: false }, 'codehost');
  await run(`UPDATE users SET enterprise_id = '${company}' WHERE id = '${own.userId}'`);
  const inCompany = { ...own, enterpriseId: company };
  await link(inCompany, AT_COMPANY, company);
  await link(await signIn(AT_COMPANY, company), MALLORY, 'general');
  await signIn(AT_COMPANY, company);
  await signIn(MALLORY, 'general');
  const { rows } = await run(`SELECT verified_email FROM people
    WHERE id = (SELECT person_id FROM users WHERE id = '${own.userId}')`);
  expect(rows).toMatchObject([{ verified_email: null }]);
});

test("a sign-in by an enterprise's provider sees and removes only what the enterprise vouches for", async () => {
  const own = await signIn(PAT, 'password');
  await run(`UPDATE users SET enterprise_id = '${company}' WHERE id = '${own.userId}'`);
  const atCompany = await signIn(AT_COMPANY, company);
  const inCompany = { ...own, enterpriseId: company };
  await link(atCompany, MALLORY, 'codehost');
  expect(await named(inCompany)).toEqual(new Set(['password', company, 'codehost']));
  expect(await named(atCompany)).toEqual(new Set([company, 'codehost']));
  const [password, codehost] = [await idOf(inCompany, 'password'), await idOf(inCompany, 'codehost')];
  expect(await remove(atCompany, password)).toMatchObject({ error: { code: 'own_sign_in_required' } });
  const { signIn: _, ...byToken } = inCompany;
  expect(await remove(byToken, password)).toMatchObject({ error: { code: 'own_sign_in_required' } });
  expect(await remove(atCompany, codehost)).toMatchObject({ ok: true });
  expect(await remove(inCompany, password)).toMatchObject({ ok: true });
});

test('a removed identity ends only sign-ins that it could have made', async () => {
  const own = await signIn(PAT, 'password');
  await run(`UPDATE users SET enterprise_id = '${company}' WHERE id = '${own.userId}'`);
  const atCompany = await signIn(AT_COMPANY, company);
  await link(atCompany, MALLORY, 'codehost');
  const byMallory = await signIn(MALLORY, 'codehost');
  const inTeam = await joinTeam(own);
  await run(`UPDATE browser_sessions SET user_id = '${inTeam.userId}', provider = 'codehost'
    WHERE token_hash = '${own.signIn}'`);
  const codehost = await idOf(atCompany, 'codehost');
  expect(await remove(atCompany, codehost)).toMatchObject({ ok: true });
  const { rows } = await run('SELECT token_hash FROM browser_sessions');
  expect(rows.map((row) => row['token_hash'])).not.toContain(byMallory.signIn);
  expect(rows.map((row) => row['token_hash'])).toContain(own.signIn);
});

test("another enterprise's rule of domains is not met by an address that this one vouches for", async () => {
  const own = await signIn({ ...PAT, email: 'pat@home.test', subject: 'home' }, 'codehost');
  await run(`UPDATE users SET enterprise_id = '${company}' WHERE id = '${own.userId}'`);
  await link({ ...own, enterpriseId: company }, AT_COMPANY, company);
  await link(await signIn(AT_COMPANY, company), { ...MALLORY, email: 'pat@team.test' }, 'codehost');
  const inTeam = await joinTeam(own);
  await run(`UPDATE browser_sessions SET user_id = '${inTeam.userId}' WHERE token_hash = '${own.signIn}'`);
  const rules = { enterpriseId: inTeam.enterpriseId, exemptUserId: null, providers: null, except: null };
  const { database } = control.context;
  await database.write(endOtherSignIns(database, { ...rules, domains: ['team.test'] }, '2026'));
  const { rows } = await run('SELECT token_hash FROM browser_sessions');
  expect(rows.map((row) => row['token_hash'])).not.toContain(own.signIn);
});

/** As the removal of the provider leaves it: its domains are given up, with the addresses of the people it named. */
async function removeProvider(): Promise<void> {
  const { database } = control.context;
  await database.write([
    deleteEnterpriseOidc(database, company),
    ...setDomains(database, company, { all: [], proven: [], provenAt: '2026' }),
  ]);
}
const prove = (domain: string, of: string) =>
  run(`INSERT INTO enterprise_domains VALUES ('${domain}', '${of}', '2026')`);

describe('a provider that is set after another one was removed', () => {
  const ELSEWHERE = { ...AT_COMPANY, issuer: 'https://new.acme.test', subject: 'p-1' };

  test('signs in the same people by the addresses of a proven domain', async () => {
    const before = await signIn(AT_COMPANY, company);
    await removeProvider();
    await prove('acme.test', company);
    expect((await signIn(ELSEWHERE, company)).userId).toBe(before.userId);
    expect((await signIn(ELSEWHERE, company)).userId).toBe(before.userId);
  });

  test.each([
    ['an address that is not verified', { emailVerified: false }, 'acme.test'],
    ['another address', { email: 'kim@acme.test' }, 'acme.test'],
    ['a domain that is not proven again', {}, 'other.test'],
  ])('takes nobody over by %s', async (_what, change, domain) => {
    const before = await signIn(AT_COMPANY, company);
    await removeProvider();
    await prove(domain, company);
    const signedIn = await signIn({ ...ELSEWHERE, ...change }, company).catch(() => null);
    expect(signedIn?.userId).not.toBe(before.userId);
  });

  test('takes nobody over by an address that only another way to sign in named', async () => {
    const before = await signIn(AT_COMPANY, company);
    await link(before, { ...MALLORY, email: 'kim@acme.test' }, 'codehost');
    await removeProvider();
    await prove('acme.test', company);
    expect((await signIn({ ...ELSEWHERE, email: 'kim@acme.test' }, company)).userId).not.toBe(before.userId);
  });

  test('of another enterprise, which proves the domain, signs in to nobody here', async () => {
    const before = await signIn(AT_COMPANY, company);
    await removeProvider();
    const { enterpriseId: other } = await addUser(control.context, null);
    await prove('acme.test', other);
    expect((await signIn(ELSEWHERE, other)).userId).not.toBe(before.userId);
  });
});
