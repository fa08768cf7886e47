import { randomBytes } from 'node:crypto';
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MIGRATIONS } from '../../worker/store/migrations.ts';
import { CONTROL_PLANE } from '../support/program.ts';
import { listening, run as start, runSvc, startLibsqlServer, startNodeAt, until } from './programs.ts';

const migrated = z.object({ applied: z.array(z.number()), schema: z.number() });
const ALL = MIGRATIONS.map(({ number }) => number);

let home = '';
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-db-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const svc = (args: readonly string[], settings: Record<string, string> = {}) => runSvc(home, args, settings);

/** Migrates one empty database with three processes at the same time; returns what each applied. */
async function migrateAtOnce(settings: Record<string, string>): Promise<number[][]> {
  const runs = await Promise.all([1, 2, 3].map(() => svc(['db', 'migrate', '--json'], settings)));
  expect(runs.map(({ exitCode, stderr }) => `${exitCode}${stderr}`)).toEqual(['0', '0', '0']);
  return runs.map(({ stdout }) => migrated.parse(JSON.parse(stdout)).applied);
}

/** What a tenant owns, line by line, without the values of secrets. */
function expectExport(exported: Awaited<ReturnType<typeof svc>>, secret: string): void {
  expect([exported.exitCode, exported.stderr]).toEqual([0, '']);
  const lines = exported.stdout.trimEnd().split('\n');
  const kinds = lines.map((line) => z.object({ kind: z.string() }).parse(JSON.parse(line)).kind);
  expect(kinds).toEqual([
    'user',
    'enterprise',
    'mcp_rules',
    'member',
    'secret',
    'audit_event',
    'audit_chain',
    'audit_verification',
  ]);
  expect(exported.stdout).not.toContain(secret);
}

describe('svc db, and svc export', () => {
  test('migrates once if processes do it at the same time, on a file', async () => {
    const applied = await migrateAtOnce({});
    expect(applied.flat().toSorted((a, b) => a - b)).toEqual(ALL);
    expect(await svc(['db', 'status'])).toMatchObject({ exitCode: 0 });
  });

  test('migrates once if processes do it at the same time, on a server', async () => {
    const server = await startLibsqlServer();
    try {
      const settings = { SVC_DATABASE_URL: server.url };
      const before = await svc(['db', 'status', '--json'], settings);
      expect([before.exitCode, JSON.parse(before.stdout)]).toMatchObject([1, { schema: 0, pending: ALL.length }]);
      const applied = await migrateAtOnce(settings);
      expect(applied.flat().toSorted((a, b) => a - b)).toEqual(ALL);
      expect(await svc(['db', 'migrate'], settings)).toMatchObject({
        stdout: `applied 0 steps; the database has schema ${ALL.length}\n`,
      });
    } finally {
      await server.stop();
    }
  });

  test('says that there is no database, and does not create one', async () => {
    for (const settings of [{}, { SVC_DATABASE_URL: `file:${join(home, 'own.db')}` }]) {
      for (const args of [['status'], ['backup', join(home, 'copy.db')]]) {
        const run = await svc(['db', ...args], settings);
        expect([run.exitCode, run.stderr]).toEqual([1, expect.stringContaining('there is no database')]);
      }
    }
    for (const name of ['control.db', 'own.db']) await expect(stat(join(home, name))).rejects.toThrow('ENOENT');
  });

  test('says that a server does not answer, without printing its token', async () => {
    const settings = { SVC_DATABASE_URL: 'http://127.0.0.1:1', SVC_DATABASE_TOKEN: 'planted-token' };
    const run = await svc(['db', 'status'], settings);
    expect([run.exitCode, run.stderr]).toEqual([1, expect.stringContaining('check SVC_DATABASE_URL')]);
    expect(run.stderr + run.stdout).not.toContain('planted-token');
  });

  test('exports a tenant and copies a database in use; the copy is complete, private, and works in its place', async () => {
    const secret = randomBytes(16).toString('hex');
    const copy = join(home, 'copy.db');
    const control = await startNodeAt(home);
    const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ path: 'user/demo', value: secret });
    expect((await fetch(`${control.url}/v1/secrets`, { method: 'POST', headers, body })).status).toBe(201);
    const exported = await svc(['export'], { SVC_CONTROL_URL: control.url });
    expectExport(exported, secret);
    expect(await svc(['db', 'backup', copy])).toMatchObject({ exitCode: 0 });
    expect((await stat(copy)).mode & 0o777).toBe(0o600);
    const again = await svc(['db', 'backup', copy]);
    expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining('EEXIST')]);
    await fetch(`${control.url}/v1/secrets/user/demo`, { method: 'DELETE', headers });
    await control.stop();

    await Promise.all(['', '-wal', '-shm'].map((end) => rm(join(home, `control.db${end}`), { force: true })));
    await copyFile(copy, join(home, 'control.db'));
    const restored = await startNodeAt(home);
    const check = JSON.stringify({ values: [secret] });
    const found = await fetch(`${restored.url}/v1/secrets/check`, { method: 'POST', headers, body: check });
    expect(await found.json()).toMatchObject({ matches: [{ path: 'user/demo' }] });
    const verified = await fetch(`${restored.url}/v1/audit-events/verify`, { headers });
    expect(await verified.json()).toMatchObject({ ok: true });
    await restored.stop();
  });

  test('makes the first owner of a hosted control plane, whose link signs a browser in', async () => {
    const settings = { SVC_VAULT_KEY: randomBytes(32).toString('base64url'), SVC_PUBLIC_URL: 'https://svc.acme.test' };
    const early = await svc(['db', 'owner', 'ada@acme.test'], settings);
    expect([early.exitCode, early.stderr]).toEqual([1, expect.stringContaining('there is no database')]);
    const worker = start('node', [...CONTROL_PLANE, '--home', home, '--port', '0'], settings);
    const url = await until(worker, listening(worker));
    const made = await svc(['db', 'owner', 'ada@acme.test', '--enterprise', 'Acme'], settings);
    expect([made.exitCode, made.stderr]).toEqual([0, expect.stringContaining('ada@acme.test owns a new enterprise')]);
    const link = await fetch(url + new URL(made.stdout.trim()).pathname, { redirect: 'manual' });
    const cookie = link.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(await (await fetch(`${url}/v1/me`, { headers: { cookie } })).json()).toMatchObject({ role: 'owner' });
    expect(await (await fetch(`${url}/v1/enterprise`, { headers: { cookie } })).json()).toMatchObject({ name: 'Acme' });
    await worker.stop();
  });
});
