import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Secret } from '../../shared/model/secret.ts';
import { type AuditVerification, auditVerification } from '../../shared/wire/audit_events.ts';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { startInProcess } from './in_process.ts';
import {
  type ControlPlaneUnderTest,
  runSvc,
  startDenoAt,
  startLibsqlServer,
  startNodeAt,
  startOnWorkerd,
} from './programs.ts';
import { sampleOf } from '../support/full_counts.ts';
import { HANGS_MS } from '../support/hangs.ts';

const OLD_SECRETS = 25;

let home = '';
const vaultKey = randomBytes(32).toString('base64url');
const localKey = `svc_local_${randomBytes(32).toString('base64url')}`;
const running: { stop(): Promise<void> }[] = [];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-retention-'));
  await writeFile(join(home, 'vault.key'), `${vaultKey}\n`, { mode: 0o600 });
  await writeFile(join(home, 'local.key'), `${localKey}\n`, { mode: 0o600 });
});
afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.stop();
  await rm(home, { recursive: true, force: true });
});

/** Events of a control plane whose clock was at the beginning of 2026. */
async function recordOld(url: string): Promise<void> {
  const client = createClient({ url, timeout: 5_000 });
  const keys = { masterKey: new Secret(vaultKey), localKey: new Secret(localKey) };
  const control = await startInProcess({ database: openDatabase(client), ...keys });
  const headers = { authorization: `Bearer ${localKey}`, 'content-type': 'application/json' };
  for (let at = 0; at < OLD_SECRETS; at += 1) {
    const body = JSON.stringify({ path: `user/s-${at}`, value: 'value' });
    expect((await control.send('/v1/secrets', { method: 'POST', headers, body })).status).toBe(201);
  }
  await control.stop();
  client.close();
}

const fileUrl = () => `file:${join(home, 'control.db')}`;

async function keepRunning<T extends ControlPlaneUnderTest>(starting: Promise<T>): Promise<T> {
  const control = await starting;
  running.push(control);
  return control;
}

const call = (control: ControlPlaneUnderTest, method: string, path: string, body?: unknown) =>
  fetch(control.url + path, {
    method,
    headers: { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function verifyLog(control: ControlPlaneUnderTest): Promise<AuditVerification> {
  return auditVerification.parse(await (await call(control, 'GET', '/v1/audit-events/verify')).json());
}

/** The console's page about retention, for the local owner's browser. */
async function retentionPage(control: ControlPlaneUnderTest): Promise<string> {
  const { url } = signInLinkReply.parse(await (await call(control, 'POST', '/v1/sign-in-links')).json());
  const { host, pathname } = new URL(url);
  const opened = await fetchAs(host, control.url + pathname, {});
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  return (await fetchAs(host, `${control.url}/audit/retention`, { headers: { cookie } })).text();
}

// The code is the same on both.
const RUNTIMES: readonly [string, typeof startNodeAt | typeof startDenoAt][] = [
  ['Node', startNodeAt],
  ['Deno', startDenoAt],
];

describe.each(sampleOf(RUNTIMES, 1))('SVC_AUDIT_RETENTION_DAYS on %s', (_, startAt) => {
  test('removes old events automatically, and the rest verifies', async () => {
    await recordOld(fileUrl());
    const control = await keepRunning(startAt(home, { SVC_AUDIT_RETENTION_DAYS: '30' }));
    await vi.waitFor(async () => expect((await verifyLog(control)).removed).toBe(OLD_SECRETS), { timeout: HANGS_MS });
    expect(await verifyLog(control)).toMatchObject({ ok: true, events: 1 });
    expect((await call(control, 'POST', '/v1/secrets', { path: 'user/new', value: 'v' })).status).toBe(201);
    expect(await verifyLog(control)).toMatchObject({ ok: true, events: 2, removed: OLD_SECRETS });
    expect(control.output()).not.toContain('deferred work failed');
    expect(await retentionPage(control)).toContain('For 30 days after they were received');
  });
});

test("in workerd the platform's cron trigger runs it", async () => {
  const server = await startLibsqlServer();
  running.push(server);
  await recordOld(server.url);
  const settings = { SVC_VAULT_KEY: vaultKey, SVC_AUDIT_RETENTION_DAYS: '30' };
  const control = await keepRunning(startOnWorkerd({ url: server.url }, settings));
  expect(await verifyLog(control)).toMatchObject({ ok: true, removed: 0 });
  expect(await retentionPage(control)).toContain('For 30 days after they were received');
  const asked = await fetch(`${control.url}/cdn-cgi/handler/scheduled`);
  expect([asked.status, await asked.text()]).toEqual([200, 'ok']);
  expect(await verifyLog(control)).toMatchObject({ ok: true, events: 1, removed: OLD_SECRETS });
});

describe('svc audit prune', () => {
  test('removes, or only counts, next to a serving worker; what stays is exported, checked and resealed', async () => {
    await recordOld(fileUrl());
    const control = await keepRunning(startNodeAt(home));
    const svc = (...args: string[]) => runSvc(home, ['audit', ...args], { SVC_CONTROL_URL: control.url });
    const counted = await svc('prune', '--older-than', '30d', '--dry-run', '--json');
    expect([counted.exitCode, JSON.parse(counted.stdout)]).toMatchObject([0, { removed: OLD_SECRETS, dry_run: true }]);
    expect(await verifyLog(control)).toMatchObject({ events: OLD_SECRETS, removed: 0 });
    const pruned = await svc('prune', '--older-than', '30d');
    expect([pruned.exitCode, pruned.stdout]).toEqual([0, expect.stringContaining(`removed ${OLD_SECRETS} events`)]);
    const listed = await svc('list', '--type', 'control.audit.');
    expect(listed.stdout).toContain('control.audit.pruned');
    expect(await verifyLog(control)).toMatchObject({ ok: true, events: 1, removed: OLD_SECRETS });
    expect((await svc('verify')).exitCode).toBe(0);
    expect(await svc('prune', '--older-than', '1h')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('at least a day ago'),
    });

    // The export of what is left is checked without a control plane.
    expect((await call(control, 'POST', '/v1/secrets', { path: 'user/new', value: 'v' })).status).toBe(201);
    const exported = await svc('export');
    expect([exported.exitCode, exported.stderr]).toEqual([0, expect.stringContaining('exported 2 events in 1 chain')]);
    const file = join(home, 'audit.ndjson');
    const verify = async (text: string) => {
      await writeFile(file, text);
      return runSvc(home, ['audit', 'verify', '--file', file], { SVC_CONTROL_URL: 'http://127.0.0.1:9' });
    };
    expect(await verify(exported.stdout)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`ok: 2 events in 1 chain`),
    });
    expect(await verify(exported.stdout.replace('control.audit.pruned', 'control.audit.listed'))).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining(`broken\twrong_hash at event ${OLD_SECRETS + 1} of ent_`),
    });

    // A new master key reseals the beginnings of the chains.
    expect((await runSvc(home, ['vault', 'rotate', '--json'], {})).stdout).toContain('"audit_beginnings":1');
    expect(await verifyLog(control)).toMatchObject({ ok: true, removed: OLD_SECRETS });
    await control.stop();
    const after = await keepRunning(startNodeAt(home));
    expect(await verifyLog(after)).toMatchObject({ ok: true, removed: OLD_SECRETS });
  });
});
