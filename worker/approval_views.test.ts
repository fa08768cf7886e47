import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { meReply } from '../shared/wire/account.ts';
import { createdView, viewReply } from '../shared/wire/approval_views.ts';
import { approvalPayload } from '../shared/wire/approvals.ts';
import { APPROVAL_TYP } from '../shared/wire/channel.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { requestView, readView } from './services/approvals/approval_views.ts';

let control: InProcess;
let sidecar: TestSidecar;
let connectorId = '';

beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  connectorId = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', ITEMS_SPEC))).id;
});
afterEach(() => control.stop());

const KEY = { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) } as const;
const SEALED = 'header..iv.text.tag';
const REQUEST_ID = 'request-of-the-test';
const verified = async (reply: Promise<Response>, by = sidecar) =>
  by.verify(await (await reply).text(), APPROVAL_TYP, approvalPayload);
async function askApproval(): Promise<string> {
  const body = {
    request_id: REQUEST_ID,
    connector_id: connectorId,
    operation: 'delete-item',
    fingerprint: 'a'.repeat(64),
    summary: 'Items: delete',
    session_id: 'ses_1',
  };
  return (await verified(sidecar.call('POST', '/v1/sidecar/approvals', { body }))).approval_id;
}
const KNOWS: Record<string, string> = { 'svc-approval-knows': 'views' };
const wait = (id: string, by = sidecar, headers = KNOWS) =>
  verified(by.call('GET', `/v1/sidecar/approvals/${id}?wait=0&request_id=${REQUEST_ID}`, { headers }), by);
const want = (id: string) => control.asUser('POST', `/v1/approvals/${id}/views`, { key: KEY });
const answer = (id: string, view: string, by = sidecar) =>
  by.call('POST', `/v1/sidecar/approvals/${id}/views`, { body: { view_id: view, sealed: SEALED } });
const read = (id: string, view: string) => control.asUser('GET', `/v1/approvals/${id}/views/${view}`);
const codeOf = async (reply: Response) => errorBody.parse(await reply.json()).error.code;
const stored = async () => (await control.context.database.client.execute('SELECT * FROM approval_views')).rows;

async function wanted(): Promise<{ id: string; view: string }> {
  const id = await askApproval();
  return { id, view: (await parseReply(createdView, want(id))).id };
}

describe('a request that waits', () => {
  test('is shown to the page that asks, sealed by the sidecar that holds it', async () => {
    const { id, view } = await wanted();
    expect(await parseReply(viewReply, read(id, view))).toEqual({ sealed: null });
    expect((await wait(id)).views).toEqual([{ id: view, key: KEY }]);
    expect((await answer(id, view)).status).toBe(204);
    expect(await parseReply(viewReply, read(id, view))).toEqual({ sealed: SEALED });
    expect((await wait(id)).views).toBeUndefined();
    // The first answer stays.
    expect((await answer(id, view)).status).toBe(404);
  });

  test('is not asked of a sidecar that cannot show it', async () => {
    const { id } = await wanted();
    expect((await wait(id, sidecar, {})).views).toBeUndefined();
  });

  test('is neither asked of another sidecar nor taken from it', async () => {
    const { id, view } = await wanted();
    const other = await control.enrolSidecar();
    expect((await wait(id, other)).views).toBeUndefined();
    expect((await answer(id, view, other)).status).toBe(404);
  });

  test('is shown to nobody but the person whose agent asks, not even to an admin', async () => {
    await control.asUser('DELETE', `/v1/connectors/${connectorId}`);
    const shared = control.asUser('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC);
    connectorId = (await parseReply(installReply, shared)).id;
    const { id, view } = await wanted();
    const { enterprise_id: enterpriseId } = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const admin = { ...(await addUser(control.context, enterpriseId)), role: 'admin' as const };
    expect(await requestView(control.context, admin, id, KEY)).toMatchObject({ error: { code: 'not_found' } });
    expect(await readView(control.context, admin, { id, view })).toMatchObject({ error: { code: 'not_found' } });
  });

  test('leaves nothing behind once it is decided', async () => {
    const { id, view } = await wanted();
    await answer(id, view);
    expect(await stored()).toHaveLength(1);
    await control.asUser('POST', `/v1/approvals/${id}/decide`, { decision: 'deny' });
    expect(await stored()).toEqual([]);
    expect((await read(id, view)).status).toBe(404);
  });

  test('can be read for two minutes, and is then removed by the next', async () => {
    const { id, view } = await wanted();
    await answer(id, view);
    control.clock.ms += 121_000;
    expect((await read(id, view)).status).toBe(404);
    await askApproval();
    await want(id);
    expect(await stored()).toHaveLength(1);
  });

  test('cannot be shown once its agent has given up', async () => {
    const id = await askApproval();
    control.clock.ms += 61_000;
    const reply = await want(id);
    expect([reply.status, await codeOf(reply)]).toEqual([409, 'approval_not_held']);
  });

  test('is shown to a limited number of pages', async () => {
    const id = await askApproval();
    for (let n = 0; n < 8; n += 1) expect((await want(id)).status).toBe(201);
    expect((await want(id)).status).toBe(429);
  });

  test.each([
    ['of another curve', { ...KEY, crv: 'P-384' }],
    ['with its private half', { ...KEY, d: 'd'.repeat(43) }],
  ])('is not sealed to a key %s', async (_, key) => {
    const id = await askApproval();
    expect((await control.asUser('POST', `/v1/approvals/${id}/views`, { key })).status).toBe(400);
  });
});
