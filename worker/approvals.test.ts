import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC, itemsSpec } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, openBrowserSession, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { ok } from '../shared/model/result.ts';
import { meReply } from '../shared/wire/account.ts';
import { approvalPayload, approvalRecord, approvalsPage } from '../shared/wire/approvals.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { APPROVAL_TYP } from '../shared/wire/channel.ts';
import { connectorSpec } from '../shared/wire/connectors/connector_spec.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { mcpServerRecord } from '../shared/wire/mcp/mcp_servers.ts';
import { connectorSubject } from './services/approvals/approval_subject.ts';
import {
  askApproval,
  countWaiting,
  decideApproval,
  getApproval,
  listApprovalPage,
  takeApproval,
} from './services/approvals/approvals.ts';
import type { Caller } from './kernel/caller.ts';
import { installConnector } from './services/connectors/connectors.ts';
import type { Outbound, OutboundRequest } from './kernel/outbound.ts';
import type { Turns } from './kernel/turns.ts';
import { findConnector } from './store/connectors.ts';

let control: InProcess;
let sidecar: TestSidecar;
let connectorId = '';
let sent: OutboundRequest[] = [];
const outbound: Outbound = {
  async call(request) {
    sent.push(request);
    return ok({ status: 204, contentType: '', body: new Uint8Array() });
  },
};

beforeEach(async () => {
  sent = [];
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
  connectorId = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
  await control.asUser('PUT', `/v1/connectors/${connectorId}/credential`, { kind: 'api_key', value: 'key-of-a-test' });
});
afterEach(() => control.stop());

const remove = (id: string) =>
  control.asUser('POST', '/v1/connector-operations/run', {
    connector_fqn: 'acme/items',
    operation: 'delete-item',
    args: { id },
  });
const decide = (id: string, decision: string) => control.asUser('POST', `/v1/approvals/${id}/decide`, { decision });
const events = async (type = 'connector.approval.') =>
  (await parseReply(auditEventsPage, control.asUser('GET', `/v1/audit-events?type=${type}`))).items;

async function refusal(answered: Response | Promise<Response>) {
  const { error } = errorBody.parse(await (await answered).json());
  expect((await answered).status).toBe(ERROR_STATUS[error.code]);
  return error;
}
async function requestApproval(id: string): Promise<string> {
  const { code, details } = await refusal(remove(id));
  expect(code).toBe('approval_required');
  return String(details?.['approval_id']);
}

describe('a run that needs an approval', () => {
  test('waits for a person, who sees what is requested', async () => {
    const id = await requestApproval('item 7');
    expect(sent).toEqual([]);
    const record = await parseReply(approvalRecord, control.asUser('GET', `/v1/approvals/${id}`));
    expect(record).toMatchObject({
      state: 'pending',
      connector_fqn: 'acme/items',
      operation: 'delete-item',
      summary: 'Items: Delete an item (DELETE api.example.test: id "item 7")',
      sidecar_id: null,
      decided_by: null,
    });
    expect((await parseReply(approvalsPage, control.asUser('GET', '/v1/approvals?state=pending'))).items).toEqual([
      record,
    ]);
    expect(await events()).toMatchObject([
      {
        type: 'connector.approval.requested',
        data: { 'svc.approval.id': id, 'svc.connector.operation': 'delete-item' },
      },
    ]);
    const [rejected] = await events('connector.proxy.rejected');
    expect(rejected?.data).toMatchObject({ 'svc.proxy.reason': 'approval_required', 'svc.approval.id': id });
  });

  test('passes once after it was approved, and only if it is identical', async () => {
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const id = await requestApproval('7');
    expect(await requestApproval('7')).toBe(id);
    expect(await (await decide(id, 'approve')).json()).toMatchObject({ state: 'approved', decided_by: me.id });
    expect(await requestApproval('8')).not.toBe(id);
    expect((await remove('7')).status).toBe(200);
    expect(sent.map(({ url }) => url)).toEqual(['https://api.example.test/items/7']);
    expect(await requestApproval('7')).not.toBe(id);
    expect(await (await control.asUser('GET', `/v1/approvals/${id}`)).json()).toMatchObject({ state: 'used' });
    expect((await events('connector.approval.decided'))[0]).toMatchObject({
      actor: me.id,
      data: { 'svc.approval.id': id, 'svc.approval.decision': 'approve' },
    });
    const [proxied] = await events('connector.proxy.proxied');
    expect(proxied?.data).toMatchObject({
      'svc.approval.id': id,
      'svc.proxy.upstream.path': '/items/{id}',
      'svc.connector.fields': { item: true },
    });
  });

  test('passes once of ten identical ones at the same time', async () => {
    await decide(await requestApproval('7'), 'approve');
    const replies = await Promise.all(Array.from({ length: 10 }, () => remove('7')));
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, ...Array(9).fill(403)]);
    expect(sent).toHaveLength(1);
  });

  test('stays denied after it was denied, and nobody is asked again', async () => {
    const id = await requestApproval('7');
    await decide(id, 'deny');
    expect(await refusal(remove('7'))).toMatchObject({ code: 'approval_denied', details: { approval_id: id } });
    control.clock.ms += 15 * 60_000;
    expect(await requestApproval('7')).not.toBe(id);
    expect(sent).toEqual([]);
  });

  test('is decided once, and not after it has expired', async () => {
    const [first, second] = [await requestApproval('1'), await requestApproval('2')];
    await decide(first, 'approve');
    expect(await refusal(decide(first, 'deny'))).toMatchObject({
      code: 'approval_not_pending',
      details: { state: 'approved' },
    });
    control.clock.ms += 3_600_000;
    expect(await refusal(decide(second, 'approve'))).toMatchObject({
      code: 'approval_not_pending',
      details: { state: 'expired' },
    });
    expect(await refusal(remove('1'))).toMatchObject({ code: 'approval_required' });
    expect(sent).toEqual([]);
    const expired = (await events('connector.approval.expired')).map(({ data }) => data['svc.approval.id']);
    expect(new Set(expired)).toEqual(new Set([first, second]));
  });

  test('without a credential asks nobody', async () => {
    await control.asUser('DELETE', `/v1/connectors/${connectorId}/credential`);
    expect(await refusal(remove('7'))).toMatchObject({ code: 'binding_required' });
    expect(await events()).toEqual([]);
  });

  test('never fills the list beyond what a person can read', async () => {
    const { context } = control;
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    await fillApprovals(me.id, 200);
    expect(await refusal(remove('7'))).toMatchObject({ code: 'too_many_approvals' });
    expect(
      await listApprovalPage(context, { userId: me.id, enterpriseId: me.enterprise_id, role: 'admin' }, { limit: 500 }),
    ).toMatchObject({
      value: { items: { length: 200 } },
    });
  });
});

async function fillApprovals(userId: string, count: number): Promise<void> {
  const row = await findConnector(control.context.database, [userId], connectorId);
  const asker = { userId, enterpriseId: row?.connector.enterpriseId ?? '', sidecarId: null };
  for (let n = 0; n < count; n += 1) {
    const request = {
      requestId: `request-${n}`,
      subject: connectorSubject(row!.connector, 'delete-item'),
      summary: 's',
      sessionId: null,
    };
    await askApproval(control.context, asker, { ...request, fingerprint: String(n).padStart(64, '0') });
  }
}

const request = (more: object = {}) => ({
  request_id: crypto.randomUUID(),
  connector_id: connectorId,
  operation: 'delete-item',
  fingerprint: 'a'.repeat(64),
  summary: 'Items: delete',
  session_id: 'ses_1',
  ...more,
});
const readVerified = async (reply: Promise<Response>) => {
  const answered = await reply;
  expect([answered.status, answered.headers.get('content-type')]).toEqual([200, 'application/jose']);
  return sidecar.verify(await answered.text(), APPROVAL_TYP, approvalPayload);
};
const ask = (body: object) => readVerified(sidecar.call('POST', '/v1/sidecar/approvals', { body }));
const refusedAsk = (body: object) => refusal(sidecar.call('POST', '/v1/sidecar/approvals', { body }));
const numberedRequest = (n: number, more: object = {}) =>
  request({ fingerprint: String(n).padStart(64, '0'), ...more });
const wait = (id: string, requestId: string, seconds = 25) =>
  readVerified(sidecar.call('GET', `/v1/sidecar/approvals/${id}?wait=${seconds}&request_id=${requestId}`));

describe('a sidecar’s request', () => {
  test('is no longer waited for when the time of its sidecar is over', async () => {
    const one = request();
    const { approval_id: id } = await ask(one);
    const setEnd = (end: string | null) =>
      control.context.database.client.execute({ sql: 'UPDATE sidecars SET expires_at = ?', args: [end] });
    await setEnd(new Date(control.clock.now() + 5_000).toISOString());
    const waited = sidecar.call('GET', `/v1/sidecar/approvals/${id}?wait=25&request_id=${one.request_id}`);
    expect(await refusal(waited)).toMatchObject({ code: 'sidecar_revoked' });
    await setEnd(null);
  });

  test('waits under its own id and passes once', async () => {
    const [one, other] = [request(), request()];
    const first = await ask(one);
    expect(first).toMatchObject({ state: 'pending', request_id: one.request_id });
    expect((await ask(other)).approval_id).toBe(first.approval_id);
    expect(await wait(first.approval_id, one.request_id, 2)).toMatchObject({ state: 'pending' });
    await decide(first.approval_id, 'approve');
    expect(await wait(first.approval_id, one.request_id)).toMatchObject({ state: 'approved' });
    // The sidecar asks again after a lost reply.
    expect(await wait(first.approval_id, one.request_id)).toMatchObject({ state: 'approved' });
    expect(await wait(first.approval_id, other.request_id)).toMatchObject({ state: 'used' });
    expect(await ask(one)).toMatchObject({ state: 'approved' });
    const again = await ask(other);
    expect(again).toMatchObject({ state: 'pending' });
    expect(again.approval_id).not.toBe(first.approval_id);
  });

  test('passes at once when the sidecar asks again after the decision', async () => {
    const { approval_id: id } = await ask(request());
    await decide(id, 'approve');
    expect(await ask(request())).toMatchObject({ approval_id: id, state: 'approved' });
    expect(await ask(request())).toMatchObject({ state: 'pending' });
  });

  test('is told when it was denied, and must ask again when it has expired', async () => {
    const denied = await ask(request());
    await decide(denied.approval_id, 'deny');
    expect(await ask(request())).toMatchObject({ approval_id: denied.approval_id, state: 'denied' });
    const late = request({ fingerprint: 'b'.repeat(64) });
    const { approval_id: id } = await ask(late);
    await decide(id, 'approve');
    control.clock.ms += 15 * 60_000;
    expect(await wait(id, late.request_id)).toMatchObject({ state: 'expired' });
    expect(await ask(late)).toMatchObject({ state: 'pending' });
  });

  test('says who asks, and until when the agent waits for the decision', async () => {
    const from = { session_name: 'claude', folder: '/home/ann/shop' };
    const { approval_id: id } = await ask(request(from));
    const read = () => parseReply(approvalRecord, control.asUser('GET', `/v1/approvals/${id}`));
    const first = await read();
    expect(first).toMatchObject(from);
    expect(Date.parse(first.held_until ?? '')).toBe(Date.parse(first.requested_at) + 60_000);
    control.clock.ms += 90_000;
    expect((await ask(request(from))).approval_id).toBe(id);
    const again = await read();
    expect(Date.parse(again.held_until ?? '')).toBe(Date.parse(first.held_until ?? '') + 90_000);
    expect(again.expires_at).toBe(first.expires_at);
  });

  test('tells of a request that was given up and waits again, once for each time', async () => {
    const { approval_id: id } = await ask(request());
    const again = () => events('connector.approval.waits_again');
    // A second identical request while one waits, and the same one after a lost reply.
    control.clock.ms += 30_000;
    await ask(request());
    expect(await again()).toEqual([]);
    control.clock.ms += 60_000;
    await ask(request());
    await ask(request());
    expect(await again()).toMatchObject([
      { actor: sidecar.enrolled.sidecar_id, data: { 'svc.approval.id': id, 'svc.connector.operation': 'delete-item' } },
    ]);
    expect(await events('connector.approval.requested')).toHaveLength(1);
  });

  test('does not lock the audit chain while nobody has decided', async () => {
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const one = request();
    const { approval_id: id } = await ask(one);
    const taken: string[] = [];
    const turns: Turns = { take: (of, work) => (taken.push(of), work()) };
    const asker = { userId: me.id, enterpriseId: me.enterprise_id, sidecarId: sidecar.enrolled.sidecar_id };
    const take = () => takeApproval({ ...control.context, turns }, asker, { id, requestId: one.request_id });
    expect(await take()).toMatchObject({ value: { state: 'pending' } });
    expect(taken).toEqual([]);
    await decide(id, 'approve');
    expect(await take()).toMatchObject({ value: { state: 'approved' } });
    expect(taken).toEqual([me.enterprise_id]);
    expect(await take()).toMatchObject({ value: { state: 'approved' } });
    expect(taken).toHaveLength(1);
  });

  test('of one session cannot block those of other sessions', async () => {
    for (const session_id of ['ses_1', null]) {
      for (let n = 0; n < 20; n += 1) await ask(numberedRequest(n + (session_id === null ? 100 : 0), { session_id }));
      expect(await refusedAsk(numberedRequest(99, { session_id }))).toMatchObject({
        code: 'too_many_approvals',
        message: expect.stringContaining('20 requests of this session'),
      });
    }
    expect(await ask(numberedRequest(99, { session_id: 'ses_2' }))).toMatchObject({ state: 'pending' });
    expect(await requestApproval('7')).toMatch(/^apr_/);
    // Requests that wait already keep waiting.
    expect(await ask(numberedRequest(0))).toMatchObject({ state: 'pending' });
  });

  test('for a connector that its user does not have is not found', async () => {
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const colleague = await addUser(control.context, me.enterprise_id);
    const theirs = await installConnector(control.context, colleague, 'personal', connectorSpec.parse(itemsSpec('5')));
    const theirId = theirs.ok ? theirs.value.value.reply.id : '';
    const body = request({ connector_id: theirId });
    expect(await refusal(sidecar.call('POST', '/v1/sidecar/approvals', { body }))).toMatchObject({ code: 'not_found' });
  });

  test('for a tool call names the server and the tool, and covers one identical call', async () => {
    const record = { name: 'files', command: ['/usr/bin/files'] };
    const { id: mcp_server_id } = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', record));
    const { connector_id: _, operation: __, ...rest } = request({ fingerprint: 'c'.repeat(64) });
    const call = { ...rest, mcp_server_id, tool: 'delete_file', summary: 'files: delete_file (path)' };
    const { approval_id: id } = await ask(call);
    expect(await parseReply(approvalRecord, control.asUser('GET', `/v1/approvals/${id}`))).toMatchObject({
      connector_id: null,
      operation: null,
      mcp_server_id,
      mcp_server: 'files',
      mcp_server_version: null,
      tool: 'delete_file',
      owner: 'personal',
      summary: call.summary,
    });
    await decide(id, 'approve');
    const other = { ...call, request_id: crypto.randomUUID(), fingerprint: 'd'.repeat(64) };
    expect(await ask(other)).toMatchObject({ state: 'pending' });
    expect(await wait(id, call.request_id)).toMatchObject({ state: 'approved' });
    expect(await ask({ ...call, request_id: crypto.randomUUID() })).toMatchObject({ state: 'pending' });
    const [asked_] = (await events()).filter(({ type }) => type === 'connector.approval.requested');
    expect(asked_?.data).toMatchObject({ 'svc.mcp.server': 'files', 'svc.mcp.tool': 'delete_file' });
    expect(asked_?.data).not.toHaveProperty('svc.connector.fqn');
  });

  test('for a server that its user does not have, or for a server and a connector at once, is refused', async () => {
    const { connector_id: _, operation: __, ...rest } = request();
    const call = { ...rest, mcp_server_id: `mcp_${'0'.repeat(26)}`, tool: 'x' };
    expect(await refusedAsk(call)).toMatchObject({ code: 'not_found' });
    expect(await refusedAsk({ ...request(), ...call })).toMatchObject({ code: 'invalid_input' });
    expect(await refusedAsk({ ...call, tool: 'a\u001b[2J' })).toMatchObject({ code: 'invalid_input' });
  });

  test('cannot write approval decisions into the audit log', async () => {
    const event = {
      id: `evt_${'0'.repeat(26)}`,
      type: 'connector.approval.decided',
      time: '2026-01-02T03:04:05.678Z',
      sidecar_id: null,
      session_id: null,
      actor: 'session',
      data: {},
    };
    await sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event] } });
    expect(await events()).toEqual([]);
  });
});

describe.each([
  ['a colleague', (owner: Caller) => owner.enterpriseId],
  ['a stranger', () => null],
])('%s', (_, enterpriseOf) => {
  test('neither sees nor decides approvals of a user’s own connector', async () => {
    const { context } = control;
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const who = await addUser(context, enterpriseOf({ userId: me.id, enterpriseId: me.enterprise_id, role: 'admin' }));
    const id = await requestApproval('7');
    const notFound = { error: { code: 'not_found' } };
    expect(await getApproval(context, who, id)).toMatchObject(notFound);
    expect(await getApproval(context, { ...who, role: 'admin' }, id)).toMatchObject(notFound);
    expect(await decideApproval(context, who, id, { decision: 'approve' })).toMatchObject(notFound);
    expect(await listApprovalPage(context, who, { limit: 10 })).toMatchObject({ value: { items: [] } });
  });
});

test('an admin decides for a connector of the enterprise, a member only for their own requests', async () => {
  const { context } = control;
  const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  await control.asUser('DELETE', `/v1/connectors/${connectorId}`);
  const shared = await parseReply(
    installReply,
    control.asUser('POST', '/v1/connectors?owner=enterprise', itemsSpec('2')),
  );
  await control.asUser('PUT', `/v1/connectors/${shared.id}/credential`, { kind: 'api_key', value: 'shared-key' });
  const member = await addUser(context, me.enterprise_id);
  const id = await requestApproval('7');
  expect(await decideApproval(context, member, id, { decision: 'approve' })).toMatchObject({
    error: { code: 'not_found' },
  });
  const admin = await addUser(context, me.enterprise_id, 'admin');
  expect(await decideApproval(context, { ...member, role: 'admin' }, id, { decision: 'approve' })).toMatchObject({
    error: { code: 'admin_required' },
  });
  expect(await decideApproval(context, admin, id, { decision: 'approve' })).toMatchObject({
    value: { decided_by: admin.userId },
  });
});

const browserHeaders = async () => ({ cookie: await openBrowserSession(control) });
const open = async (path = '/approvals') => (await control.inBrowser(path, { headers: await browserHeaders() })).text();

test('a pasted id of an approval that was decided long ago leads to its page', async () => {
  const id = (await ask(numberedRequest(1))).approval_id;
  await decide(id, 'approve');
  control.clock.ms += 30 * 86_400_000;
  const [path] = new RegExp(`/approvals/${id}`).exec(await open(`/find?q=${id}`)) ?? [''];
  const page = await open(path);
  expect(page).toContain(id);
  expect(page).toContain('approved');
});

describe('the page of what waits', () => {
  test('says who asks, where, and what was decided of this kind', async () => {
    const decisions = ['approve', 'deny', 'approve'] as const;
    for (const [n, decision] of decisions.entries())
      await decide((await ask(numberedRequest(n))).approval_id, decision);
    await ask(numberedRequest(7, { session_name: 'cla<i>ude', folder: '/home/ann/<b>shop' }));
    const page = await open();
    expect(page).toContain('cla&lt;i&gt;ude');
    expect(page).toContain('/home/ann/&lt;b&gt;shop');
    expect(page).toContain('of the last 3 of this kind: 2 approved, 1 denied');
    expect(page).toContain('Agents wait for these');
    expect(page).toContain('<title>(1) Approvals');
    control.clock.ms += 61_000;
    expect(await open()).not.toContain('Agents wait for these');
    expect(await open()).toContain('Given up. If you decide now');
  });

  test('has who waited longest on top, and what is asked again at the end of those that wait', async () => {
    const ids: string[] = [];
    for (const n of [1, 2, 3]) {
      ids.push((await ask(numberedRequest(n))).approval_id);
      control.clock.ms += 1_000;
    }
    const listed = async () => [...(await open()).matchAll(/data-key="(apr_\w+)"/g)].map(([, id]) => id);
    expect(await listed()).toEqual(ids);
    control.clock.ms += 57_500;
    await ask(numberedRequest(1));
    const [first, second, third] = ids;
    expect(await listed()).toEqual([second, third, first]);
    expect((await open()).split('data-key="given-up"')).toHaveLength(1);
    control.clock.ms += 2_000;
    expect((await open()).split('data-key="given-up"')[0]).toContain(`data-key="${first}"`);
    expect((await open()).split('data-key="given-up"')[1]).toContain(`data-key="${second}"`);
  });

  test('says a single earlier decision once', async () => {
    await decide((await ask(numberedRequest(1))).approval_id, 'deny');
    await ask(numberedRequest(2));
    expect(await open()).toMatch(/<dd>one of this kind, denied <time/);
  });

  test('counts on every page what the reader may decide, and nothing of others', async () => {
    await ask(numberedRequest(1));
    expect(await open('/secrets')).toMatch(/<title>\(1\) Secrets.*<span class="count" data-waiting>1<\/span>/s);
    expect(await countWaiting(control.context, await addUser(control.context, null))).toBe(0);
  });

  test('a decision that comes too late is told calmly', async () => {
    const { approval_id: id } = await ask(request());
    await decide(id, 'deny');
    const { cookie } = await browserHeaders();
    const late = await control.inBrowser(`/approvals/${id}`, {
      method: 'POST',
      headers: { cookie, origin: control.consoleOrigin },
      body: new URLSearchParams({ decision: 'approve' }),
    });
    expect([late.status, late.headers.get('location')]).toEqual([303, '/approvals?done=was_decided']);
    expect(await open('/approvals?done=was_decided')).toContain('nothing was changed');
  });

  test.each([
    [{ decision: 'approve' }, 'approved'],
    [{ decision: 'deny' }, 'denied'],
    [{ decision: 'approve', grant: 'hour' }, 'granted'],
  ])('the second press of a double click is told what the first one did: %o', async (fields, done) => {
    const { approval_id: id } = await ask(request());
    const { cookie } = await browserHeaders();
    const press = async (body: object) => {
      const headers = { cookie, origin: control.consoleOrigin };
      const options = { method: 'POST', headers, body: new URLSearchParams({ ...body }) };
      return (await control.inBrowser(`/approvals/${id}`, options)).headers.get('location');
    };
    expect([await press(fields), await press(fields)]).toEqual(Array(2).fill(`/approvals?done=${done}`));
    const other = { decision: done === 'denied' ? 'approve' : 'deny' };
    expect(await press(other)).toBe('/approvals?done=was_decided');
    control.clock.ms += 60_000;
    expect(await press(fields)).toBe('/approvals?done=was_decided');
  });
});
