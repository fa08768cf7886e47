import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  hostedUser,
  outcome,
  ownerWithMember,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../../../shared/wire/channel.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { explainReply } from '../../../shared/wire/host_bindings.ts';
import { departureReply } from '../../../shared/wire/members.ts';
import { groupMembersPage, groupRecord, groupsPage } from '../../../shared/wire/sharing/groups.ts';
import { shareRecord, sharesPage } from '../../../shared/wire/sharing/shares.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let sidecar: TestSidecar;
let value: string;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  sidecar = await sidecarOf(member);
  value = `planted-${randomBytes(12).toString('hex')}`;
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

async function sidecarOf(user: HostedUser): Promise<TestSidecar> {
  const made = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await made.enrol(user.tokens.access_token);
  return made;
}

const BINDING = {
  host: 'api.example.test',
  scheme: 'bearer',
  credential_ref: 'vault://user/own-name-of-it',
  effect: 'read',
};

async function bind(user: HostedUser, change: object = {}) {
  await user.call('POST', '/v1/secrets', { path: 'user/own-name-of-it', value });
  return parseReply(hostBindingRecord, user.call('POST', '/v1/host-bindings', { ...BINDING, ...change }));
}

async function group(name = 'Data team', ...users: HostedUser[]): Promise<string> {
  const { id } = await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name }));
  for (const { caller } of users) {
    expect(await outcome(owner.call('PUT', `/v1/groups/${id}/members/${caller.userId}`))).toBe(204);
  }
  return id;
}

const share = (by: HostedUser, bindingId: string, receiver: object) =>
  by.call('POST', '/v1/shares', { binding_id: bindingId, ...receiver });
const shared = async (by: HostedUser, bindingId: string, receiver: object) =>
  parseReply(shareRecord, share(by, bindingId, receiver));
const received = async (by: HostedUser) =>
  (await parseReply(sharesPage, by.call('GET', '/v1/shares?list=received'))).items;

async function snapshot(of = sidecar) {
  const reply = await of.call('GET', '/v1/sidecar/snapshot');
  return of.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
}
async function release(path: string, of = sidecar) {
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'enterprise', path }] };
  const reply = await of.call('POST', '/v1/sidecar/credentials', { body });
  return of.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}
const pathTo = (bindingId: string) => `shared-bindings/${bindingId}/credential`;

describe('a binding that an admin shares with a group', () => {
  test('is in the policy of the people in it, whose sidecars get the credential and never its path', async () => {
    const { id } = await bind(owner);
    const groupId = await group('Data team', member);
    const before = await snapshot();
    expect(before.host_bindings).toEqual([]);
    await shared(owner, id, { group_id: groupId });
    const now = await snapshot();
    expect(now.version).toBeGreaterThan(before.version);
    const reference = `vault://${pathTo(id)}`;
    expect(now.host_bindings).toMatchObject([
      { ...BINDING, id, owner: 'enterprise', credential_ref: reference, effect: 'read' },
    ]);
    expect(now.credentials).toMatchObject([{ owner: 'enterprise', path: pathTo(id) }]);
    expect(JSON.stringify(now)).not.toContain('own-name-of-it');
    const { credentials } = await release(pathTo(id));
    expect(await sidecar.unseal(credentials[0]!.sealed)).toEqual({ value });
    expect(credentials[0]!.version).toBe(now.credentials[0]?.version);
    const { rows } = await run(`SELECT data FROM audit_events WHERE type = 'control.credential.released'`);
    expect(JSON.parse(z.string().parse(rows[0]?.['data']))).toMatchObject({
      'svc.control.credential_ref': reference,
      'svc.control.shared_by': owner.caller.userId,
    });
    const explained = member.call('POST', '/v1/host-bindings/explain', {
      method: 'GET',
      url: 'https://api.example.test/',
    });
    expect(await parseReply(explainReply, explained)).toMatchObject({
      decision: 'binding',
      bindings: [{ id, credential_stored: true }],
    });
    expect(await outcome(member.call('GET', `/v1/host-bindings/${id}`))).toBe('not_found');
    expect(await outcome(member.call('PUT', `/v1/host-bindings/${id}`, BINDING))).toBe('not_found');
  });

  test.each<[string, (ids: { share: string; group: string; binding: string }) => Promise<unknown>]>([
    ['the share ends', ({ share: id }) => owner.call('DELETE', `/v1/shares/${id}`)],
    [
      'the person leaves the group',
      ({ group: id }) => owner.call('DELETE', `/v1/groups/${id}/members/${member.caller.userId}`),
    ],
    ['the group is deleted', ({ group: id }) => owner.call('DELETE', `/v1/groups/${id}`)],
    ['the binding is deleted', ({ binding: id }) => owner.call('DELETE', `/v1/host-bindings/${id}`)],
    [
      'whoever shares it is suspended',
      () => run(`UPDATE users SET suspended_at = '2026' WHERE id = '${owner.caller.userId}'`),
    ],
    ['whoever shares it leaves', () => run(`UPDATE users SET left_at = '2026' WHERE id = '${owner.caller.userId}'`)],
  ])('is gone from the next snapshot once %s', async (_, end) => {
    const { id } = await bind(owner);
    const groupId = await group('Data team', member);
    const given = await shared(owner, id, { group_id: groupId });
    const before = await snapshot();
    expect(before.host_bindings).toHaveLength(1);
    await end({ share: given.id, group: groupId, binding: id });
    const now = await snapshot();
    expect([now.version > before.version, now.host_bindings, now.credentials]).toEqual([true, [], []]);
    expect(await release(pathTo(id))).toMatchObject({ credentials: [], missing: [{ path: pathTo(id) }] });
  });

  test('whose secret is not stored says whom to ask, and names no path of the owner', async () => {
    const { id } = await parseReply(hostBindingRecord, owner.call('POST', '/v1/host-bindings', BINDING));
    await shared(owner, id, { user_id: member.caller.userId });
    const asked = { method: 'GET', url: 'https://api.example.test/' };
    const explained = await (await member.call('POST', '/v1/host-bindings/explain', asked)).text();
    expect(explained).toContain('svc share list --received');
    expect(explained).not.toContain('own-name-of-it');
    expect(await release(pathTo(id))).toMatchObject({ credentials: [], missing: [{ path: pathTo(id) }] });
  });

  test('moves to the next policy version when its secret or the binding changes', async () => {
    const { id } = await bind(owner);
    await shared(owner, id, { user_id: member.caller.userId });
    const first = await snapshot();
    await owner.call('POST', '/v1/secrets', { path: 'user/own-name-of-it', value: `${value}-2` });
    const second = await snapshot();
    expect(second.version).toBeGreaterThan(first.version);
    expect(second.credentials[0]?.version).not.toBe(first.credentials[0]?.version);
    await owner.call('PUT', `/v1/host-bindings/${id}`, { ...BINDING, effect: 'write' });
    const third = await snapshot();
    expect(third.version).toBeGreaterThan(second.version);
    expect(third.host_bindings[0]?.effect).toBe('write');
  });
});

describe('a binding that another member shares', () => {
  test('is used by a receiver who accepted it as it is, and not after it was changed or declined', async () => {
    const other = await hostedUser(control, owner.caller.enterpriseId);
    const { id } = await bind(other);
    const given = await shared(other, id, { user_id: member.caller.userId });
    expect((await snapshot()).host_bindings).toEqual([]);
    expect((await release(pathTo(id))).credentials).toEqual([]);
    const [offered] = await received(member);
    expect(offered).toMatchObject({ id: given.id, state: 'to_accept', shared_by: { id: other.caller.userId } });
    const accept = (revision: string, by = member) =>
      outcome(by.call('POST', `/v1/shares/${given.id}/accept`, { revision }));
    expect(await accept('2020-01-01T00:00:00.000Z')).toBe('conflict');
    expect(await accept(offered!.binding?.revision ?? '', owner)).toBe('not_found');
    expect(await accept(offered!.binding?.revision ?? '')).toBe(200);
    expect((await snapshot()).host_bindings).toHaveLength(1);
    expect((await release(pathTo(id))).credentials).toHaveLength(1);
    await other.call('PUT', `/v1/host-bindings/${id}`, { ...BINDING, host: 'elsewhere.test' });
    expect((await snapshot()).host_bindings).toEqual([]);
    const [changed] = await received(member);
    expect(changed?.state).toBe('to_accept');
    expect(await accept(changed!.binding?.revision ?? '')).toBe(200);
    expect((await snapshot()).host_bindings).toMatchObject([{ host: 'elsewhere.test' }]);
    expect(await outcome(member.call('POST', `/v1/shares/${given.id}/decline`))).toBe(204);
    expect((await snapshot()).host_bindings).toEqual([]);
  });

  test('is declined, but what an admin shares is not: that stays in use, and the refusal says so', async () => {
    const { id } = await bind(owner);
    const given = await shared(owner, id, { user_id: member.caller.userId });
    const refused = await member.call('POST', `/v1/shares/${given.id}/decline`);
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('stays in use')]);
    expect((await snapshot()).host_bindings).toHaveLength(1);
  });

  test('of an admin who is one no more has to be accepted', async () => {
    const { id } = await bind(owner);
    await shared(owner, id, { user_id: member.caller.userId });
    const before = await snapshot();
    await run(`UPDATE users SET role = 'member' WHERE id = '${owner.caller.userId}'`);
    const now = await snapshot();
    expect([now.version > before.version, now.host_bindings]).toEqual([true, []]);
  });

  test('is not used while its owner’s changes have made it one that cannot be shared', async () => {
    const { id } = await bind(owner);
    await shared(owner, id, { user_id: member.caller.userId });
    const { effect: _, ...open } = BINDING;
    expect(await outcome(owner.call('PUT', `/v1/host-bindings/${id}`, open))).toBe(200);
    expect((await snapshot()).host_bindings).toEqual([]);
    expect((await release(pathTo(id))).credentials).toEqual([]);
    expect(await received(member)).toMatchObject([{ state: 'paused' }]);
    expect(await outcome(owner.call('PUT', `/v1/host-bindings/${id}`, BINDING))).toBe(200);
    expect((await snapshot()).host_bindings).toHaveLength(1);
  });

  test('gives way to the receiver’s own binding of the host', async () => {
    const { id } = await bind(owner);
    await shared(owner, id, { user_id: member.caller.userId });
    await bind(member);
    expect((await snapshot()).host_bindings).toMatchObject([{ owner: 'personal' }]);
    expect(await received(member)).toMatchObject([{ state: 'overridden' }]);
    expect((await release(pathTo(id))).credentials).toEqual([]);
  });
});

describe('nobody else', () => {
  test('of the enterprise or another one gets, sees, accepts or ends a share', async () => {
    const { id } = await bind(owner);
    const given = await shared(owner, id, { user_id: member.caller.userId });
    const stranger = await hostedUser(control);
    const colleague = await hostedUser(control, owner.caller.enterpriseId);
    const accept = { revision: given.binding?.revision };
    for (const user of [stranger, colleague]) {
      const of = await sidecarOf(user);
      expect((await snapshot(of)).host_bindings).toEqual([]);
      expect((await release(pathTo(id), of)).credentials).toEqual([]);
      expect(await received(user)).toEqual([]);
      expect(await outcome(user.call('POST', `/v1/shares/${given.id}/accept`, accept))).toBe('not_found');
      expect(await outcome(user.call('DELETE', `/v1/shares/${given.id}`))).toBe('not_found');
      expect(await outcome(share(user, id, { user_id: member.caller.userId }))).toBe('not_found');
      expect(await outcome(user.call('GET', '/v1/shares?list=all'))).toBe(user === stranger ? 200 : 'admin_required');
    }
    expect(await outcome(member.call('DELETE', `/v1/shares/${given.id}`))).toBe('not_found');
  });

  test('writes a binding of their own that refers to a shared secret', async () => {
    const { id } = await bind(owner);
    await shared(owner, id, { user_id: member.caller.userId });
    const stolen = { ...BINDING, host: 'evil.test', credential_ref: `vault://${pathTo(id)}` };
    for (const place of ['personal', 'enterprise']) {
      expect(await outcome(owner.call('POST', '/v1/host-bindings', { ...stolen, owner: place }))).toBe('invalid_input');
    }
    expect(await outcome(member.call('POST', '/v1/host-bindings', stolen))).toBe('invalid_input');
    const token = { scheme: 'sigv4-resign', access_key_id: 'AKIA', region: 'r', service: 's' };
    const signed = { ...BINDING, ...token, session_token_ref: `vault://${pathTo(id)}` };
    expect(await outcome(member.call('POST', '/v1/host-bindings', signed))).toBe('invalid_input');
    const body = {
      request_id: crypto.randomUUID(),
      reference: { owner: 'enterprise', path: pathTo(id) },
      host: 'evil.test',
      reason: 'none',
    };
    const unsealed = await (await sidecar.call('POST', '/v1/sidecar/unsealed', { body })).text();
    expect(unsealed).not.toContain(value);
  });
});

describe('who may share what with whom', () => {
  test('one’s own bindings with fixed hosts and effect, within the enterprise, once, and not with oneself', async () => {
    const stranger = await hostedUser(control);
    const { id } = await bind(member);
    const user = { user_id: owner.caller.userId };
    await run(`UPDATE users SET email = 'Boss@acme.test' WHERE id = '${owner.caller.userId}'`);
    expect(await outcome(share(owner, id, user))).toBe('not_found');
    expect(await outcome(share(member, id, { user_id: stranger.caller.userId }))).toBe('invalid_input');
    expect(await outcome(share(member, id, { user_id: member.caller.userId }))).toBe('invalid_input');
    expect(await outcome(share(member, id, { email: 'nobody@acme.test' }))).toBe('invalid_input');
    expect(await outcome(share(member, id, {}))).toBe('invalid_input');
    expect(await outcome(share(member, id, { email: 'boss@ACME.test' }))).toBe(201);
    expect(await outcome(share(member, id, user))).toBe('conflict');
    const { effect: _, ...open } = BINDING;
    const whole = await parseReply(
      hostBindingRecord,
      member.call('POST', '/v1/host-bindings', { ...open, host: 'b.test' }),
    );
    expect(await outcome(share(member, whole.id, user))).toBe('invalid_input');
    const foreign = await parseReply(groupRecord, stranger.call('POST', '/v1/groups', { name: 'Theirs' }));
    expect(await outcome(share(member, id, { group_id: foreign.id }))).toBe('invalid_input');
  });

  test('and none whose secret is borrowed, because only its owner’s machine has the value', async () => {
    const { id } = await bind(owner);
    const source = { path: 'user/own-name-of-it', source: { kind: 'borrowed' } };
    expect(await outcome(owner.call('POST', '/v1/secret-sources', source))).toBe(200);
    const refused = await share(owner, id, { user_id: member.caller.userId });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('is a borrowed secret')]);
  });
});

describe('groups', () => {
  test('are changed by admins, and seen by everybody in the enterprise and nobody else', async () => {
    const id = await group('Data team', member);
    const stranger = await hostedUser(control);
    expect(await outcome(owner.call('POST', '/v1/groups', { name: 'DATA TEAM' }))).toBe('name_taken');
    expect(await outcome(member.call('POST', '/v1/groups', { name: 'Mine' }))).toBe('admin_required');
    const calls: [string, string, unknown?][] = [
      ['PUT', `/v1/groups/${id}`, { name: 'Theirs' }],
      ['PUT', `/v1/groups/${id}/members/${member.caller.userId}`],
      ['DELETE', `/v1/groups/${id}/members/${member.caller.userId}`],
      ['DELETE', `/v1/groups/${id}`],
    ];
    for (const call of calls) {
      expect([call, await outcome(member.call(...call))]).toEqual([call, 'admin_required']);
      expect([call, await outcome(stranger.call(...call))]).toEqual([call, 'not_found']);
    }
    expect(await outcome(owner.call('PUT', `/v1/groups/${id}/members/${stranger.caller.userId}`))).toBe('not_found');
    const { items } = await parseReply(groupsPage, member.call('GET', '/v1/groups'));
    expect(items).toMatchObject([{ id, name: 'Data team', members: 1 }]);
    const people = await parseReply(groupMembersPage, member.call('GET', `/v1/groups/${id}/members`));
    expect(people.items).toEqual([{ id: member.caller.userId, display_name: 'U' }]);
    expect((await parseReply(groupsPage, stranger.call('GET', '/v1/groups'))).items).toEqual([]);
    expect(await outcome(owner.call('PUT', `/v1/groups/${id}`, { name: 'data team' }))).toBe(200);
    expect(await outcome(owner.call('PUT', `/v1/groups/${id}/members/${member.caller.userId}`))).toBe(204);
  });
});

test('a member who is removed takes what it shares along, after it was counted, and is in no group any more', async () => {
  const { id } = await bind(member);
  const groupId = await group('Data team', member, owner);
  await shared(member, id, { group_id: groupId });
  const mine = await bind(owner);
  await shared(owner, mine.id, { user_id: member.caller.userId });
  const path = `/v1/members/${member.caller.userId}`;
  expect(await parseReply(departureReply, owner.call('GET', `${path}/departure`))).toMatchObject({
    shares: 1,
    groups: 1,
  });
  expect(await outcome(owner.call('DELETE', path))).toBe(204);
  for (const table of ['shares', 'share_acceptances', 'group_members']) {
    expect([table, JSON.stringify((await run(`SELECT * FROM ${table}`)).rows)]).not.toContain(member.caller.userId);
  }
  expect((await run('SELECT * FROM shares')).rows).toEqual([]);
  const { items } = await parseReply(groupMembersPage, owner.call('GET', `/v1/groups/${groupId}/members`));
  expect(items.map((each) => each.id)).toEqual([owner.caller.userId]);
});
