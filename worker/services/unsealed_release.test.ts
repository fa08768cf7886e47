import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../../shared/wire/channel.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { enrolInput } from '../../shared/wire/sidecars.ts';
import { findAccount } from '../store/accounts.ts';
import { enrolSidecar } from './sidecars/sidecars.ts';

let control: InProcess;
let sidecar: TestSidecar;
let planted = '';
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  planted = `planted-${randomBytes(16).toString('hex')}`;
});
afterEach(() => control.stop());

const store = (path: string, value: string, owner = 'personal') =>
  control.asUser('POST', '/v1/secrets', { path, value, owner });
const valid = () => ({
  request_id: crypto.randomUUID(),
  reference: { owner: 'personal', path: 'user/demo' },
  host: 'db.example.test',
  reason: 'the client does not use the proxy',
});
const ask = (from: TestSidecar, change: object = {}) =>
  from.call('POST', '/v1/sidecar/unsealed', { body: { ...valid(), ...change } });

async function take(from: TestSidecar, change: object = {}) {
  return from.verify(await (await ask(from, change)).text(), CREDENTIALS_TYP, credentialsPayload);
}
async function releases() {
  const reply = await control.asUser('GET', '/v1/audit-events?type=control.credential.released');
  return auditEventsPage.parse(await reply.json()).items;
}
async function refusal(reply: Response) {
  return [reply.status, errorBody.parse(await reply.json()).error.code];
}

/** A sidecar of another user: of a colleague, or with null of somebody in another enterprise. */
async function sidecarOfAnother(enterpriseId: string | null): Promise<TestSidecar> {
  const user = await addUser(control.context, enterpriseId);
  const other = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  const enrolled = await enrolSidecar(
    control.context,
    user,
    enrolInput.parse({ name: 'theirs', ...(await other.publicKeys()) }),
  );
  if (enrolled.ok) other.enrolled = enrolled.value;
  return other;
}
async function ownEnterprise(): Promise<string> {
  const account = await findAccount(control.context.database, control.context.local?.userId ?? '');
  return account!.enterprise.id;
}

describe('an unsealed credential', () => {
  test('is released without a binding, encrypted to the sidecar, and the log has the host and the reason', async () => {
    await store('user/demo', planted);
    const requestId = crypto.randomUUID();
    const payload = await take(sidecar, { request_id: requestId, host: 'DB.example.test' });
    expect(payload).toMatchObject({ request_id: requestId, missing: [], sidecar_id: sidecar.enrolled.sidecar_id });
    expect(payload.credentials).toMatchObject([{ owner: 'personal', path: 'user/demo' }]);
    expect(await sidecar.unseal(payload.credentials[0]!.sealed)).toEqual({ value: planted });
    expect(await releases()).toMatchObject([
      {
        actor: sidecar.enrolled.sidecar_id,
        data: {
          'svc.control.credential_ref': 'vault://user/demo',
          'svc.control.owner': 'personal',
          'svc.proxy.upstream.host': 'db.example.test',
          'svc.proxy.reason': 'the client does not use the proxy',
        },
      },
    ]);
  });

  test('that is not stored is missing, and no release is recorded', async () => {
    expect(await take(sidecar)).toMatchObject({ credentials: [], missing: [valid().reference] });
    expect(await releases()).toEqual([]);
  });

  test.each([
    ['of the enterprise', { reference: { owner: 'enterprise', path: 'shared/key' } }],
    ['of an MCP server', { reference: { owner: 'personal', path: 'mcp-servers/mcp_1/TOKEN' } }],
    ['without a host', { host: '' }],
    ['for a pattern of hosts', { host: '*.example.test' }],
    ['without a reason', { reason: ' ' }],
    ['for a reason of two lines', { reason: 'one\ntwo' }],
    ['with a field more', { owner: 'enterprise' }],
  ])('is refused %s', async (_, change) => {
    await store('shared/key', planted, 'enterprise');
    expect(await refusal(await ask(sidecar, change))).toEqual([400, 'invalid_input']);
    expect(await releases()).toEqual([]);
  });

  test('of the enterprise is not found as a personal one of the same path', async () => {
    await store('shared/key', planted, 'enterprise');
    const member = await sidecarOfAnother(await ownEnterprise());
    const reference = { owner: 'personal', path: 'shared/key' };
    for (const each of [sidecar, member]) expect(await take(each, { reference })).toMatchObject({ credentials: [] });
    expect(await refusal(await ask(member, { reference: { owner: 'enterprise', path: 'shared/key' } }))).toEqual([
      400,
      'invalid_input',
    ]);
  });

  test('of another user is missing for a colleague and for a stranger', async () => {
    await store('user/demo', planted);
    const others = [await sidecarOfAnother(await ownEnterprise()), await sidecarOfAnother(null)];
    for (const other of others) expect(await take(other)).toMatchObject({ credentials: [], missing: [{}] });
    expect(await releases()).toEqual([]);
  });

  test('is refused to a revoked sidecar, also for a call that was sent before', async () => {
    await store('user/demo', planted);
    const claims = { jti: 'a-nonce-that-is-used-twice' };
    await sidecar.call('POST', '/v1/sidecar/unsealed', { body: valid(), claims });
    const again = await sidecar.call('POST', '/v1/sidecar/unsealed', { body: valid(), claims });
    expect(await refusal(again)).toEqual([401, 'replayed_call']);
    await control.asUser('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
    expect(await refusal(await ask(sidecar))).toEqual([401, 'sidecar_revoked']);
  });

  test.each([
    ['reason', (value: string) => ({ reason: `because ${value} is needed` })],
    ['host', (value: string) => ({ host: `${value}.example.test` })],
  ])('is refused if the %s contains the credential, which is not shown', async (_, change) => {
    await store('user/demo', `${planted}\n`);
    const reply = await ask(sidecar, change(planted));
    const text = await reply.clone().text();
    expect(await refusal(reply)).toEqual([400, 'invalid_input']);
    expect(text).not.toContain(planted);
  });
});

test('an unsealed credential appears in no log line, audit event, error or database file', async () => {
  await store('user/demo', planted);
  const seen = [await (await ask(sidecar)).text(), await (await ask(sidecar, { reason: planted })).text()];
  await control.context.database.client.execute("UPDATE secrets SET sealed = 'v1.AAAA.AAAA'");
  seen.push(await (await ask(sidecar)).text(), await (await control.asUser('GET', '/v1/audit-events')).text());
  const all = Buffer.concat([Buffer.from(JSON.stringify([seen, control.log])), await control.databaseBytes()]);
  expect(all.includes('db.example.test')).toBe(true);
  expect(all.includes(planted)).toBe(false);
});
