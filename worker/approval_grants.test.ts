import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, openBrowserSession, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { meReply } from '../shared/wire/account.ts';
import { grantsPage } from '../shared/wire/approval_grants.ts';
import { approvalPayload, approvalsPage } from '../shared/wire/approvals.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { APPROVAL_TYP } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import { mcpServerRecord } from '../shared/wire/mcp/mcp_servers.ts';
import type { Caller } from './kernel/caller.ts';
import { connectorSubject } from './services/approvals/approval_subject.ts';
import { askApproval, decideApproval } from './services/approvals/approvals.ts';
import { listGrantPage, revokeGrant } from './services/approvals/grants.ts';
import { findConnector } from './store/connectors.ts';

let control: InProcess;
let sidecar: TestSidecar;
let connectorId = '';

beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  connectorId = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
  await control.asUser('PUT', `/v1/connectors/${connectorId}/credential`, { kind: 'api_key', value: 'key-of-a-test' });
});
afterEach(() => control.stop());

const SCOPE = '5'.repeat(64);
let asked = 0;
/** Another request of the same operation and path each time. */
const request = (more: object = {}) => ({
  request_id: crypto.randomUUID(),
  connector_id: connectorId,
  operation: 'delete-item',
  fingerprint: String((asked += 1)).padStart(64, '0'),
  summary: 'Items: delete (id "7")',
  session_id: 'ses_1',
  scope: SCOPE,
  ...more,
});
const verified = async (reply: Promise<Response>, by = sidecar) =>
  by.verify(await (await reply).text(), APPROVAL_TYP, approvalPayload);
const ask = (body: object, by = sidecar) => verified(by.call('POST', '/v1/sidecar/approvals', { body }), by);
const wait = (id: string, requestId: string, by = sidecar) =>
  verified(by.call('GET', `/v1/sidecar/approvals/${id}?wait=0&request_id=${requestId}`), by);
const stateOf = async (more: object = {}, by = sidecar) => (await ask(request(more), by)).state;
const decide = (id: string, body: object) => control.asUser('POST', `/v1/approvals/${id}/decide`, body);
const grants = async () => (await parseReply(grantsPage, control.asUser('GET', '/v1/approval-grants'))).items;
const events = async (type: string) =>
  (await parseReply(auditEventsPage, control.asUser('GET', `/v1/audit-events?type=${type}`))).items;

const me = () => parseReply(meReply, control.asUser('GET', '/v1/me'));

/** A grant for the rest of the session, unless it says otherwise. */
async function grant(input: object = {}, more: object = {}) {
  const first = request(more);
  const { approval_id: id } = await ask(first);
  const reply = await decide(id, { decision: 'approve', grant: { seconds: 3600, ...input } });
  expect([reply.status, (await wait(id, first.request_id)).state]).toEqual([200, 'approved']);
  const [given] = await grants();
  return { id: given?.id ?? '', approvalId: id };
}

describe('a grant', () => {
  test('lets further requests of the operation and path through, and each use is in the log', async () => {
    const { id, approvalId } = await grant();
    const next = request();
    const passed = await ask(next);
    expect(passed.state).toBe('approved');
    expect(passed.approval_id).not.toBe(approvalId);
    // The sidecar asks again after a lost reply: that is no further use.
    expect(await ask(next)).toMatchObject({ state: 'approved', approval_id: passed.approval_id });
    expect(await wait(passed.approval_id, next.request_id)).toMatchObject({ state: 'approved' });
    expect(await wait(passed.approval_id, 'another-request-id')).toMatchObject({ state: 'used' });
    expect(await grants()).toMatchObject([{ id, state: 'open', used: 2, times: null, session_id: 'ses_1' }]);
    expect(await events('connector.approval.granted')).toMatchObject([
      { data: { 'svc.approval.grant': id, 'svc.approval.id': approvalId, 'svc.connector.operation': 'delete-item' } },
    ]);
    expect(await events('connector.approval.grant_used')).toMatchObject([
      { data: { 'svc.approval.grant': id, 'svc.approval.id': passed.approval_id, 'svc.approval.grant_use': 2 } },
    ]);
  });

  test.each([
    ['another path', { scope: '6'.repeat(64) }],
    ['another operation', { operation: 'get-item' }],
    ['another session', { session_id: 'ses_2' }],
    ['no session', { session_id: null }],
    ['a request that says no path', { scope: null }],
  ])('does not cover %s', async (_, more) => {
    await grant();
    expect(await stateOf(more)).toBe('pending');
  });

  test('does not cover the same session id at another sidecar', async () => {
    await grant();
    expect(await stateOf({}, await control.enrolSidecar())).toBe('pending');
  });

  test('covers identical requests only where the path says nothing', async () => {
    const fingerprint = 'f'.repeat(64);
    await grant({}, { scope: null, fingerprint });
    expect(await stateOf({ scope: null, fingerprint })).toBe('approved');
    expect(await stateOf({ scope: null })).toBe('pending');
    expect(await grants()).toMatchObject([{ identical_only: true }]);
  });

  test('for a tool call covers calls with the same arguments', async () => {
    const { id: mcp_server_id } = await parseReply(
      mcpServerRecord,
      control.asUser('POST', '/v1/mcp-servers', { name: 'files', command: ['/usr/bin/files'] }),
    );
    const toolCall = (fingerprint: string) => {
      const { connector_id: _, operation: __, scope: ___, ...rest } = request({ fingerprint });
      return { ...rest, mcp_server_id, tool: 'delete_file' };
    };
    const first = toolCall('a'.repeat(64));
    await decide((await ask(first)).approval_id, { decision: 'approve', grant: { seconds: 60 } });
    expect((await ask(first)).state).toBe('approved');
    expect((await ask(toolCall('a'.repeat(64)))).state).toBe('approved');
    expect((await ask(toolCall('b'.repeat(64)))).state).toBe('pending');
  });

  test('for a tool call ends with any change of its server, and is listed so', async () => {
    const server = { name: 'files', command: ['/usr/bin/files'] };
    const { id } = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', server));
    const { connector_id: _, operation: __, scope: ___, ...rest } = request({ fingerprint: 'a'.repeat(64) });
    const call = () => ({ ...rest, request_id: crypto.randomUUID(), mcp_server_id: id, tool: 'delete_file' });
    const first = call();
    await decide((await ask(first)).approval_id, { decision: 'approve', grant: { seconds: 600 } });
    expect((await ask(first)).state).toBe('approved');
    expect([(await ask(call())).state, await grants()]).toMatchObject(['approved', [{ state: 'open' }]]);
    control.clock.ms += 1_000;
    // Its version stays the same: none.
    await control.asUser('PUT', `/v1/mcp-servers/${id}`, { ...server, command: ['/usr/bin/other'] });
    expect([(await ask(call())).state, await grants()]).toMatchObject(['pending', [{ state: 'changed' }]]);
    await control.asUser('DELETE', `/v1/mcp-servers/${id}`);
    expect(await grants()).toMatchObject([{ state: 'changed' }]);
  });

  test('ends after its time', async () => {
    await grant({ seconds: 60 });
    control.clock.ms += 60_000;
    expect(await stateOf()).toBe('pending');
    expect(await grants()).toMatchObject([{ state: 'over' }]);
  });

  test('for a number of requests lets exactly that many through, at workers that do not wait for each other', async () => {
    await grant({ times: 4 });
    const { id: userId, enterprise_id: enterpriseId } = await me();
    const context = { ...control.context, turns: { take: <T>(_: string, work: () => Promise<T>) => work() } };
    const asker = { userId, enterpriseId, sidecarId: sidecar.enrolled.sidecar_id };
    const row = await findConnector(control.context.database, [userId], connectorId);
    const states = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const { request_id: requestId, fingerprint, summary, session_id: sessionId, scope } = request();
        const subject = connectorSubject(row!.connector, 'delete-item');
        const answer = await askApproval(context, asker, {
          requestId,
          subject,
          fingerprint,
          summary,
          sessionId,
          scope,
        });
        return answer.ok ? answer.value.state : answer.error.code;
      }),
    );
    expect(states.toSorted()).toEqual([...Array(3).fill('approved'), ...Array(5).fill('pending')]);
    expect(await grants()).toMatchObject([{ state: 'used_up', used: 4 }]);
    expect(await events('connector.approval.grant_used')).toHaveLength(3);
  });

  test('acts at once on a request that waits, and only of its session', async () => {
    const [held, foreign] = [request(), request({ session_id: 'ses_2' })];
    const { approval_id: id } = await ask(held);
    const { approval_id: foreignId } = await ask({ ...foreign, fingerprint: held.fingerprint });
    expect(foreignId).not.toBe(id);
    await grant();
    expect((await wait(id, held.request_id)).state).toBe('approved');
    expect((await wait(id, held.request_id)).state).toBe('approved');
    expect((await wait(foreignId, foreign.request_id)).state).toBe('pending');
  });

  test('does not let a request through that waits at another sidecar of the user', async () => {
    const held = request();
    const { approval_id: id } = await ask(held);
    await grant();
    const other = await control.enrolSidecar();
    expect((await wait(id, held.request_id, other)).state).toBe('pending');
  });

  test('does not override a denial of an identical request', async () => {
    const fingerprint = 'd'.repeat(64);
    await decide((await ask(request({ fingerprint }))).approval_id, { decision: 'deny' });
    await grant();
    expect(await stateOf({ fingerprint })).toBe('denied');
  });
});

test('a use of a grant is no decision: earlier decisions stay on the card', async () => {
  await decide((await ask(request({ session_id: 'ses_2' }))).approval_id, { decision: 'deny' });
  await grant();
  for (let use = 0; use < 5; use += 1) {
    // The ids of one millisecond have no order.
    control.clock.ms += 1;
    expect(await stateOf()).toBe('approved');
  }
  const { items } = await parseReply(approvalsPage, control.asUser('GET', '/v1/approvals'));
  expect(items[0]).toMatchObject({ state: 'used', decided_by: null, decided_at: null });
  expect(items[0]?.grant_id).toMatch(/^apg_/);
  await ask(request({ session_id: 'ses_2' }));
  const headers = { cookie: await openBrowserSession(control) };
  const page = await (await control.inBrowser('/approvals', { headers })).text();
  expect(page).toContain('of the last 2 of this kind: 1 approved, 1 denied');
});

describe('a revocation', () => {
  test('acts on the next request, and on the approval that was not used', async () => {
    const first = request();
    const { approval_id: approvalId } = await ask(first);
    await decide(approvalId, { decision: 'approve', grant: { seconds: 3600 } });
    const [given] = await grants();
    expect((await control.asUser('DELETE', `/v1/approval-grants/${given?.id}`)).status).toBe(204);
    expect((await wait(approvalId, first.request_id)).state).toBe('expired');
    expect(await stateOf()).toBe('pending');
    expect((await control.asUser('DELETE', `/v1/approval-grants/${given?.id}`)).status).toBe(204);
    expect(await grants()).toMatchObject([{ state: 'revoked', used: 1 }]);
    expect(await events('connector.approval.grant_revoked')).toMatchObject([
      { data: { 'svc.approval.grant': given?.id } },
    ]);
  });

  test('beside uses at the same time ends them all', async () => {
    const { id } = await grant();
    await Promise.all([
      control.asUser('DELETE', `/v1/approval-grants/${id}`),
      ...Array.from({ length: 5 }, () => stateOf()),
    ]);
    const [ended] = await grants();
    expect(await stateOf()).toBe('pending');
    expect(await grants()).toMatchObject([{ used: ended?.used, state: 'revoked' }]);
  });
});

test('another version of the connector ends its grants', async () => {
  await grant();
  const next = { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, version: '99.0.0' } };
  expect((await control.asUser('POST', '/v1/connectors', next)).ok).toBe(true);
  expect(await stateOf()).toBe('pending');
  expect(await grants()).toMatchObject([{ state: 'changed' }]);
});

describe('nobody else', () => {
  test('gives a grant for a person’s session, not even an admin who may approve the request', async () => {
    const { id: userId, enterprise_id: enterpriseId } = await me();
    await control.asUser('DELETE', `/v1/connectors/${connectorId}`);
    const shared = control.asUser('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC);
    connectorId = (await parseReply(installReply, shared)).id;
    const { approval_id: id } = await ask(request());
    const admin: Caller = await addUser(control.context, enterpriseId, 'admin');
    const given = { decision: 'approve', grant: { seconds: 60, times: null } } as const;
    expect(await decideApproval(control.context, admin, id, given)).toMatchObject({
      error: { code: 'grant_not_allowed' },
    });
    expect(await decideApproval(control.context, admin, id, { decision: 'approve' })).toMatchObject({ ok: true });
    // An admin sees and ends what was allowed for a connector of the enterprise; another member does neither.
    const { id: grantId } = await grant();
    const member = await addUser(control.context, enterpriseId);
    expect(await revokeGrant(control.context, member, grantId)).toMatchObject({ error: { code: 'not_found' } });
    expect(await listGrantPage(control.context, member, { limit: 9 })).toMatchObject({ value: { items: [] } });
    expect(await listGrantPage(control.context, admin, { limit: 9 })).toMatchObject({
      value: { items: [{ id: grantId, user_id: userId }] },
    });
    expect(await revokeGrant(control.context, admin, grantId)).toMatchObject({ ok: true });
    expect(await stateOf()).toBe('pending');
  });

  test('gets one for a run that comes from no session', async () => {
    const run = { connector_fqn: ITEMS_SPEC.connector.fqn, operation: 'delete-item', args: { id: '7' } };
    await control.asUser('POST', '/v1/connector-operations/run', run);
    const { items } = await parseReply(approvalsPage, control.asUser('GET', '/v1/approvals'));
    const reply = await decide(items[0]?.id ?? '', { decision: 'approve', grant: { seconds: 60 } });
    expect([reply.status, errorBody.parse(await reply.json()).error.code]).toEqual([403, 'grant_not_allowed']);
  });
});

test.each([
  ['a denial', { decision: 'deny', grant: { seconds: 60 } }],
  ['more than eight hours', { decision: 'approve', grant: { seconds: 28_801 } }],
  ['a single request', { decision: 'approve', grant: { seconds: 60, times: 1 } }],
])('a grant with %s is refused, and nothing is decided', async (_, body) => {
  const { approval_id: id } = await ask(request());
  expect((await decide(id, body)).status).toBe(400);
  expect(await grants()).toEqual([]);
});

test('the console gives, shows and revokes a grant', async () => {
  const { approval_id: id } = await ask(request({ session_name: 'cla<i>ude' }));
  const cookie = await openBrowserSession(control);
  const send = (path: string, fields: Record<string, string>) =>
    control.inBrowser(path, {
      method: 'POST',
      headers: { cookie, origin: control.consoleOrigin },
      body: new URLSearchParams(fields),
    });
  const open = async (path: string) => (await control.inBrowser(path, { headers: { cookie } })).text();
  expect(await open('/approvals')).toContain('Allow more like this');
  expect(await open(`/approvals/${id}`)).toMatch(
    /data-live-of="approvals"[^]*id="approvals"[^>]*data-events="connector\.approval\."/,
  );
  const given = await send(`/approvals/${id}`, { decision: 'approve', grant: 'times', times: '5' });
  expect(given.headers.get('location')).toBe('/approvals?done=granted');
  const page = await open('/approvals?state=grants');
  const machine = JSON.parse(await (await control.asUser('GET', '/v1/sidecars')).text()).items[0];
  expect(page).toMatch(new RegExp(`title="${machine.id}">on <bdi\\s*>${machine.name}`));
  expect(page).toContain('1 of 5');
  expect(page).toContain('cla&lt;i&gt;ude');
  const [grantId] = (await grants()).map(({ id: its }) => its);
  const revoked = await send(`/approval-grants/${grantId}/revoke`, {});
  expect(revoked.headers.get('location')).toBe('/approvals?state=grants&done=grant_revoked');
  expect(await open('/approvals?state=grants')).toContain('Revoked');
});
