import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addUser, type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { Secret } from '../../shared/model/secret.ts';
import { hostBindingInput } from '../../shared/wire/host_binding.ts';
import { findAccount } from '../store/accounts.ts';
import { listAuditPage } from './audit/audit_log.ts';
import { verifyAudit } from './audit/audit_verification.ts';
import type { Caller } from '../kernel/caller.ts';
import { explainRequest } from './bindings/explain.ts';
import {
  createHostBinding,
  getHostBinding,
  listHostBindingPage,
  putHostBinding,
  removeHostBinding,
} from './bindings/host_bindings.ts';
import { listSecretPage, removeSecret, storeSecret } from './vault/secrets.ts';
import { listSidecarPage, removeSidecar } from './sidecars/sidecars.ts';

let control: InProcess;
let owner: Caller;
/** A member of the same enterprise, and the admin of another one. */
let colleague: Caller;
let stranger: Caller;
let bindingId = '';
let sidecarId = '';

const PAGE = { limit: 100 };
const binding = (change: object = {}) =>
  hostBindingInput.parse({ host: 'a.test', scheme: 'bearer', credential_ref: 'vault://user/demo', ...change });
const secret = (name: 'personal' | 'enterprise') => ({ path: 'user/demo', value: new Secret('value'), owner: name });

beforeAll(async () => {
  control = await startInProcess();
  const { context } = control;
  const account = await findAccount(context.database, context.local?.userId ?? '');
  owner = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'admin' };
  colleague = await addUser(context, owner.enterpriseId);
  stranger = await addUser(context, null);
  await storeSecret(context, owner, secret('personal'));
  const created = await createHostBinding(context, owner, binding());
  bindingId = created.ok ? created.value.value.id : '';
  sidecarId = (await control.enrolSidecar()).enrolled.sidecar_id;
});
afterAll(() => control.stop());

describe.each([
  ['a colleague', () => colleague],
  ['a stranger', () => stranger],
])('%s', (_, who) => {
  test('sees nothing of a user’s own', async () => {
    const { context } = control;
    expect(await listSecretPage(context, who(), PAGE)).toMatchObject({ value: { items: [] } });
    expect(await listHostBindingPage(context, who(), PAGE)).toMatchObject({ value: { items: [] } });
    expect(await listSidecarPage(context, who(), PAGE)).toMatchObject({ value: { items: [] } });
    const explained = await explainRequest(context, who(), { method: 'GET', url: 'https://a.test/' });
    expect(explained).toMatchObject({ value: { decision: 'passthrough' } });
  });

  test('finds nothing of it by any query', async () => {
    const { context } = control;
    const refusals = [
      await getHostBinding(context, who(), bindingId),
      await putHostBinding(context, who(), bindingId, binding()),
      await removeHostBinding(context, who(), bindingId),
      await removeSecret(context, who(), { owner: 'personal', pathOrId: 'user/demo' }),
      await removeSidecar(context, who(), sidecarId),
    ];
    expect(refusals.map((refusal) => (refusal.ok ? 'done' : refusal.error.code))).toEqual(Array(5).fill('not_found'));
  });
});

test('a member cannot change what the enterprise owns, and an admin can', async () => {
  const { context } = control;
  const shared = binding({ owner: 'enterprise' });
  expect(await storeSecret(context, colleague, secret('enterprise'))).toMatchObject({
    error: { code: 'admin_required' },
  });
  expect(await createHostBinding(context, colleague, shared)).toMatchObject({ error: { code: 'admin_required' } });
  const created = await createHostBinding(context, owner, shared);
  const id = created.ok ? created.value.value.id : '';
  expect(await getHostBinding(context, colleague, id)).toMatchObject({ ok: true });
  expect(await removeHostBinding(context, colleague, id)).toMatchObject({ error: { code: 'admin_required' } });
  expect(await getHostBinding(context, stranger, id)).toMatchObject({ error: { code: 'not_found' } });
});

test('an enterprise sees only its own audit log', async () => {
  const { context } = control;
  expect(await listAuditPage(context, stranger, PAGE)).toMatchObject({ value: { items: [] } });
  expect(await verifyAudit(context, stranger)).toMatchObject({ ok: true, events: 0 });
  const seen = await listAuditPage(context, colleague, PAGE);
  expect(seen.ok && seen.value.items.length > 0).toBe(true);
});

test('a database failure is reported as unavailable', async () => {
  const gone = await startInProcess();
  gone.context.database.client.close();
  const reply = await gone.asUser('GET', '/v1/secrets');
  expect([reply.status, await reply.json()]).toMatchObject([503, { error: { code: 'database_unavailable' } }]);
  await gone.stop();
});

test('a full disk is named, because trying again does not help', async () => {
  const full = await startInProcess();
  await full.context.database.client.execute('PRAGMA max_page_count = 1');
  const large = { owner: 'personal', path: 'a/b', value: 'x'.repeat(60_000) };
  const reply = await full.asUser('POST', '/v1/secrets', large);
  const message = expect.stringMatching(/^the disk of the database is full, .* free some space/);
  expect([reply.status, await reply.json()]).toMatchObject([503, { error: { code: 'database_unavailable', message } }]);
  await full.stop();
});

test('a write with a master key that was replaced is reported as such, for a sidecar too', async () => {
  const changed = await startInProcess();
  const sidecar = await TestSidecar.make(changed.send, 'X25519', () => changed.clock.now());
  await sidecar.enrol(changed.localKey);
  await changed.context.database.client.execute("INSERT INTO installation VALUES ('vault_key_mark', 'another')");
  const body = { time: '2026-01-01T00:00:00.000Z', events: [] };
  const replies = [
    await changed.asUser('POST', '/v1/secrets', { owner: 'personal', path: 'a/b', value: 'x' }),
    await sidecar.call('POST', '/v1/sidecar/events', { body }),
  ];
  for (const reply of replies) {
    const message = expect.stringMatching(/^the master key was changed .* try again/);
    expect([reply.status, await reply.json()]).toMatchObject([503, { error: { code: 'master_key_changed', message } }]);
  }
  await changed.stop();
});
