import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
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
import type { Role } from '../../../shared/model/role.ts';
import { membersPage } from '../../../shared/wire/members.ts';
import { enrolInput } from '../../../shared/wire/sidecars.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import { enrolSidecar } from '../sidecars/sidecars.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  ({ owner, member } = await ownerWithMember(control));
});
afterAll(() => control.stop());

async function grantTo({ caller: { enterpriseId, userId } }: HostedUser): Promise<void> {
  await control.context.database.client.execute(
    `INSERT INTO approval_grants VALUES ('apg_${userId}', '${enterpriseId}', '${userId}', 'connector', 'con_1', 'x', 'x', '1',
       'op', '', '', 0, NULL, NULL, NULL, NULL, 0, '2026', '2026', '2027', NULL, NULL, NULL, '', NULL, 0)`,
  );
}

const put = (by: HostedUser, of: HostedUser, role: Role, suspended = false) =>
  outcome(by.call('PUT', `/v1/members/${of.caller.userId}`, { role, suspended }));

test('members are listed only for admins of their enterprise', async () => {
  const listed = await parseReply(membersPage, owner.call('GET', '/v1/members'));
  const roles = new Map(listed.items.map(({ id, role }) => [id, role]));
  expect(roles).toEqual(
    new Map([
      [owner.caller.userId, 'owner'],
      [member.caller.userId, 'member'],
    ]),
  );
  expect((await member.call('GET', '/v1/members')).status).toBe(403);
  await put(owner, member, 'admin');
  expect((await member.call('GET', '/v1/members')).status).toBe(200);
});

test('a role change applies from the next call', async () => {
  const secret = { path: 'team/demo', value: 'v', owner: 'enterprise' };
  expect((await member.call('POST', '/v1/secrets', secret)).status).toBe(403);
  expect(await put(owner, member, 'admin')).toBe(200);
  expect((await member.call('POST', '/v1/secrets', secret)).status).toBe(201);
  expect(await put(owner, member, 'member')).toBe(200);
  expect((await member.call('POST', '/v1/secrets', secret)).status).toBe(403);
});

test('an admin manages members, but cannot appoint or change admins and owners', async () => {
  const admin = await hostedUser(control, owner.caller.enterpriseId);
  expect(await put(owner, admin, 'admin')).toBe(200);
  expect(await put(admin, member, 'member', true)).toBe(200);
  expect(await put(admin, member, 'member', false)).toBe(200);
  expect(await put(admin, member, 'admin')).toBe('admin_required');
  expect(await put(admin, admin, 'owner')).toBe('admin_required');
  expect(await put(admin, owner, 'member')).toBe('admin_required');
  expect(await put(admin, owner, 'owner', true)).toBe('admin_required');
  expect(await put(member, member, 'owner')).not.toBe(200);
});

test('an enterprise keeps at least one owner who can sign in', async () => {
  expect(await put(owner, owner, 'admin')).toBe('last_owner');
  expect(await put(owner, owner, 'owner', true)).toBe('last_owner');
  expect(await put(owner, member, 'owner')).toBe(200);
  expect(await put(owner, owner, 'admin')).toBe(200);
  expect(await put(member, member, 'member')).toBe('last_owner');
});

test('of two owners who demote each other at the same time, one stays', async () => {
  expect(await put(owner, member, 'owner')).toBe(200);
  const both = await Promise.all([put(owner, member, 'member'), put(member, owner, 'member')]);
  expect(both.filter((each) => each === 200)).toHaveLength(1);
});

test('suspending a user ends its sessions, tokens, grants and sidecars for good; a reinstated user signs in again', async () => {
  const cookie = await signInBrowser(control, member.caller);
  const made = member.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
  const { token } = await parseReply(createdToken, made);
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(member.tokens.access_token);
  await grantTo(member);
  const statuses = async () => [
    (await member.call('GET', '/v1/me')).status,
    (await callAs(control, token, 'GET', '/v1/me')).status,
    (await control.send('/v1/me', { headers: { cookie } })).status,
    (await sidecar.call('GET', '/v1/sidecar/snapshot')).status,
  ];
  expect(await statuses()).toEqual([200, 200, 200, 200]);
  expect(await put(owner, member, 'member', true)).toBe(200);
  expect(await statuses()).toEqual([401, 401, 401, 401]);
  expect(await put(owner, member, 'member', false)).toBe(200);
  // What somebody stole from the suspended user's machine stays invalid.
  expect(await statuses()).toEqual([401, 401, 401, 401]);
  const { rows } = await control.context.database.client.execute({
    sql: 'SELECT id FROM approval_grants WHERE user_id = ?',
    args: [member.caller.userId],
  });
  expect(rows).toEqual([]);
});

test('no sidecar is enrolled after its user was suspended, even by a call that was authenticated before', async () => {
  const { context } = control;
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  const keys = enrolInput.parse({ name: 'late', ...(await sidecar.publicKeys()) });
  await put(owner, member, 'member', true);
  expect(await enrolSidecar(context, member.caller, keys)).toMatchObject({ error: { code: 'unauthenticated' } });
});

test('a member of another enterprise is not found', async () => {
  const stranger = await hostedUser(control);
  expect(await put(stranger, member, 'member', true)).toBe('not_found');
  expect((await member.call('GET', '/v1/me')).status).toBe(200);
});
