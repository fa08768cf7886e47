import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type HostedUser,
  hostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { newId } from '../../../shared/wire/ids.ts';
import { listAuditPage } from '../../services/audit/audit_log.ts';
import { verifyAudit } from '../../services/audit/audit_verification.ts';

const OLD = 7;
const DAY_MS = 24 * 3_600_000;

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let stranger: HostedUser;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  stranger = await hostedUser(control);
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(owner.tokens.access_token);
  const events = Array.from({ length: OLD }, () => ({
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type: 'sandbox.proxy.passthrough',
    time: '2026-01-01T00:00:00.000Z',
    sidecar_id: null,
    session_id: null,
    actor: 'session',
    data: {},
  }));
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBe(200);
  control.clock.ms += 30 * DAY_MS;
});
afterEach(() => control.stop());

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const yesterday = () => dayOf(control.clock.now() - DAY_MS);

async function open(user: HostedUser, path = '/audit/retention') {
  const reply = await control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
  return { status: reply.status, page: (await reply.text()).replaceAll(/\s+/g, ' ') };
}

async function remove(user: HostedUser, fields: Record<string, string>, origin = PUBLIC_URL) {
  const headers = { cookie: await signInBrowser(control, user.caller), origin };
  const init = { method: 'POST', headers, body: new URLSearchParams(fields), redirect: 'manual' as const };
  const reply = await control.inBrowser('/audit/retention/remove', init);
  return { status: reply.status, location: reply.headers.get('location'), page: await reply.text() };
}

const verified = () => verifyAudit(control.context, owner.caller);
async function list(type: string) {
  const page = await listAuditPage(control.context, owner.caller, { type, limit: 50 });
  if (!page.ok) throw new Error(page.error.message);
  return page.value.items;
}
const kept = async () => (await verified()).events;

describe('the page', () => {
  test('says how long events are kept, how many there are and the oldest, of the own enterprise', async () => {
    const events = await kept();
    const { page } = await open(owner);
    expect(page).toContain('<dd>For ever</dd>');
    expect(page).toContain(`<dt>Events</dt> <dd>${events}</dd>`);
    expect(page).toMatch(/<dd>\s*<time[^>]*>2026-01-02 03:04:05 UTC<\/time>/);
    expect(page).toContain('<dt>Removed so far</dt> <dd>0</dd>');
    const foreign = (await open(stranger)).page;
    expect(foreign).not.toContain(`<dd>${events}</dd>`);
    expect((await control.inBrowser('/audit/retention')).status).toBe(401);
  });

  test('counts what was received before a day, and says what is wrong with a day', async () => {
    const events = await kept();
    const { page } = await open(owner, `/audit/retention?before=${yesterday()}`);
    expect(page).toContain(`${events} events were received before ${yesterday()}.`);
    expect(page).toContain(`href="/audit/retention/remove?before=${yesterday()}"`);
    const none = await open(owner, '/audit/retention?before=2026-01-01');
    expect(none.page).toContain('No event was received before 2026-01-01.');
    expect(none.page).not.toContain('/audit/retention/remove');
    for (const day of [dayOf(control.clock.now()), '2026-02-30', '"><script>', '2026-01-01T00:00:00Z']) {
      const wrong = await open(owner, `/audit/retention?before=${encodeURIComponent(day)}`);
      expect([day, wrong.status, wrong.page.includes('id="before-problem"')]).toEqual([day, 400, true]);
      expect(wrong.page).not.toContain('"><script>');
    }
    expect(await kept()).toBe(events);
  });

  test('shows a member no form, and refuses one who asks anyway', async () => {
    expect((await open(member)).page).not.toContain('Remove old events');
    const before = yesterday();
    const events = await kept();
    expect((await open(member, `/audit/retention?before=${before}`)).status).toBe(403);
    expect((await open(member, `/audit/retention/remove?before=${before}`)).status).toBe(403);
    expect((await remove(member, { before, confirm: before })).status).toBe(403);
    expect(await kept()).toBe(events);
  });
});

describe('the removal', () => {
  test('happens once its day is typed; the rest verifies, and the log names who did it', async () => {
    const before = yesterday();
    const events = await kept();
    expect((await open(owner, `/audit/retention/remove?before=${before}`)).page).toContain(`Type ${before} to confirm`);
    const unconfirmed = await remove(owner, { before, confirm: '2026-01-01' });
    expect([unconfirmed.status, unconfirmed.page.includes('nothing was removed')]).toEqual([400, true]);
    expect(await kept()).toBe(events);
    const removed = await remove(owner, { before, confirm: before });
    expect([removed.status, removed.location]).toEqual([303, '/audit/retention?done=events_removed']);
    expect(await verified()).toMatchObject({ ok: true, removed: events, first_break: null });
    const items = await list('control.audit.pruned');
    expect(items).toMatchObject([{ actor: owner.caller.userId, data: { 'svc.audit.removed': events } }]);
    expect((await open(owner)).page).toContain(`<dt>Removed so far</dt> <dd>${events}</dd>`);
  });

  test('leaves the events of another enterprise, and those of the last day', async () => {
    const before = yesterday();
    const events = await kept();
    expect((await remove(stranger, { before, confirm: before })).status).toBe(303);
    const today = dayOf(control.clock.now());
    expect((await remove(owner, { before: today, confirm: today })).status).toBe(400);
    expect(await kept()).toBe(events);
  });

  test('is refused from another site', async () => {
    const before = yesterday();
    const events = await kept();
    expect((await remove(owner, { before, confirm: before }, 'https://evil.example.test')).status).toBe(403);
    expect(await kept()).toBe(events);
  });

  test('says so if a chain does not verify, and leaves that chain', async () => {
    const before = yesterday();
    const sql = `UPDATE audit_events SET data = '{"a":1}' WHERE type = 'sandbox.proxy.passthrough' AND sequence = 1`;
    await control.context.database.client.execute(sql);
    expect((await remove(owner, { before, confirm: before })).location).toBe(
      '/audit/retention?done=events_removed_but_broken',
    );
    const items = await list('sandbox.proxy.passthrough');
    expect(items.length).toBe(OLD);
  });
});
