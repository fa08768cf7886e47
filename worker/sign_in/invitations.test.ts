import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { PUBLIC_URL } from '../../e2e/runtimes/hosted_users.ts';
import { ok } from '../../shared/model/result.ts';
import { invitationInput } from '../../shared/wire/invitations.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { findAccount } from '../store/accounts.ts';
import { verifyAccessToken } from '../tokens/access_tokens.ts';
import { newProgramSignIn } from '../tokens/program_sign_ins.ts';
import { switchProgram } from '../tokens/switch_program.ts';
import { acceptInvitation, openInvitation } from './accept_invitation.ts';
import { createInvitation, listInvitationPage, revokeInvitation } from './invitations.ts';
import { passwordIdentity } from './password_identity.ts';
import { signInIdentity } from './sign_in_identity.ts';
import { listMemberships, switchEnterprise } from './switch_enterprise.ts';

const PAT = passwordIdentity('pat@home.test', 'Pat');

let control: InProcess;
let context: ProgramContext;
let mails: { to: string; text: string }[];
let owner: Caller;
beforeEach(async () => {
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL });
  mails = [];
  const mail = { send: async (sent: { to: string; text: string }) => (mails.push(sent), ok(undefined)) };
  context = { ...control.context, signIn: { ...control.context.signIn, mail } };
  owner = { ...(await addUser(context, null)), role: 'owner' };
  await run(`UPDATE users SET role = 'owner' WHERE id = '${owner.userId}'`);
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

async function signIn(identity = PAT, provider = 'password'): Promise<Caller> {
  control.clock.ms += 1000;
  const signedIn = await signInIdentity(context, identity, { provider, client: '' });
  if (!signedIn.ok) throw new Error(signedIn.error.code);
  const account = await findAccount(context.database, signedIn.value.userId);
  const { id: userId, enterpriseId, role } = account!.user;
  return { userId, enterpriseId, role, signIn: await sha256Base64Url(signedIn.value.token) };
}

async function invite(change: object = {}, by = owner) {
  const input = invitationInput.parse({ email: 'Pat@home.test', ...change });
  return createInvitation(context, by, input);
}

/** The token of a new invitation. */
async function invited(change: object = {}): Promise<string> {
  const created = await invite(change);
  if (!created.ok) throw new Error(created.error.code);
  return created.value.url.split('/').at(-1) ?? '';
}

function accept(by: Caller, token: string) {
  control.clock.ms += 1000;
  return acceptInvitation(context, by, token);
}
const refused = (code: string) => ({ ok: false, error: { code } });

describe('an invitation', () => {
  test('is mailed, and gives the person of the address a second user, once', async () => {
    const pat = await signIn();
    const token = await invited({ role: 'admin' });
    expect(mails).toMatchObject([{ to: 'pat@home.test', text: expect.stringContaining(`/invitations/${token}`) }]);
    expect(await openInvitation(context, token)).toMatchObject({ value: { enterprise: 'E', inviter: 'U' } });
    const accepted = await accept(pat, token);
    expect(accepted).toMatchObject({ ok: true, value: { enterpriseId: owner.enterpriseId } });
    const { rows } = await run(`SELECT role, email FROM users WHERE enterprise_id = '${owner.enterpriseId}' AND
      person_id = (SELECT person_id FROM users WHERE id = '${pat.userId}')`);
    expect(rows).toMatchObject([{ role: 'admin', email: 'pat@home.test' }]);
    expect(await accept(pat, token)).toMatchObject(refused('invitation_over'));
    expect(await accept(pat, await invited())).toMatchObject(refused('already_member'));
  });

  test('makes no link, and no line, of the names that its mail has', async () => {
    await run(
      `UPDATE enterprises SET name = 'https://evil.test/x' || char(10) || 'y' WHERE id = '${owner.enterpriseId}'`,
    );
    await invited();
    expect(mails[0]?.text.split('\n')[0]).toContain('invites you to https[:]//evil[.]test/x y on svc');
  });

  test('is accepted by one of two calls at the same time', async () => {
    const pat = await signIn();
    const token = await invited();
    const both = await Promise.all([accept(pat, token), accept(pat, token)]);
    expect(both.filter(({ ok: isOk }) => isOk)).toHaveLength(1);
  });

  test('is stored without its token', async () => {
    const token = await invited();
    const { rows } = await run('SELECT * FROM invitations');
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  test('is for the invited address only, proven by an own sign-in', async () => {
    await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${owner.enterpriseId}', '2026')`);
    const other = (await addUser(context, null)).enterpriseId;
    await run(`UPDATE enterprise_domains SET enterprise_id = '${other}'`);
    const token = await invited();
    const mallory = await signIn(passwordIdentity('mallory@evil.test', 'Mallory'));
    expect(await accept(mallory, token)).toMatchObject(refused('invitation_for_another'));
    const claims = { ...PAT, issuer: 'https://code.test', subject: '1', emailVerified: false };
    expect(await accept(await signIn(claims, 'codehost'), token)).toMatchObject(refused('invitation_for_another'));
    const ofCompany = { ...PAT, issuer: 'https://id.acme.test', subject: 'x', email: 'pat@acme.test' };
    const byCompany = await signIn(ofCompany, other);
    const work = await invited({ email: 'pat@acme.test' });
    expect(await accept(byCompany, work)).toMatchObject(refused('own_sign_in_required'));
    const { signIn: _, ...byToken } = await signIn();
    expect(await accept(byToken, token)).toMatchObject(refused('own_sign_in_required'));
    expect(await accept(await signIn(), token)).toMatchObject({ ok: true });
  });

  test.each([
    ['it has expired', async () => void (control.clock.ms += 8 * 24 * 3_600_000)],
    ['it was revoked', () => run(`UPDATE invitations SET outcome = 'revoked'`)],
    ['whoever invited is suspended', () => run(`UPDATE users SET suspended_at = '2026' WHERE id = '${owner.userId}'`)],
    ['whoever invited may no longer', () => run(`UPDATE users SET role = 'member' WHERE id = '${owner.userId}'`)],
  ])('is over once %s', async (_, end) => {
    const token = await invited();
    await end();
    expect(await openInvitation(context, token)).toMatchObject(refused('invitation_over'));
    expect(await accept(await signIn(), token)).toMatchObject(refused('invitation_over'));
  });

  test('is replaced by a new one of the same address, and revoked by an admin', async () => {
    const [first, second] = [await invited(), await invited()];
    expect(await openInvitation(context, first)).toMatchObject(refused('invitation_over'));
    const listed = await listInvitationPage(context, owner, { limit: 10 });
    const items = listed.ok ? listed.value.items : [];
    expect(items.map(({ state }) => state).toSorted()).toEqual(['open', 'revoked']);
    const open = items.find(({ state }) => state === 'open')?.id ?? '';
    expect(await revokeInvitation(context, await signIn(), open)).toMatchObject(refused('not_found'));
    expect(await revokeInvitation(context, { ...owner, role: 'member' }, open)).toMatchObject(
      refused('admin_required'),
    );
    expect(await revokeInvitation(context, owner, open)).toMatchObject({ ok: true });
    expect(await openInvitation(context, second)).toMatchObject(refused('invitation_over'));
    expect(await revokeInvitation(context, owner, open)).toMatchObject(refused('invitation_over'));
  });

  test('is created by admins, and with a higher role by owners', async () => {
    expect(await invite({}, { ...owner, role: 'member' })).toMatchObject(refused('admin_required'));
    expect(await invite({ role: 'admin' }, { ...owner, role: 'admin' })).toMatchObject(refused('admin_required'));
    expect(await invite({}, { ...owner, role: 'admin' })).toMatchObject({ ok: true });
    await run(`UPDATE enterprises SET allowed_domains = '["acme.test"]'`);
    expect(await invite()).toMatchObject(refused('domain_not_allowed'));
  });

  test('to one address is limited', async () => {
    for (let sent = 0; sent < 5; sent += 1) expect(await invite()).toMatchObject({ ok: true });
    expect(await invite()).toMatchObject(refused('too_many_attempts'));
  });
});

const use = (by: Caller, enterpriseId: string) => switchEnterprise(context, by, { enterpriseId, client: '' });

describe('a browser', () => {
  test('is switched to another enterprise of its person, and is signed out of the first', async () => {
    const pat = await signIn();
    await accept(pat, await invited());
    expect(await listMemberships(context, pat)).toMatchObject([{ current: false, role: 'member' }, { current: true }]);
    const switched = await use(pat, owner.enterpriseId);
    const userId = switched.ok ? switched.value.userId : '';
    expect((await findAccount(context.database, userId))?.enterprise.id).toBe(owner.enterpriseId);
    expect(await use(pat, owner.enterpriseId)).toMatchObject(refused('not_found'));
    const { rows } = await run('SELECT user_id FROM browser_sessions');
    expect(rows).toMatchObject([{ user_id: userId }]);
  });

  test("is not switched against the other enterprise's rules, or to one where its person has no user", async () => {
    const pat = await signIn();
    expect(await use(pat, owner.enterpriseId)).toMatchObject(refused('not_found'));
    await accept(pat, await invited());
    await run(`UPDATE enterprises SET sso_required = 1 WHERE id = '${owner.enterpriseId}'`);
    expect(await use(pat, owner.enterpriseId)).toMatchObject(refused('sso_required'));
    await run(`UPDATE enterprises SET sso_required = 0`);
    await run(`UPDATE users SET suspended_at = '2026' WHERE enterprise_id = '${owner.enterpriseId}'`);
    expect(await use(pat, owner.enterpriseId)).toMatchObject(refused('account_unavailable'));
  });

  test("is not switched, and sees one enterprise, if an enterprise's provider vouches for it", async () => {
    const pat = await signIn();
    await accept(pat, await invited());
    const identity = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
    const byCompany = await signIn(identity, owner.enterpriseId);
    expect(await listMemberships(context, byCompany)).toMatchObject([{ id: owner.enterpriseId, current: true }]);
    expect(await use(byCompany, pat.enterpriseId)).toMatchObject(refused('not_found'));
  });
});

test('a program is signed in to another enterprise of its person, by the same way', async () => {
  const pat = await signIn();
  await accept(pat, await invited());
  const account = await findAccount(context.database, pat.userId);
  const made = await newProgramSignIn(context, account!, { client: 'svc on laptop', provider: 'password' });
  if (!made.ok) throw new Error(made.error.code);
  await context.database.write(made.value.statements);
  const program = { ...pat, signIn: made.value.family.id };
  const switched = await switchProgram(context, program, owner.enterpriseId);
  const claims = switched.ok ? await verifyAccessToken(context, switched.value.access_token) : null;
  expect((await findAccount(context.database, claims?.sub ?? ''))?.enterprise.id).toBe(owner.enterpriseId);
  const { signIn: _, ...byToken } = pat;
  expect(await switchProgram(context, byToken, owner.enterpriseId)).toMatchObject(refused('not_found'));
  await run(`UPDATE enterprises SET sso_required = 1 WHERE id = '${owner.enterpriseId}'`);
  expect(await switchProgram(context, program, owner.enterpriseId)).toMatchObject(refused('sso_required'));
});
