import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hostedUser, type HostedUser, outcome, ownerWithMember, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { removeMember } from '../services/people/departure.ts';
import { storeSecret } from '../services/vault/secrets.ts';
import { findAccount } from '../store/accounts.ts';
import { acceptInvitation } from './accept_invitation.ts';
import { describeAccountDeletion, removeAccount } from './account_deletion.ts';
import { passwordIdentity } from './password_identity.ts';
import type { Identity } from './provider.ts';
import { signInIdentity } from './sign_in_identity.ts';

const PAT = passwordIdentity('pat@acme.test', 'Pat Testperson');

let control: InProcess;
let owner: HostedUser;
let team: string;
beforeEach(async () => {
  control = await startHosted();
  ({ owner } = await ownerWithMember(control));
  team = owner.caller.enterpriseId;
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);
const joinTeam = () => run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${team}', '2026')`);
const code = async (result: Promise<{ ok: boolean }>): Promise<unknown> => {
  const answered: { ok: boolean; error?: { code: string } } = await result;
  return answered.ok ? 'done' : answered.error?.code;
};
const remove = (caller: Caller, confirm = PAT.email) => code(removeAccount(control.context, caller, confirm));

async function trySignIn(identity: Identity = PAT, provider = 'password'): Promise<Caller | string> {
  control.clock.ms += 1000;
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  if (!signedIn.ok) return signedIn.error.code;
  const account = await findAccount(control.context.database, signedIn.value.userId);
  const { id: userId, enterpriseId, role } = account!.user;
  return { userId, enterpriseId, role, signIn: await sha256Base64Url(signedIn.value.token) };
}

async function signIn(identity?: Identity, provider?: string): Promise<Caller> {
  const caller = await trySignIn(identity, provider);
  if (typeof caller === 'string') throw new Error(caller);
  return caller;
}

/** Accepts an invitation of the team. */
async function accept(caller: Caller) {
  control.clock.ms += 1000;
  const asked = await owner.call('POST', '/v1/invitations', { email: PAT.email });
  const { url } = JSON.parse(await asked.text());
  const accepted = await acceptInvitation(control.context, caller, String(url).split('/').at(-1) ?? '');
  if (!accepted.ok) throw new Error(accepted.error.code);
  return accepted.value.userId;
}

/** The tables that have a text anywhere, apart from the audit log. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows } = await run(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`);
  const found: string[] = [];
  for (const row of rows) {
    const name = JSON.stringify(row['name']);
    if (JSON.stringify((await run(`SELECT * FROM ${name}`)).rows).includes(text)) found.push(name.replaceAll('"', ''));
  }
  return found;
}

const storeKey = (caller: Caller) =>
  storeSecret(control.context, caller, { path: 'user/key', value: new Secret('value-of-a-test'), owner: 'personal' });

/** Runs something between what the next write was decided on and the write. */
function beforeFirstWrite(change: () => Promise<unknown>): void {
  const { database } = control.context;
  const write = database.write.bind(database);
  Object.assign(database, {
    write: async (statements: Parameters<typeof write>[0]) => {
      Object.assign(database, { write });
      await change();
      return write(statements);
    },
  });
}

describe('an account that is deleted', () => {
  test('leaves its enterprise, and nothing says whose it was', async () => {
    await joinTeam();
    const pat = await signIn();
    await storeKey(pat);
    await run(`INSERT INTO passwords VALUES ('${PAT.email}', 'x', '2026')`);
    const described = await describeAccountDeletion(control.context, pat);
    expect(described).toMatchObject({
      value: { confirm: PAT.email, deletes_enterprise: false, secrets: 1, sign_ins: 1 },
    });
    expect(await remove(pat, 'other@acme.test')).toBe('not_confirmed');
    expect(await remove(pat)).toBe('done');
    expect([await tablesWith(PAT.email), await tablesWith('Pat Testperson')]).toEqual([[], []]);
    expect(await tablesWith('user/key')).toEqual(['audit_events']);
    const users = await run(
      `SELECT left_at, suspended_at FROM users WHERE id = '${pat.userId}' AND left_at IS NOT NULL`,
    );
    expect(users.rows).toHaveLength(1);
    const events = await run(
      `SELECT type FROM audit_events WHERE enterprise_id = '${team}' ORDER BY position DESC LIMIT 2`,
    );
    expect(events.rows.map(({ type }) => type)).toEqual(['control.user.deleted', 'control.member.left']);
    expect((await owner.call('GET', '/v1/me')).status).toBe(200);
  });

  test('takes its enterprise along if nobody else is in it', async () => {
    const pat = await signIn();
    await storeKey(pat);
    expect(await describeAccountDeletion(control.context, pat)).toMatchObject({ value: { deletes_enterprise: true } });
    expect(await remove(pat)).toBe('done');
    const { rows } = await run(`SELECT deleted_at FROM enterprises WHERE id = '${pat.enterpriseId}'`);
    expect([rows[0]?.['deleted_at'], await tablesWith(PAT.email)]).toEqual([expect.any(String), []]);
    expect(await signIn()).not.toMatchObject({ userId: pat.userId });
  });

  test('leaves an enterprise that suspended it, too', async () => {
    const pat = await signIn();
    const inTeam = await accept(pat);
    await run(`UPDATE users SET suspended_at = '2026' WHERE id = '${inTeam}'`);
    expect(await remove(pat)).toBe('done');
    const { rows } = await run(`SELECT left_at, display_name FROM users WHERE id = '${inTeam}'`);
    expect(rows).toMatchObject([{ left_at: expect.any(String), display_name: 'Deleted user' }]);
    const events = await run(
      `SELECT type FROM audit_events WHERE enterprise_id = '${team}' ORDER BY position DESC LIMIT 1`,
    );
    expect(events.rows).toMatchObject([{ type: 'control.member.left' }]);
    const verified = await owner.call('GET', '/v1/audit-events/verify');
    expect(await verified.json()).toMatchObject({ ok: true });
  });

  test.each([
    ['somebody joined its enterprise', 'last_owner', (pat: Caller) => hostedUser(control, pat.enterpriseId)],
    [
      'the suspension of the other one ended',
      'other_enterprises',
      () => run(`UPDATE users SET suspended_at = NULL WHERE left_at IS NULL`),
    ],
  ])('stays whole, with what it has where it is suspended, if meanwhile %s', async (_, refusal, change) => {
    const pat = await signIn();
    const inTeam = await accept(pat);
    const there = { ...pat, userId: inTeam, enterpriseId: team, role: 'member' as const };
    await storeKey(there);
    await run(`UPDATE users SET suspended_at = '2026' WHERE id = '${inTeam}'`);
    beforeFirstWrite(() => change(pat));
    expect(await remove(pat)).toBe(refusal);
    const { rows } = await run(`SELECT left_at, display_name FROM users WHERE id IN ('${inTeam}', '${pat.userId}')`);
    expect(rows.map((row) => [row['left_at'], row['display_name']])).toEqual([
      [null, 'Pat Testperson'],
      [null, 'Pat Testperson'],
    ]);
    expect((await run(`SELECT path FROM secrets WHERE owner_id = '${inTeam}'`)).rows).toMatchObject([
      { path: 'user/key' },
    ]);
  });

  test('does not come back to what it left, by the domain or the provider, but by an invitation', async () => {
    await joinTeam();
    const before = await signIn();
    expect(await code(removeMember(control.context, before, before.userId))).toBe('done');
    expect(await remove(await signIn())).toBe('done');
    const byCompany = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
    expect(await trySignIn(byCompany, team)).toBe('account_unavailable');
    const anew = await signIn();
    expect(anew).toMatchObject({ role: 'owner' });
    await accept(anew);
    await run(`UPDATE users SET left_at = '2026' WHERE enterprise_id <> '${team}'`);
    await run(`DELETE FROM identities`);
    await run(`UPDATE people SET verified_email = NULL`);
    expect(await signIn()).toMatchObject({ enterpriseId: team });
  });
});

describe('an account is not deleted', () => {
  test('by a sign-in of an enterprise, a personal token, or on a machine of one person', async () => {
    await joinTeam();
    const pat = await signIn();
    const byCompany = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
    expect(await remove(await signIn(byCompany, team))).toBe('own_sign_in_required');
    const { signIn: _, ...byToken } = pat;
    expect(await remove(byToken)).toBe('own_sign_in_required');
    const hosted = await hostedUser(control);
    expect(await outcome(hosted.call('DELETE', '/v1/me?confirm=x'))).toBe('own_sign_in_required');
    expect(await outcome(hosted.call('GET', '/v1/me/deletion'))).toBe('own_sign_in_required');
    expect(await outcome(hosted.call('DELETE', '/v1/me'))).toBe('invalid_query');
  });

  test('while it is in another enterprise, or is the last owner of one with others in it', async () => {
    const pat = await signIn();
    const inTeam = await accept(pat);
    expect(await remove(pat)).toBe('other_enterprises');
    await run(`UPDATE users SET left_at = '2026', suspended_at = '2026' WHERE id = '${inTeam}'`);
    await hostedUser(control, pat.enterpriseId);
    expect(await remove(pat)).toBe('last_owner');
    expect(await trySignIn()).toMatchObject({ userId: pat.userId });
  });

  test('with an enterprise that somebody joined meanwhile', async () => {
    const pat = await signIn();
    beforeFirstWrite(() => hostedUser(control, pat.enterpriseId));
    expect(await remove(pat)).toBe('last_owner');
  });
});
