import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  outcome,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { dependenciesReply } from '../../shared/wire/status/dependencies.ts';
import { MAIL } from '../kernel/mail.ts';
import { SYNC } from '../marketplace/mirror_sync.ts';

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

async function described(who: HostedUser = owner) {
  const { items } = await parseReply(dependenciesReply, who.call('GET', '/v1/dependencies'));
  return items;
}

const run = (sql: string, args: (string | number | null)[]) => control.context.database.client.execute({ sql, args });

const SINK = { kind: 'slack', name: 'alarm', from: 'now', url: 'https://hooks.example.test/secret-part' };

test('is for admins only, and strangers learn nothing', async () => {
  expect(await outcome(member.call('GET', '/v1/dependencies'))).toBe('admin_required');
  expect((await control.send('/v1/dependencies')).status).toBe(401);
  expect((await control.send(`${control.consoleOrigin}/dependencies`)).status).toBe(401);
  const cookie = await signInBrowser(control, member.caller);
  const page = await control.send(`${control.consoleOrigin}/dependencies`, { headers: { cookie } });
  expect([page.status, await page.text()]).toEqual([403, expect.stringContaining('ask an admin')]);
});

test('names a sink that fails and one that was stopped, since when, why, and what to do', async () => {
  await owner.call('POST', '/v1/audit-sinks', SINK);
  await owner.call('POST', '/v1/audit-sinks', { ...SINK, name: 'archive' });
  const since = '2026-01-02T00:00:00.000Z';
  await run(`UPDATE audit_sinks SET failures = 3, failing_since = ?, problem = 'status 500' WHERE name = 'alarm'`, [
    since,
  ]);
  await run(
    `UPDATE audit_sinks SET disabled_at = ?, disabled_reason = 'gone', problem = 'status 410' WHERE name = 'archive'`,
    [since],
  );
  const sinks = (await described())
    .filter(({ kind }) => kind === 'sink')
    .toSorted((a, b) => a.name.localeCompare(b.name));
  expect(sinks).toMatchObject([
    { name: 'alarm', state: 'failing', since, problem: 'status 500', fix: expect.stringContaining('sent again') },
    {
      name: 'archive',
      state: 'stopped',
      since,
      problem: 'status 410',
      fix: expect.stringContaining('sink enable snk_'),
    },
  ]);
  expect(JSON.stringify(sinks)).not.toContain('secret-part');
  const { owner: other } = await ownerWithMember(control);
  expect((await described(other)).filter(({ kind }) => kind === 'sink')).toEqual([]);
});

test('says what this program saw of mail, of a provider and of the registry, and calls nobody', async () => {
  const { signIn, registry, clock } = control.context;
  let calls = 0;
  const { outbound } = control.context;
  const counting: typeof outbound = {
    call: (request) => {
      calls += 1;
      return outbound.call(request);
    },
  };
  Object.assign(control.context, { outbound: counting });
  signIn.outcomes.note(MAIL, 'the mail service answered with status 500', clock.now());
  registry.outcomes.note(SYNC, 'the registry answered with status 502', clock.now());
  const now = new Date(clock.now()).toISOString();
  const items = await described();
  expect(items.find(({ kind }) => kind === 'registry')).toMatchObject({ state: 'failing', since: now });
  expect(items.find(({ kind }) => kind === 'database')).toMatchObject({ state: 'works', worked_at: now });
  expect(items.filter(({ kind }) => kind === 'replica')).toEqual([]);
  registry.outcomes.note(SYNC, null, clock.now());
  expect((await described()).find(({ kind }) => kind === 'registry')?.state).not.toBe('failing');
  Object.assign(control.context, { outbound });
  expect(calls).toBe(0);
});

test('shows the discovery document of the own provider to its enterprise alone', async () => {
  const settings = { name: 'Acme', billing_email: null, allowed_domains: [], allowed_providers: null };
  const oidc = { issuer: 'https://id.acme.test', client_id: 'svc', client_secret: 'planted', domains: [] };
  const saved = owner.call('PUT', '/v1/enterprise', { ...settings, sso_required: false, oidc });
  expect(await outcome(saved)).toBe(200);
  const { signIn, clock } = control.context;
  signIn.outcomes.note(owner.caller.enterpriseId, 'its discovery document could not be read', clock.now());
  const own = (await described()).find(({ name }) => name === 'https://id.acme.test');
  expect(own).toMatchObject({
    kind: 'sign_in',
    state: 'failing',
    fix: expect.stringContaining('openid-configuration'),
  });
  const { owner: other } = await ownerWithMember(control);
  await other.call('PUT', '/v1/enterprise', { ...settings, sso_required: false, oidc });
  const theirs = (await described(other)).find(({ name }) => name === 'https://id.acme.test');
  expect(theirs).toMatchObject({ state: 'unused', since: null, problem: null });
});

test('counts the sidecars of the enterprise that were seen, and browsers that were not reached', async () => {
  const { userId, enterpriseId } = owner.caller;
  const now = new Date(control.clock.now()).toISOString();
  for (const [id, seen] of [
    ['sdc_a', now],
    ['sdc_b', '2020-01-01T00:00:00.000Z'],
  ] as const) {
    await run(
      `INSERT INTO sidecars (id, enterprise_id, user_id, name, signing_key, receiving_key, created_at, last_seen_at)
       VALUES (?, ?, ?, 'a', '{}', '{}', ?, ?)`,
      [id + enterpriseId, enterpriseId, userId, now, seen],
    );
  }
  await signInBrowser(control, owner.caller);
  const { rows } = await run('SELECT id FROM browser_sessions WHERE user_id = ?', [userId]);
  await run(
    `INSERT INTO push_subscriptions (session_id, user_id, endpoint_hash, host, sealed, created_at, failures, problem)
     VALUES (?, ?, ?, 'push.example.test', 'x', ?, 2, 'status 500')`,
    [z.string().parse(rows[0]?.['id']), userId, userId, now],
  );
  const items = await described();
  expect(items.find(({ kind }) => kind === 'sidecars')).toMatchObject({
    name: '1 of 2 sidecars connected',
    state: 'works',
    worked_at: now,
  });
  expect(items.find(({ kind }) => kind === 'push')).toMatchObject({
    name: 'push.example.test',
    state: 'failing',
    problem: '1 of 1 browsers were not reached: status 500',
  });
  const { owner: other } = await ownerWithMember(control);
  expect((await described(other)).find(({ kind }) => kind === 'sidecars')?.name).toBe('0 of 0 sidecars connected');
});

test('names a minted secret that failed last by its path', async () => {
  const source = { kind: 'client_credentials', token_url: 'https://id.example.test/token', client_id: 'ci' };
  const body = { path: 'ci/token', owner: 'enterprise', key: 'planted-key', source };
  expect(await outcome(owner.call('POST', '/v1/secret-sources', body))).toBe(201);
  const states = async () => (await described()).filter(({ kind }) => kind === 'source');
  expect(await states()).toMatchObject([{ name: '1 source without a failure', state: 'unused' }]);
  const at = '2026-01-02T00:00:00.000Z';
  await run('UPDATE secret_sources SET failure = ?, failed_at = ?', ['nobody answers', at]);
  expect(await states()).toMatchObject([
    { name: 'ci/token', state: 'failing', since: at, problem: expect.stringContaining('nobody answers') },
  ]);
  expect(JSON.stringify(await states())).not.toContain('planted-key');
  const { owner: other } = await ownerWithMember(control);
  expect((await described(other)).filter(({ kind }) => kind === 'source')).toEqual([]);
});

test('the page shows what fails first, and how it is mended', async () => {
  await owner.call('POST', '/v1/audit-sinks', SINK);
  await run(`UPDATE audit_sinks SET failures = 1, failing_since = ?, problem = 'status 500'`, [
    '2026-01-02T00:00:00.000Z',
  ]);
  const cookie = await signInBrowser(control, owner.caller);
  const page = await control.send(`${control.consoleOrigin}/dependencies`, { headers: { cookie, origin: PUBLIC_URL } });
  const text = await page.text();
  expect(page.status).toBe(200);
  expect(text.indexOf('alarm')).toBeGreaterThan(0);
  expect(text.indexOf('alarm')).toBeLessThan(text.indexOf('primary'));
  expect(text).toContain('status 500');
});
