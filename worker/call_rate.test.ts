import { afterEach, beforeEach, expect, test } from 'vitest';
import { hostedUser, type HostedUser, outcome, PUBLIC_URL } from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { createdScimToken } from '../shared/wire/scim_tokens.ts';

const MOST = 60;

let control: InProcess;
let user: HostedUser;
beforeEach(async () => {
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL, callsPerMinute: MOST });
  user = await hostedUser(control);
});
afterEach(() => control.stop());

const me = (who = user) => who.call('GET', '/v1/me');
async function useUp(): Promise<void> {
  for (let call = 0; call < MOST; call += 1) expect((await me()).status).toBe(200);
}

test('an enterprise that has made its calls is refused, with when to try again, and others are not', async () => {
  const other = await hostedUser(control);
  const colleague = await hostedUser(control, user.caller.enterpriseId);
  await useUp();
  const refused = await me();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await outcome(refused)).toBe('too_many_calls');
  expect(await outcome(me(colleague))).toBe('too_many_calls');
  expect(await outcome(me(other))).toBe(200);
  control.clock.ms += 1_000;
  expect(await outcome(me())).toBe(200);
  expect(await outcome(me())).toBe('too_many_calls');
});

test('people cannot stop the sidecars of their enterprise, and a call without a valid token counts for nobody', async () => {
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(user.tokens.access_token);
  for (let call = 0; call < 2 * MOST; call += 1) {
    await control.send('/v1/me', { headers: { authorization: `Bearer ${user.tokens.access_token}x` } });
  }
  for (let call = 0; call < MOST - 1; call += 1) expect((await me()).status).toBe(200);
  expect(await outcome(me())).toBe('too_many_calls');
  expect((await sidecar.call('GET', '/v1/sidecar/snapshot?wait=0')).status).toBe(200);
});

test('a directory has as many calls of its own', async () => {
  await control.context.database.client.execute({
    sql: `UPDATE users SET role = 'owner' WHERE id = ?`,
    args: [user.caller.userId],
  });
  const made = await parseReply(createdScimToken, user.call('POST', '/v1/scim-tokens', { name: 'Okta' }));
  const list = () => control.send('/scim/v2/Users', { headers: { authorization: `Bearer ${made.token}` } });
  for (let call = 0; call < MOST; call += 1) expect((await list()).status).toBe(200);
  const refused = await list();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await refused.json()).toMatchObject({ status: '429' });
  expect(await outcome(me())).toBe(200);
});

test('the audit log has the first refusal of a minute, and not each', async () => {
  await useUp();
  for (let call = 0; call < 20; call += 1) await me();
  await control.settle();
  const { rows } = await control.context.database.client.execute(
    `SELECT enterprise_id, data FROM audit_events WHERE type = 'control.enterprise.calls_refused'`,
  );
  expect(rows).toMatchObject([
    { enterprise_id: user.caller.enterpriseId, data: JSON.stringify({ 'svc.control.reason': 'people' }) },
  ]);
});

test('a local control plane has no such limit', async () => {
  const local = await startInProcess({ callsPerMinute: 1 });
  for (let call = 0; call < 5; call += 1) expect((await local.asUser('GET', '/v1/me')).status).toBe(200);
  await local.stop();
});
