import { getTableColumns } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC, itemsSpec } from '../e2e/runtimes/connector_samples.ts';
import {
  callAs,
  type HostedUser,
  hostedUser,
  outcome,
  ownerWithMember,
  signInProgram,
  startHosted,
} from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { grantsPage } from '../shared/wire/approval_grants.ts';
import { approvalPayload, approvalRecord, approvalsPage } from '../shared/wire/approvals.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { APPROVAL_TYP } from '../shared/wire/channel.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { mcpServerRecord } from '../shared/wire/mcp/mcp_servers.ts';
import { approvalRuleRecord, approvalRulesPage } from '../shared/wire/people/approval_rules.ts';
import { groupRecord } from '../shared/wire/sharing/groups.ts';
import { createdToken } from '../shared/wire/tokens.ts';
import { addApprovalRule, removeApprovalRule } from './services/approvals/approval_rules.ts';
import { decideApproval } from './services/approvals/approvals.ts';
import { approvalGrants } from './store/tables.ts';

let control: InProcess;
let owner: HostedUser;
let requester: HostedUser;
let anna: HostedUser;
let ben: HostedUser;
let sidecar: TestSidecar;
let connectorId = '';
let groupId = '';

beforeEach(async () => {
  control = await startHosted();
  ({ owner, member: requester } = await ownerWithMember(control));
  anna = await hostedUser(control, owner.caller.enterpriseId);
  ben = await hostedUser(control, owner.caller.enterpriseId);
  sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(requester.tokens.access_token);
  const installed = owner.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC);
  connectorId = (await parseReply(installReply, installed)).id;
  groupId = (await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name: 'Payments' }))).id;
  for (const { caller } of [anna, ben, requester]) await putInGroup(caller.userId);
});
afterEach(() => control.stop());

const putInGroup = (user: string) => owner.call('PUT', `/v1/groups/${groupId}/members/${user}`);
const takeOut = (user: string) => owner.call('DELETE', `/v1/groups/${groupId}/members/${user}`);
const suspend = (user: string) => owner.call('PUT', `/v1/members/${user}`, { role: 'member', suspended: true });
const addRule = async (input: object = {}) =>
  parseReply(
    approvalRuleRecord,
    owner.call('POST', '/v1/approval-rules', { subject: 'connector', group_id: groupId, persons: 2, ...input }),
  );
let asked = 0;
const request = (more: object = {}) => ({
  request_id: crypto.randomUUID(),
  connector_id: connectorId,
  operation: 'delete-item',
  fingerprint: String((asked += 1)).padStart(64, '0'),
  summary: 'Items: delete (id "7")',
  session_id: 'ses_1',
  scope: '5'.repeat(64),
  ...more,
});
const ask = async (body: object) =>
  sidecar.verify(
    await (await sidecar.call('POST', '/v1/sidecar/approvals', { body })).text(),
    APPROVAL_TYP,
    approvalPayload,
  );
const wait = async ({ id, requestId }: Asked) =>
  sidecar.verify(
    await (await sidecar.call('GET', `/v1/sidecar/approvals/${id}?wait=0&request_id=${requestId}`)).text(),
    APPROVAL_TYP,
    approvalPayload,
  );
interface Asked {
  readonly id: string;
  readonly requestId: string;
}
async function askOne(more: object = {}): Promise<Asked> {
  const body = request(more);
  return { id: (await ask(body)).approval_id, requestId: body.request_id };
}
const decide = (user: HostedUser, { id }: Pick<Asked, 'id'>, body: object = { decision: 'approve' }) =>
  user.call('POST', `/v1/approvals/${id}/decide`, body);
const approve = (user: HostedUser, one: Pick<Asked, 'id'>, grant?: object) =>
  outcome(decide(user, one, { decision: 'approve', ...(grant && { grant }) }));
const read = (user: HostedUser, { id }: Asked) => parseReply(approvalRecord, user.call('GET', `/v1/approvals/${id}`));
const listed = async (user: HostedUser) =>
  (await parseReply(approvalsPage, user.call('GET', '/v1/approvals?state=pending'))).items;
const restore = () => owner.call('PUT', `/v1/members/${anna.caller.userId}`, { role: 'member', suspended: false });
const listedAll = async (user: HostedUser) =>
  (await parseReply(approvalsPage, user.call('GET', '/v1/approvals'))).items.map(({ id }) => id);
const grantsOf = async (user: HostedUser) =>
  (await parseReply(grantsPage, user.call('GET', '/v1/approval-grants'))).items.map(({ id }) => id);
const install = (version: string, effect: string) => {
  const operations = ITEMS_SPEC.operations.map((each) => (each.name === 'delete-item' ? { ...each, effect } : each));
  return owner.call('POST', '/v1/connectors?owner=enterprise', itemsSpec(version, { operations }));
};
const ownersGrants = async () => (await parseReply(grantsPage, owner.call('GET', '/v1/approval-grants'))).items;
const removeRule = async (id: string) =>
  expect((await owner.call('DELETE', `/v1/approval-rules/${id}`)).status).toBe(204);
const events = async (type: string) =>
  (await parseReply(auditEventsPage, owner.call('GET', `/v1/audit-events?type=${type}`))).items;
const run = (sql: string) => control.context.database.client.execute(sql);
/** A rule as an earlier worker writes it, which knows of nothing that ends with one. */
const earlierRule = (name: string) =>
  run(`INSERT INTO approval_rules (id, enterprise_id, subject, name, action, role, persons, excludes_requester, created_at)
    VALUES ('apu_earlier', '${owner.caller.enterpriseId}', 'connector', '${name}', '*', 'owner', 1, 0, '2026')`);
const upAndDown = async () => {
  expect((await install('99.0.0', 'delete')).ok).toBe(true);
  expect((await owner.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC)).ok).toBe(true);
};
const askThree = async () =>
  [await askOne(), await askOne({ session_id: 'ses_2' }), await askOne({ session_id: 'ses_3' })] as const;

describe('a rule that needs two persons', () => {
  test('lets the request through after the second, and the log names both', async () => {
    const rule = await addRule();
    const one = await askOne();
    expect(await approve(anna, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    expect(await read(ben, one)).toMatchObject({
      state: 'pending',
      may_approve: true,
      needs: [{ rule_id: rule.id, group_name: 'Payments', persons: 2, given: 1, missing: 1 }],
      votes: [{ user_id: anna.caller.userId, grant: null }],
    });
    expect(await events('connector.approval.partly_approved')).toMatchObject([
      {
        actor: anna.caller.userId,
        data: { 'svc.approval.id': one.id, 'svc.approval.missing': 1, 'svc.approval.rules': [rule.id] },
      },
    ]);
    expect(await approve(ben, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
    const [decided] = await events('connector.approval.decided');
    expect(decided).toMatchObject({ actor: ben.caller.userId, data: { 'svc.approval.decision': 'approve' } });
    expect(new Set(decided?.data['svc.approval.approvers'])).toEqual(new Set([anna.caller.userId, ben.caller.userId]));
  });

  test('counts a person once, and says it once', async () => {
    await addRule();
    const one = await askOne();
    expect([await approve(anna, one), await approve(anna, one)]).toEqual([200, 200]);
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    expect(await events('connector.approval.partly_approved')).toHaveLength(1);
  });

  test('counts each once if they approve at the same moment', async () => {
    await addRule();
    const one = await askOne();
    await Promise.all([approve(anna, one), approve(anna, one), approve(anna, one)]);
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    await Promise.all([approve(anna, one), approve(ben, one)]);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });

  test('never counts the person whose agent asks, who may only deny', async () => {
    await addRule();
    const one = await askOne();
    expect(await read(requester, one)).toMatchObject({ may_approve: false });
    const { error } = errorBody.parse(await (await decide(requester, one)).json());
    expect(error).toMatchObject({ code: 'approver_required', details: { needs: [{ group_name: 'Payments' }] } });
    expect(error.message).toContain('needs 2 more persons of the group Payments, not the one who asks');
    await approve(anna, one);
    expect(await approve(requester, one)).toBe('approver_required');
    expect(await outcome(decide(requester, one, { decision: 'deny' }))).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'denied' });
  });

  test('does not count an owner who is not in the group, although it may see the request', async () => {
    await addRule();
    const one = await askOne();
    expect(await approve(owner, one)).toBe('approver_required');
    await approve(anna, one);
    expect(await approve(owner, one)).toBe('approver_required');
    expect(await outcome(decide(owner, one, { decision: 'deny' }))).toBe(200);
  });

  test('is over when one of them denies', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one);
    expect(await outcome(decide(ben, one, { decision: 'deny' }))).toBe(200);
    expect(await approve(anna, one)).toBe('approval_not_pending');
    expect(await wait(one)).toMatchObject({ state: 'denied' });
  });

  test('does not count a personal token, which may be in the hands of a program', async () => {
    await addRule({ persons: 1 });
    const one = await askOne();
    const scopes = ['approvals:read', 'approvals:decide'];
    const { token } = await parseReply(createdToken, anna.call('POST', '/v1/tokens', { name: 'ci', scopes }));
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ decision: 'approve' });
    const path = `/v1/approvals/${one.id}/decide`;
    expect(await outcome(control.send(path, { method: 'POST', headers, body }))).toBe('approver_required');
    const seen = await parseReply(approvalRecord, control.send(`/v1/approvals/${one.id}`, { headers }));
    expect([seen.may_approve, (await read(anna, one)).may_approve]).toEqual([false, true]);
    expect(await approve(anna, one)).toBe(200);
    expect(await read(anna, one)).toMatchObject({ state: 'approved', may_approve: false });
  });
});

describe('while a request waits', () => {
  test.each([
    ['left the group', () => takeOut(anna.caller.userId)],
    ['was suspended', () => suspend(anna.caller.userId)],
    ['was removed', () => owner.call('DELETE', `/v1/members/${anna.caller.userId}`)],
  ])('an approval of somebody who %s does not count any more', async (_, change) => {
    await addRule();
    const one = await askOne();
    await approve(anna, one);
    expect((await change()).ok).toBe(true);
    expect(await approve(ben, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    const { userId } = ben.caller;
    expect(await read(ben, one)).toMatchObject({ needs: [{ given: 1, missing: 1 }], votes: [{ user_id: userId }] });
  });

  test('somebody who comes into the group may approve', async () => {
    await addRule();
    const one = await askOne();
    const carla = await hostedUser(control, owner.caller.enterpriseId);
    expect(await outcome(carla.call('GET', `/v1/approvals/${one.id}`))).toBe('not_found');
    await putInGroup(carla.caller.userId);
    expect([await approve(carla, one), await approve(anna, one)]).toEqual([200, 200]);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });

  test('nobody approves by a group that was deleted or is empty', async () => {
    const rule = await addRule({ persons: 1, excludes_requester: false });
    const [one, other] = [await askOne(), await askOne()];
    for (const { caller } of [anna, ben, requester]) await takeOut(caller.userId);
    expect(await approve(anna, one)).toBe('not_found');
    expect(await approve(requester, one)).toBe('approver_required');
    await owner.call('DELETE', `/v1/groups/${groupId}`);
    for (const user of [owner, requester]) expect(await approve(user, other)).toBe('approver_required');
    const { items } = await parseReply(approvalRulesPage, requester.call('GET', '/v1/approval-rules'));
    expect(items).toMatchObject([{ id: rule.id, group_name: null, approvers: 0 }]);
  });

  test('a rule that is added holds for it, also where one person had approved', async () => {
    const one = await askOne();
    expect(await approve(requester, one)).toBe(200);
    await addRule();
    expect(await wait(one)).toMatchObject({ state: 'expired' });
    expect(await ask(request({ fingerprint: String(asked).padStart(64, '0') }))).toMatchObject({ state: 'pending' });
  });

  test('every rule about it holds', async () => {
    await addRule({ persons: 1 });
    await addRule({ persons: 1, group_id: null, role: 'admin' });
    const one = await askOne();
    expect(await approve(anna, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    expect(await approve(owner, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });
});

describe('at the same moment', () => {
  test('of an approval and a denial one counts', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one);
    const answers = await Promise.all([approve(ben, one), outcome(decide(anna, one, { decision: 'deny' }))]);
    expect(new Set(answers)).toEqual(new Set([200, 'approval_not_pending']));
    expect(await wait(one)).toMatchObject({ state: answers[0] === 200 ? 'approved' : 'denied' });
    expect(await events('connector.approval.decided')).toHaveLength(1);
  });
});

test('an approval of one person ends with the hour, and the next request begins anew', async () => {
  await addRule();
  const body = request();
  const one = { id: (await ask(body)).approval_id, requestId: body.request_id };
  await approve(anna, one);
  control.clock.ms += 3_600_000;
  const { access_token: token } = await signInProgram(control, anna.caller);
  const later = { ...anna, call: callAs.bind(null, control, token) };
  expect(await approve(later, one)).toBe('approval_not_pending');
  expect(await wait(one)).toMatchObject({ state: 'expired' });
  const again = await ask({ ...body, request_id: crypto.randomUUID() });
  expect(again.approval_id).not.toBe(one.id);
  expect(await read(later, { id: again.approval_id, requestId: '' })).toMatchObject({
    votes: [],
    needs: [{ given: 0 }],
  });
});

describe('a connector that changes', () => {
  beforeEach(async () => {
    expect((await install('1.1.0', 'write')).ok).toBe(true);
    await addRule({ effects: ['delete'] });
  });

  test('ends a request that waits, which asks again under the rules of the new effect', async () => {
    const body = request();
    const one = { id: (await ask(body)).approval_id, requestId: body.request_id };
    expect(await read(requester, one)).toMatchObject({ may_approve: true, needs: [] });
    expect((await install('1.2.0', 'delete')).ok).toBe(true);
    expect(await wait(one)).toMatchObject({ state: 'expired' });
    expect(await approve(requester, one)).toBe('approval_not_pending');
    const next = await ask(body);
    expect([next.state, next.approval_id === one.id]).toEqual(['pending', false]);
    expect(await approve(requester, { id: next.approval_id })).toBe('approver_required');
    expect(await events('connector.approval.expired')).toMatchObject([{ data: { 'svc.approval.id': one.id } }]);
  });

  test('ends what was approved and not used', async () => {
    const body = request();
    const one = { id: (await ask(body)).approval_id, requestId: body.request_id };
    expect(await approve(requester, one)).toBe(200);
    expect((await install('1.2.0', 'delete')).ok).toBe(true);
    expect(await wait(one)).toMatchObject({ state: 'expired' });
    expect(await ask(body)).toMatchObject({ state: 'pending' });
  });
});

test('a request does not wait with an identical one of another version of the server, and a renamed server ends it', async () => {
  const server = { name: 'files', command: ['/usr/bin/files'] };
  const { id } = await parseReply(mcpServerRecord, requester.call('POST', '/v1/mcp-servers', server));
  const { connector_id: _, operation: __, scope: ___, ...call } = request();
  const body = { ...call, mcp_server_id: id, tool: 'delete_file' };
  const first = await ask(body);
  await requester.call('PUT', `/v1/mcp-servers/${id}`, { ...server, version: '2.0.0' });
  const second = await ask({ ...body, request_id: crypto.randomUUID() });
  expect(second.approval_id).not.toBe(first.approval_id);
  await addRule({ subject: 'mcp_server', name: 'notes', persons: 1 });
  expect((await requester.call('PUT', `/v1/mcp-servers/${id}`, { ...server, name: 'notes' })).ok).toBe(true);
  expect(await approve(requester, { id: second.approval_id })).toBe('approval_not_pending');
});

describe('a rule that comes or goes', () => {
  test('ends for good what was allowed without it, and says so in the log', async () => {
    const granted = await askOne();
    await approve(requester, granted, { seconds: 3600 });
    const one = await askOne({ session_id: 'ses_2' });
    await approve(requester, one);
    const rule = await addRule();
    await removeRule(rule.id);
    expect([await wait(granted), await wait(one)]).toMatchObject([{ state: 'expired' }, { state: 'expired' }]);
    expect(await ask(request())).toMatchObject({ state: 'pending' });
    expect(await ownersGrants()).toMatchObject([{ state: 'revoked' }]);
    const of = { actor: owner.caller.userId, data: { 'svc.approval.rules': [rule.id] } };
    expect(await events('connector.approval.grant_revoked')).toMatchObject([of]);
    expect(await events('connector.approval.expired')).toMatchObject([of, of]);
  });

  test('ends for good what was allowed under it, and nothing that it is not about', async () => {
    const other = await addRule({ subject: 'mcp_server' });
    await addRule({ persons: 1 });
    const rule = await addRule({ persons: 1, name: 'acme/*' });
    const one = await askOne();
    await approve(anna, one, { seconds: 3600 });
    await removeRule(other.id);
    expect(await ask(request())).toMatchObject({ state: 'approved' });
    await removeRule(rule.id);
    await addRule({ persons: 1, name: 'acme/*' });
    expect(await ask(request())).toMatchObject({ state: 'pending' });
    expect(await wait(one)).toMatchObject({ state: 'expired' });
  });

  test('lets a request that waits begin anew, and says what it needs', async () => {
    await addRule({ persons: 1 });
    const second = await addRule({ persons: 1, group_id: null, role: 'admin' });
    const one = await askOne();
    await approve(anna, one);
    await removeRule(second.id);
    expect(await read(anna, one)).toMatchObject({ state: 'pending', votes: [], needs: [{ given: 0, missing: 1 }] });
    expect(await approve(anna, one)).toBe(200);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });
});

test('if nobody is missing any more, because somebody has come into a group, a refusal says who approves once more', async () => {
  const other = await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name: 'Finance' }));
  await addRule({ persons: 1 });
  await addRule({ persons: 1, group_id: other.id });
  const one = await askOne();
  await approve(anna, one);
  await owner.call('PUT', `/v1/groups/${other.id}/members/${anna.caller.userId}`);
  const { error } = errorBody.parse(await (await decide(owner, one)).json());
  expect(error.message).toContain('1 of 1 approved, of the group Payments, not the one who asks');
  expect(error.message).toContain('one who has approved it has to do so again');
  expect([await approve(anna, one), (await wait(one)).state]).toEqual([200, 'approved']);
});

describe('what somebody approved ends for good', () => {
  const cases: readonly (readonly [string, () => Promise<Response>, () => Promise<Response>])[] = [
    ['leaves the group', () => takeOut(anna.caller.userId), () => putInGroup(anna.caller.userId)],
    ['is suspended', () => suspend(anna.caller.userId), restore],
    [
      'gets another role',
      () => owner.call('PUT', `/v1/members/${anna.caller.userId}`, { role: 'admin', suspended: false }),
      restore,
    ],
    [
      'is removed',
      () => owner.call('DELETE', `/v1/members/${anna.caller.userId}`),
      () => Promise.resolve(new Response()),
    ],
    [
      'had the group, which is deleted,',
      () => owner.call('DELETE', `/v1/groups/${groupId}`),
      () => Promise.resolve(new Response()),
    ],
  ];

  test.each(cases)('when a person who gave it %s', async (_, change, back) => {
    await addRule();
    const [granted, unused, waiting] = [
      await askOne(),
      await askOne({ session_id: 'ses_2' }),
      await askOne({ session_id: 'ses_3' }),
    ];
    for (const user of [anna, ben]) {
      await approve(user, granted, { seconds: 3600 });
      await approve(user, unused);
    }
    await approve(anna, waiting);
    expect(await ask(request())).toMatchObject({ state: 'approved' });
    for (const each of [change, back]) expect((await each()).ok).toBe(true);
    expect(await ask(request())).toMatchObject({ state: 'pending' });
    expect([await wait(granted), await wait(unused)]).toMatchObject([{ state: 'expired' }, { state: 'expired' }]);
    expect(await read(requester, waiting)).toMatchObject({ state: 'pending', votes: [] });
    const { items } = await parseReply(grantsPage, requester.call('GET', '/v1/approval-grants'));
    expect(items).toMatchObject([{ state: 'giver_left' }]);
    expect(new Set(items[0]?.given_by)).toEqual(new Set([anna.caller.userId, ben.caller.userId]));
  });

  test('also without rules: an admin who approved a colleague’s request and is suspended', async () => {
    const one = await askOne();
    const admin = await hostedUser(control, owner.caller.enterpriseId);
    await owner.call('PUT', `/v1/members/${admin.caller.userId}`, { role: 'admin', suspended: false });
    expect(await approve(admin, one)).toBe(200);
    for (const suspended of [true, false]) {
      await owner.call('PUT', `/v1/members/${admin.caller.userId}`, { role: 'admin', suspended });
    }
    expect(await wait(one)).toMatchObject({ state: 'expired' });
    expect(await events('connector.approval.expired')).toHaveLength(0);
    expect(await read(requester, one)).toMatchObject({ state: 'expired' });
    expect(await events('connector.approval.expired')).toHaveLength(1);
  });

  test('but not if an earlier approval, which did not count any more, was followed by enough others', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one);
    await takeOut(anna.caller.userId);
    const carla = await hostedUser(control, owner.caller.enterpriseId);
    await putInGroup(carla.caller.userId);
    expect([await approve(ben, one), await approve(carla, one)]).toEqual([200, 200]);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });
});

describe('what has ended by a change does not hold again when that is taken back', () => {
  test.each([
    ['another version of the connector', upAndDown],
    ['a rule that an earlier worker adds', () => earlierRule('acme/*')],
    ['a rule that an earlier worker removes', () => run('DELETE FROM approval_rules WHERE persons = 1')],
  ])('%s', async (_, change) => {
    await addRule();
    await addRule({ persons: 1, name: 'acme/*' });
    const [granted, unused, waiting] = await askThree();
    for (const user of [anna, ben]) {
      await approve(user, granted, { seconds: 3600 });
      await approve(user, unused);
    }
    await approve(anna, waiting);
    expect(await ask(request())).toMatchObject({ state: 'approved' });
    await change();
    expect(await ask(request())).toMatchObject({ state: 'pending' });
    expect([await wait(granted), await wait(unused)]).toMatchObject([{ state: 'expired' }, { state: 'expired' }]);
    await approve(ben, waiting);
    expect((await wait(waiting)).state).not.toBe('approved');
    expect(await ownersGrants()).toMatchObject([{ state: 'changed' }]);
    const ended = (await events('connector.approval.expired')).map(({ data }) => data['svc.approval.id']);
    for (const { id } of [granted, unused]) expect(ended.filter((each) => each === id)).toHaveLength(1);
  });

  test('but what the rule of an earlier worker is not about holds on', async () => {
    await addRule({ persons: 1 });
    await approve(anna, await askOne(), { seconds: 3600 });
    await earlierRule('elsewhere/*');
    expect(await ask(request())).toMatchObject({ state: 'approved' });
  });

  test('a request to a server that is renamed, and a grant of its calls at the very moment of the change', async () => {
    const server = { name: 'files', command: ['/usr/bin/files'] };
    const { id } = await parseReply(mcpServerRecord, requester.call('POST', '/v1/mcp-servers', server));
    const { connector_id: _, operation: __, scope: ___, ...call } = request();
    const body = { ...call, mcp_server_id: id, tool: 'delete_file' };
    const granted = await ask(body);
    await approve(requester, { id: granted.approval_id }, { seconds: 3600 });
    const other = { ...body, session_id: 'ses_2', fingerprint: 'e'.repeat(64) };
    const waiting = await ask(other);
    for (const name of ['notes', 'files']) {
      expect((await requester.call('PUT', `/v1/mcp-servers/${id}`, { ...server, name })).ok).toBe(true);
    }
    expect(await approve(requester, { id: waiting.approval_id })).toBe('approval_not_pending');
    expect(await ask({ ...body, request_id: crypto.randomUUID() })).toMatchObject({ state: 'pending' });
    const { items } = await parseReply(grantsPage, requester.call('GET', '/v1/approval-grants'));
    expect(items).toMatchObject([{ state: 'changed' }]);
  });

  test('what an earlier worker allows under a rule, without saying who', async () => {
    const first = await askOne();
    await approve(requester, first, { seconds: 3600 });
    await addRule();
    const one = await askOne({ session_id: 'ses_2' });
    await run(`UPDATE approvals SET state = 'approved', valid_until = '2999' WHERE id = '${one.id}'`);
    expect(await wait(one)).toMatchObject({ state: 'expired' });
    const columns = Object.values(getTableColumns(approvalGrants)).map(({ name }) => name);
    const earlier = new Map([
      ['id', `'apg_earlier'`],
      ['approval_id', 'NULL'],
      ['revoked_at', 'NULL'],
      ['ended', '0'],
    ]);
    const values = columns.map((name) => earlier.get(name) ?? name);
    await run(`INSERT INTO approval_grants (${columns.join()}) SELECT ${values.join()} FROM approval_grants`);
    expect(await ask(request())).toMatchObject({ state: 'pending' });
  });
});

describe('whoever may only approve', () => {
  test('sees what waits, and afterwards only what they approved', async () => {
    await addRule({ persons: 1 });
    const own = await parseReply(installReply, requester.call('POST', '/v1/connectors', ITEMS_SPEC));
    const [one, other] = [
      await askOne({ connector_id: own.id }),
      await askOne({ operation: 'gone', session_id: 'ses_2' }),
    ];
    expect(new Set(await listedAll(ben))).toEqual(new Set([other.id, one.id]));
    await approve(anna, one, { seconds: 3600 });
    await decide(anna, other, { decision: 'deny' });
    expect([await listedAll(anna), await listedAll(ben)]).toEqual([[one.id], []]);
    expect(await outcome(ben.call('GET', `/v1/approvals/${one.id}`))).toBe('not_found');
    const [id = ''] = await grantsOf(anna);
    expect(await grantsOf(ben)).toEqual([]);
    expect(await outcome(ben.call('DELETE', `/v1/approval-grants/${id}`))).toBe('not_found');
    expect(await outcome(anna.call('DELETE', `/v1/approval-grants/${id}`))).toBe(204);
  });

  test('neither sees nor denies what waits once they have left the group', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one);
    await takeOut(anna.caller.userId);
    expect(await listedAll(anna)).toEqual([]);
    expect(await outcome(decide(anna, one, { decision: 'deny' }))).toBe('not_found');
  });
});

test('a run by somebody whose approval does not count is told who approves it', async () => {
  const credential = { kind: 'api_key', value: 'key-of-a-test' };
  expect((await owner.call('PUT', `/v1/connectors/${connectorId}/credential`, credential)).ok).toBe(true);
  await addRule();
  const body = { connector_fqn: 'acme/items', operation: 'delete-item', args: { id: '7' } };
  const { error } = errorBody.parse(await (await requester.call('POST', '/v1/connector-operations/run', body)).json());
  expect(error.code).toBe('approval_required');
  expect(error.message).toContain('needs 2 more persons of the group Payments, not the one who asks');
  expect(error.message).not.toContain('/decide');
});

describe('a rule is about', () => {
  test.each([
    ['a connector by its name', { name: 'acme/items' }, true],
    ['connectors whose names begin so', { name: 'acme/*' }, true],
    ['a name in another case', { name: 'ACME/Items' }, true],
    ['no longer name', { name: 'acme/item' }, false],
    ['no name that a pattern would match elsewhere', { name: 'acme/i?ems' }, false],
    ['an operation', { action: 'delete-item' }, true],
    ['no other operation', { action: 'get-item' }, false],
    ['operations that begin so', { action: 'delete-*' }, true],
    ['an effect', { effects: ['spend', 'delete'] }, true],
    ['no other effect', { effects: ['read'] }, false],
    ['no tool of an MCP server', { subject: 'mcp_server' }, false],
  ])('%s', async (_, about, isAbout) => {
    await addRule({ persons: 1, ...about });
    const one = await askOne();
    expect(await approve(requester, one)).toBe(isAbout ? 'approver_required' : 200);
    expect((await listed(anna)).map(({ id }) => id)).toEqual(isAbout ? [one.id] : []);
  });

  test('an operation whose effect is not known, whatever effect it names', async () => {
    await addRule({ persons: 1, effects: ['read'] });
    const one = await askOne({ operation: 'gone' });
    expect(await approve(requester, one)).toBe('approver_required');
  });

  test('a colleague’s own connector too, which only those who approve see beside them', async () => {
    const own = await parseReply(installReply, requester.call('POST', '/v1/connectors', ITEMS_SPEC));
    const one = await askOne({ connector_id: own.id });
    expect([await listed(anna), await listed(owner)]).toEqual([[], []]);
    await addRule({ persons: 1 });
    expect((await listed(anna)).map(({ id }) => id)).toEqual([one.id]);
    expect(await listed(owner)).toEqual([]);
    expect(await approve(anna, one)).toBe(200);
  });
});

describe('a grant under a rule', () => {
  test('needs everybody who approves, and is the narrowest of what they allow', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one, { seconds: 7200, times: 10 });
    expect(await read(ben, one)).toMatchObject({ votes: [{ grant: { seconds: 7200, times: 10 } }] });
    await approve(ben, one, { seconds: 3600 });
    const { items } = await parseReply(grantsPage, anna.call('GET', '/v1/approval-grants'));
    expect(items).toMatchObject([{ times: 10, user_id: requester.caller.userId }]);
    expect(Date.parse(items[0]?.ends_at ?? '') - Date.parse(items[0]?.given_at ?? '')).toBe(3_600_000);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
    expect(await ask(request())).toMatchObject({ state: 'approved' });
  });

  test('is none if one of them allows one request only', async () => {
    await addRule();
    const one = await askOne();
    await approve(anna, one, { seconds: 3600 });
    await approve(ben, one);
    expect(await wait(one)).toMatchObject({ state: 'approved' });
    expect(await ask(request())).toMatchObject({ state: 'pending' });
  });

  test('is not given by the person whose agent asks', async () => {
    await addRule();
    expect(await approve(requester, await askOne(), { seconds: 3600 })).toBe('approver_required');
  });

  test('is over once other rules hold, and so is one that was given without rules', async () => {
    const first = await askOne();
    await approve(requester, first, { seconds: 3600 });
    expect(await ask(request())).toMatchObject({ state: 'approved' });
    const rule = await addRule({ persons: 1 });
    const one = await askOne();
    expect(await wait(one)).toMatchObject({ state: 'pending' });
    await approve(anna, one, { seconds: 3600 });
    expect(await ask(request())).toMatchObject({ state: 'approved' });
    await addRule({ persons: 1, name: 'acme/*' });
    expect(await ask(request())).toMatchObject({ state: 'pending' });
    expect((await owner.call('DELETE', `/v1/approval-rules/${rule.id}`)).status).toBe(204);
    expect(await ask(request())).toMatchObject({ state: 'pending' });
  });
});

describe('the rules', () => {
  test('are listed for every member and changed by admins, with an event each', async () => {
    const rule = await addRule({ name: 'acme/*', effects: ['delete'] });
    const { items } = await parseReply(approvalRulesPage, requester.call('GET', '/v1/approval-rules'));
    expect(items).toEqual([rule]);
    expect(rule).toMatchObject({ name: 'acme/*', action: '*', effects: ['delete'], approvers: 2, persons: 2 });
    const input = { subject: 'connector', role: 'member' };
    expect(await outcome(requester.call('POST', '/v1/approval-rules', input))).toBe('admin_required');
    expect(await outcome(requester.call('DELETE', `/v1/approval-rules/${rule.id}`))).toBe('admin_required');
    expect(await outcome(owner.call('DELETE', `/v1/approval-rules/${rule.id}`))).toBe(204);
    expect(
      (await events('control.approval_rule.')).map(({ type, data }) => [type, data['svc.control.resource']]),
    ).toEqual([
      ['control.approval_rule.deleted', rule.id],
      ['control.approval_rule.created', rule.id],
    ]);
  });

  test.each([
    ['a role and a group', { role: 'admin' }, 'role'],
    ['neither', { group_id: null }, 'role'],
    ['two persons with the one who asks', { excludes_requester: false }, 'excludes_requester'],
    ['three persons', { persons: 3 }, 'persons'],
    ['effects of tools', { subject: 'mcp_server', effects: ['read'] }, 'effects'],
    ['a star in the middle', { name: 'acme/*/items' }, 'name'],
  ])('refuse %s', async (_, input, field) => {
    const body = { subject: 'connector', group_id: groupId, persons: 2, ...input };
    const { error } = errorBody.parse(await (await owner.call('POST', '/v1/approval-rules', body)).json());
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field }] } });
  });

  test('are of one enterprise: neither its requests nor its groups are another one’s', async () => {
    await addRule({ name: 'elsewhere/*' });
    const stranger = await hostedUser(control);
    const strangers = { subject: 'connector', role: 'member', persons: 1 };
    expect(await outcome(stranger.call('POST', '/v1/approval-rules', strangers))).toBe(201);
    const one = await askOne();
    expect(await listed(stranger)).toEqual([]);
    expect(await approve(stranger, one)).toBe('not_found');
    expect(await approve(requester, one)).toBe(200);
    const foreign = { subject: 'connector', group_id: groupId };
    expect(await outcome(stranger.call('POST', '/v1/approval-rules', foreign))).toBe('not_found');
  });

  test('let an approver’s own sidecar use nothing that a colleague’s asked for', async () => {
    await addRule({ persons: 1 });
    const one = await askOne();
    await approve(anna, one);
    const annas = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
    await annas.enrol(anna.tokens.access_token);
    const path = `/v1/sidecar/approvals/${one.id}?wait=0&request_id=${one.requestId}`;
    expect(await outcome(annas.call('GET', path))).toBe('not_found');
    expect(await wait(one)).toMatchObject({ state: 'approved' });
  });

  test('change only by who is still an admin, also for a call that was let in before', async () => {
    const rule = await addRule();
    const stale = { ...anna.caller, role: 'admin' as const };
    const refused = { ok: false, error: { code: 'admin_required' } };
    expect(await removeApprovalRule(control.context, stale, rule.id)).toMatchObject(refused);
    const input = { ...rule, name: 'acme/*', excludes_requester: true };
    expect(await addApprovalRule(control.context, stale, input)).toMatchObject(refused);
  });

  test('hold in the service itself, for a caller that the API let through before the suspension', async () => {
    await addRule({ persons: 1 });
    const one = await askOne();
    await suspend(anna.caller.userId);
    expect(await decideApproval(control.context, anna.caller, one.id, { decision: 'approve' })).toMatchObject({
      ok: false,
      error: { code: 'approver_required' },
    });
  });
});
