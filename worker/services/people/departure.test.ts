import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import {
  callAs,
  hostedUser,
  type HostedUser,
  outcome,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { departureReply, membersPage } from '../../../shared/wire/members.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import type { Caller } from '../../kernel/caller.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { acceptInvitation } from '../../sign_in/accept_invitation.ts';
import { passwordIdentity } from '../../sign_in/password_identity.ts';
import type { Identity } from '../../sign_in/provider.ts';
import { signInIdentity } from '../../sign_in/sign_in_identity.ts';
import { listMemberships } from '../../sign_in/switch_enterprise.ts';
import { findAccount } from '../../store/accounts.ts';
import { followAudit } from '../audit/audit_log.ts';
import { storeSecret } from '../vault/secrets.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);
const pathOf = ({ caller }: HostedUser) => `/v1/members/${caller.userId}`;
const remove = (by: HostedUser, of: HostedUser) => outcome(by.call('DELETE', pathOf(of)));
const put = (by: HostedUser, of: HostedUser, role: string) =>
  outcome(by.call('PUT', pathOf(of), { role, suspended: false }));

/** One of everything that a user can have. */
async function plant(user: HostedUser): Promise<void> {
  const calls: [string, unknown][] = [
    ['/v1/secrets', { path: 'user/key', value: 'value-of-a-test' }],
    ['/v1/host-bindings', { host: 'api.test', scheme: 'bearer', credential_ref: 'vault://user/key' }],
    ['/v1/tunnel-hosts', { host: 'bank.test' }],
    ['/v1/client-certificates', { host: 'mtls.test', credential_ref: 'vault://user/demo' }],
    ['/v1/connectors', ITEMS_SPEC],
    ['/v1/mcp-servers', { name: 'mine', command: ['a-server'] }],
  ];
  for (const [path, body] of calls) expect([path, (await user.call('POST', path, body)).status]).toEqual([path, 201]);
}

describe('a member who is removed', () => {
  test('takes its own things along, after they were counted, and nothing else', async () => {
    await plant(member);
    await plant(owner);
    const counted = await parseReply(departureReply, owner.call('GET', `${pathOf(member)}/departure`));
    const all = {
      secrets: 1,
      host_bindings: 1,
      tunnel_hosts: 1,
      client_certificates: 1,
      connectors: 1,
      mcp_servers: 1,
    };
    expect(counted).toEqual({ ...all, tokens: 0, sidecars: 0, sign_ins: 1, mcp_clients: 0, shares: 0, groups: 0 });
    expect(await remove(owner, member)).toBe(204);
    for (const table of [
      'secrets',
      'host_bindings',
      'tunnel_hosts',
      'client_certificates',
      'connectors',
      'mcp_servers',
    ]) {
      const { rows } = await run(`SELECT owner_id FROM ${table}`);
      expect([table, rows.map((row) => row['owner_id'])]).toEqual([table, [owner.caller.userId]]);
    }
    const tables = await run(`SELECT name FROM sqlite_master WHERE type = 'table'`);
    const leavings = [];
    for (const { name } of tables.rows) {
      const owned = await run(`SELECT * FROM "${typeof name === 'string' ? name : ''}"`);
      if (owned.columns.includes('owner_id') && JSON.stringify(owned.rows).includes(member.caller.userId)) {
        leavings.push(name);
      }
    }
    expect(leavings).toEqual([]);
    const listed = await parseReply(membersPage, owner.call('GET', '/v1/members'));
    expect(listed.items.map(({ id }) => id)).toEqual([owner.caller.userId]);
    expect(await put(owner, member, 'member')).toBe('not_found');
  });

  test('leaves no grant, view or sign-in link of its own', async () => {
    const { userId, enterpriseId } = member.caller;
    await run(`INSERT INTO sign_in_links VALUES ('h', '${userId}', 9999999999)`);
    await run(`INSERT INTO approval_views VALUES ('apv_1', 'apr_1', '${userId}', '{}', NULL, '2026')`);
    await run(`INSERT INTO approval_grants VALUES ('apg_1', '${enterpriseId}', '${userId}', 'connector', 'con_1', 'x', 'x', '1',
      'op', '', '', 0, NULL, NULL, NULL, NULL, 0, '2026', '2026', '2027', NULL, NULL, NULL, '', NULL, 0)`);
    expect(await remove(owner, member)).toBe(204);
    const { rows } = await run(`SELECT user_id FROM sign_in_links UNION ALL SELECT user_id FROM approval_views
      UNION ALL SELECT user_id FROM approval_grants`);
    expect(rows).toEqual([]);
  });

  test('is out everywhere at once, in the same write', async () => {
    const cookie = await signInBrowser(control, member.caller);
    const made = member.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
    const { token } = await parseReply(createdToken, made);
    const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
    await sidecar.enrol(member.tokens.access_token);
    expect(await remove(owner, member)).toBe(204);
    const replies = [
      await member.call('GET', '/v1/me'),
      await callAs(control, token, 'GET', '/v1/me'),
      await control.send('/v1/me', { headers: { cookie } }),
      await sidecar.call('GET', '/v1/sidecar/snapshot'),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    const { rows } = await run(`SELECT revoked_at FROM personal_tokens UNION ALL SELECT revoked_at FROM sidecars
      UNION ALL SELECT revoked_at FROM token_families WHERE user_id = '${member.caller.userId}'`);
    expect(rows.filter((row) => row['revoked_at'] === null)).toEqual([]);
  });

  test('writes nothing by a call that was authenticated before, of its own or of the enterprise', async () => {
    const admin = await hostedUser(control, owner.caller.enterpriseId);
    expect(await put(owner, admin, 'admin')).toBe(200);
    const caller: Caller = { ...admin.caller, role: 'admin' };
    await remove(owner, admin);
    for (const place of ['personal', 'enterprise'] as const) {
      const late = { path: 'user/late', value: new Secret('value-of-a-test'), owner: place };
      const stored = await storeSecret(control.context, caller, late);
      expect(stored).toMatchObject({ ok: false, error: { code: 'unauthenticated' } });
    }
    expect((await run('SELECT * FROM secrets')).rows).toEqual([]);
  });

  test('gets no more events on an open stream', async () => {
    const from = { lastPosition: 0, signal: new AbortController().signal };
    const followed = await followAudit(control.context, member.caller, { backlog: 0 }, from);
    if (!followed.ok) throw new Error(followed.error.code);
    await followed.value.next();
    await remove(owner, member);
    const seen = [];
    for await (const arrival of followed.value) seen.push(arrival?.event.type);
    expect(seen).not.toContain('control.member.removed');
  });
});

describe('who may go', () => {
  test('members by admins, admins and owners by owners, oneself always, the last owner never', async () => {
    const [admin, other] = [
      await hostedUser(control, owner.caller.enterpriseId),
      await hostedUser(control, owner.caller.enterpriseId),
    ];
    expect(await put(owner, admin, 'admin')).toBe(200);
    expect(await remove(member, other)).toBe('admin_required');
    expect(await remove(admin, owner)).toBe('admin_required');
    expect(await remove(owner, owner)).toBe('last_owner');
    expect(await outcome(member.call('GET', `${pathOf(other)}/departure`))).toBe('admin_required');
    expect(await remove(admin, other)).toBe(204);
    expect(await remove(member, member)).toBe(204);
    expect(await put(owner, admin, 'owner')).toBe(200);
    expect(await remove(owner, owner)).toBe(204);
    expect(await remove(admin, admin)).toBe('last_owner');
  });

  test('of two owners who leave at the same time, one stays', async () => {
    expect(await put(owner, member, 'owner')).toBe(200);
    const both = await Promise.all([remove(owner, owner), remove(member, member)]);
    expect(both.filter((each) => each === 204)).toHaveLength(1);
  });
});

const PAT = passwordIdentity('pat@acme.test', 'Pat');

async function signIn(identity: Identity = PAT, provider = 'password') {
  control.clock.ms += 1000;
  const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
  if (!signedIn.ok) return signedIn.error.code;
  const account = await findAccount(control.context.database, signedIn.value.userId);
  const { id: userId, enterpriseId, role } = account!.user;
  return { userId, enterpriseId, role, signIn: await sha256Base64Url(signedIn.value.token) } satisfies Caller;
}

/** Pat, a member by the proven domain, who was removed. */
async function removed(): Promise<string> {
  await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${owner.caller.enterpriseId}', '2026')`);
  const pat = await signIn();
  if (typeof pat === 'string') throw new Error(pat);
  expect(await outcome(owner.call('DELETE', `/v1/members/${pat.userId}`))).toBe(204);
  return pat.userId;
}

describe('somebody who left', () => {
  test('does not rejoin by a proven domain, and starts an enterprise of its own', async () => {
    await removed();
    const anew = await signIn();
    expect(anew).toMatchObject({ role: 'owner' });
    expect(anew).not.toMatchObject({ enterpriseId: owner.caller.enterpriseId });
    expect(await signIn()).toMatchObject({ userId: typeof anew === 'string' ? '' : anew.userId });
    const other = { ...PAT, issuer: 'https://code.test', subject: '1' };
    expect(await signIn(other, 'codehost')).toMatchObject({ userId: typeof anew === 'string' ? '' : anew.userId });
  });

  test('is the same person with another proof of its address', async () => {
    await removed();
    const other = { ...PAT, issuer: 'https://code.test', subject: '1' };
    expect(await signIn(other, 'codehost')).toMatchObject({ role: 'owner' });
    expect((await run('SELECT id FROM people WHERE verified_email IS NOT NULL')).rows).toHaveLength(1);
  });

  test("does not come back by the enterprise's provider, or by what it vouches for", async () => {
    await removed();
    const byCompany = { ...PAT, issuer: 'https://id.acme.test', subject: 'pat' };
    expect(await signIn(byCompany, owner.caller.enterpriseId)).toBe('account_unavailable');
    await run(`UPDATE identities SET vouched_by = '${owner.caller.enterpriseId}'`);
    expect(await signIn()).toBe('account_unavailable');
  });

  test('comes back as the same user by an invitation, with nothing of before', async () => {
    const userId = await removed();
    const pat = await signIn();
    if (typeof pat === 'string') throw new Error(pat);
    expect(await listMemberships(control.context, pat)).toHaveLength(1);
    const asked = await owner.call('POST', '/v1/invitations', { email: 'pat@acme.test', role: 'admin' });
    const { url } = JSON.parse(await asked.text());
    const back = await acceptInvitation(control.context, pat, String(url).split('/').at(-1) ?? '');
    expect(back).toMatchObject({ ok: true, value: { userId } });
    const { rows } = await run(`SELECT role, suspended_at, left_at, email FROM users WHERE id = '${userId}'`);
    expect(rows).toMatchObject([{ role: 'admin', suspended_at: null, left_at: null, email: 'pat@acme.test' }]);
    expect(await listMemberships(control.context, pat)).toHaveLength(2);
  });
});
