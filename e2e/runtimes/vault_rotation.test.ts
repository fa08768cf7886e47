import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Secret } from '../../shared/model/secret.ts';
import { auditVerification } from '../../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../../shared/wire/channel.ts';
import { SEALED_KINDS } from '../../worker/installation/sealed_kinds.ts';
import { Vault } from '../../worker/kernel/vault.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { countOf } from '../support/full_counts.ts';
import { kill } from '../support/process.ts';
import { VAULT_PROGRAM } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import {
  type ControlPlaneUnderTest,
  type NodeUnderTest,
  refusalOfNode,
  run,
  runSvc,
  startLibsqlServer,
  startNodeAt,
} from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';

const SECRETS = 150;
/** Between the calls of a busy tenant: more of them take processor time from the change that they disturb. */
const PAUSE_MS = countOf(10, 60);
const newKey = () => randomBytes(32).toString('base64url');

let home = '';
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-rotation-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A control plane with a tenant's data, and the acknowledged values. */
class Tenant {
  control: Pick<ControlPlaneUnderTest, 'url' | 'localKey'>;
  readonly values = new Map<string, string>();
  readonly failures: string[] = [];
  #sidecar: TestSidecar | null = null;

  constructor(control: Pick<ControlPlaneUnderTest, 'url' | 'localKey'>) {
    this.control = control;
  }

  send(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.control.url + path, init);
  }

  call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${this.control.localKey}`, 'content-type': 'application/json' };
    return this.send(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  }

  async store(path: string, value = randomBytes(12).toString('hex')): Promise<void> {
    const reply = await this.call('POST', '/v1/secrets', { path, value });
    await reply.arrayBuffer();
    if (reply.ok) this.values.set(path, value);
    else this.failures.push(`${path} is not stored: ${reply.status}`);
  }

  /** The value that a sidecar receives: sealed at rest, and signed with the control plane's own key. */
  async read(path: string): Promise<unknown> {
    const sidecar = await this.sidecar();
    const reference = { owner: 'personal', path };
    const body = { request_id: crypto.randomUUID(), reference, host: 'db.example.test', reason: 'a test' };
    const reply = await sidecar.call('POST', '/v1/sidecar/unsealed', { body });
    if (!reply.ok) return reply.status;
    const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
    return sidecar.unseal(payload.credentials[0]?.sealed ?? '');
  }

  async sidecar(): Promise<TestSidecar> {
    if (this.#sidecar !== null) return this.#sidecar;
    const sidecar = await TestSidecar.make((path, init) => this.send(path, init));
    const enrolled = await sidecar.enrol(this.control.localKey);
    if (!enrolled.ok) throw new Error(`not enrolled: ${enrolled.status}`);
    this.#sidecar = sidecar;
    return sidecar;
  }

  /** Saves the client secret of the enterprise's provider; if the input has none, the stored one is opened and kept. */
  async setProvider(secret: { readonly client_secret?: string }): Promise<void> {
    const oidc = { issuer: 'https://idp.example.test', client_id: 'svc', domains: [], ...secret };
    const rest = { name: 'Local', billing_email: null, allowed_domains: [], allowed_providers: null };
    const reply = await this.call('PUT', '/v1/enterprise', { ...rest, sso_required: false, oidc });
    if (!reply.ok) throw new Error(`${reply.status}: ${await reply.text()}`);
  }

  /** Stores and reads until it is told to stop, with short pauses for the others. */
  async keepBusy(lane: number, over: AbortSignal): Promise<void> {
    for (let at = 0; !over.aborted; at += 1, await pause(PAUSE_MS)) {
      const path = `user/lane-${lane}-${at % 20}`;
      await this.store(path);
      // Its first write was refused.
      if (!this.values.has(path)) continue;
      const read = await this.read(path);
      if (JSON.stringify(read) !== JSON.stringify({ value: this.values.get(path) })) {
        this.failures.push(`${path} is read as ${JSON.stringify(read)}`);
      }
    }
  }
}

async function expectAllThere(tenant: Tenant): Promise<void> {
  // Each read is an audit event, so only some are read; `svc vault status` opens them all.
  const some = [...tenant.values].filter((_, at) => at % 5 === 0 || at >= tenant.values.size - 40);
  for (const [path, value] of some) expect([path, await tenant.read(path)]).toEqual([path, { value }]);
  await tenant.setProvider({});
  expect((await tenant.call('GET', '/.well-known/jwks.json')).status).toBe(200);
  const verified = auditVerification.parse(await (await tenant.call('GET', '/v1/audit-events/verify')).json());
  expect(verified).toMatchObject({ ok: true });
}

/** How many values of all kinds a key opens. */
async function countOpened(url: string, key: string): Promise<number> {
  const client = createClient({ url, timeout: 5_000 });
  const after = await Vault.open(new Secret(key));
  const pages = await Promise.all(
    SEALED_KINDS.map((kind) => kind.page(openDatabase(client), { after: '', limit: 10_000 })),
  );
  const examined = await Promise.all(pages.flat().map((row) => row.examine({ before: null, after })));
  client.close();
  return examined.filter(({ state }) => state === 'current').length;
}

/**
 * Kills `svc vault rotate` as soon as the database has begun to change to the new key. It runs for moments and is stopped in
 * between, because it could finish while the test looks.
 */
async function killInBetween(url: string, settings: Record<string, string>): Promise<void> {
  const rotating = run('node', [VAULT_PROGRAM, '--home', home, '--', 'rotate'], settings);
  const client = createClient({ url });
  for (let begun = false; !begun;) {
    await pause(10);
    kill(rotating.child.pid, 'SIGSTOP');
    if (rotating.child.exitCode !== null) throw new Error(`it ended before: ${rotating.output()}`);
    const found = await client.execute("SELECT 1 FROM installation WHERE name = 'vault_key_previous_check'");
    begun = found.rows.length > 0;
    if (!begun) kill(rotating.child.pid, 'SIGCONT');
  }
  const gone = once(rotating.child, 'exit');
  kill(rotating.child.pid, 'SIGKILL');
  await gone;
  client.close();
}

describe('svc vault rotate on a server', () => {
  const started: NodeUnderTest[] = [];
  let server: Awaited<ReturnType<typeof startLibsqlServer>>;
  beforeEach(async () => {
    server = await startLibsqlServer();
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((worker) => worker.stop()));
    await server.stop();
  });

  async function startWorker(keys: Record<string, string>): Promise<NodeUnderTest> {
    const worker = await startNodeAt(home, { SVC_DATABASE_URL: server.url, ...keys });
    started.push(worker);
    return worker;
  }

  test('while workers serve, killed midway and run again: nothing is lost, and the old key opens nothing', async () => {
    const [before, after] = [newKey(), newKey()];
    const changing = { SVC_DATABASE_URL: server.url, SVC_VAULT_KEY: after, SVC_VAULT_KEY_PREVIOUS: before };
    const old = await startWorker({ SVC_VAULT_KEY: before });
    const tenant = new Tenant(old);
    await tenant.setProvider({ client_secret: 'client-secret' });
    for (let at = 0; at < SECRETS; at += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, of) => tenant.store(`user/s-${at + of}`)));
    }
    tenant.control = await startWorker(changing);
    const over = new AbortController();
    const busy = Promise.all([0, 1].map((lane) => tenant.keepBusy(lane, over.signal)));

    await killInBetween(server.url, changing);
    const status = await runSvc(home, ['vault', 'status', '--json'], changing);
    expect([status.exitCode, JSON.parse(status.stdout)]).toMatchObject([1, { finished: false }]);
    expect(await countOpened(server.url, before)).toBeGreaterThan(0);
    const settings = { SVC_DATABASE_URL: server.url };
    const readRefusal = async (keys: Record<string, string>) =>
      (await refusalOfNode(home, { settings: { ...settings, ...keys } })).log;
    expect(await readRefusal({ SVC_VAULT_KEY: before })).toMatchObject({ code: 'wrong_vault_key' });
    expect(await readRefusal({ SVC_VAULT_KEY: after })).toMatchObject({ code: 'missing_vault_key' });
    expect((await fetch(`${old.url}/v1/ready`)).status).toBe(503);
    const late = new Tenant(old);
    await late.store('user/late');
    expect(late.failures).toEqual(['user/late is not stored: 503']);

    const rotated = await runSvc(home, ['vault', 'rotate', '--json'], changing);
    expect([rotated.exitCode, JSON.parse(rotated.stdout)]).toMatchObject([0, { damaged: [] }]);
    over.abort();
    await busy;
    expect(tenant.failures).toEqual([]);
    expect(tenant.values.size).toBeGreaterThan(SECRETS);
    tenant.control = await startWorker({ SVC_VAULT_KEY: after });
    await expectAllThere(tenant);
    expect(await countOpened(server.url, before)).toBe(0);
    const settled = await runSvc(home, ['vault', 'status'], { ...settings, SVC_VAULT_KEY: after });
    expect(settled.exitCode).toBe(0);
    const [, secrets] = /^secrets\t(\d+)\t0\t0$/m.exec(settled.stdout) ?? [];
    expect(Number(secrets)).toBeGreaterThanOrEqual(tenant.values.size);
    expect(settled.stdout).toMatch(/^enterprise_clients\t1\t0\t0$/m);
  });
});

describe('svc vault rotate beside svc up', () => {
  test('changes the key in its file while svc serves, and a backup contains nothing that the old key sealed', async () => {
    const svc = await Svc.up({ home });
    const keyOf = async () => (await readFile(join(home, 'vault.key'), 'utf8')).trim();
    const localKey = (await readFile(join(home, 'local.key'), 'utf8')).trim();
    const tenant = new Tenant({ url: svc.runFile.control_url, localKey });
    await tenant.setProvider({ client_secret: 'client-secret' });
    for (let at = 0; at < 60; at += 1) await tenant.store(`user/s-${at}`);
    const before = await keyOf();
    const url = `file:${join(home, 'control.db')}`;
    const client = createClient({ url, timeout: 5_000 });
    const sealed = (await client.execute('SELECT sealed FROM secrets')).rows.map((row) =>
      JSON.stringify(row['sealed']),
    );
    client.close();
    const over = new AbortController();
    const busy = Promise.all([0, 1].map((lane) => tenant.keepBusy(lane, over.signal)));
    expect(await svc.ok(['vault', 'rotate'])).toContain('everything is sealed with the new key');
    expect(await svc.ok(['vault', 'rotate'])).toContain('everything is sealed with the new key');
    over.abort();
    await busy;
    // A write at the moment of the change may be refused; its caller repeats it.
    expect(tenant.failures.length).toBeLessThanOrEqual(4);
    await expectAllThere(tenant);

    expect(await keyOf()).not.toBe(before);
    expect((await stat(join(home, 'vault.key'))).mode & 0o777).toBe(0o600);
    expect((await readdir(home)).filter((name) => name.includes('vault.key'))).toEqual(['vault.key']);
    expect(await countOpened(url, before)).toBe(0);
    expect(JSON.parse(await svc.ok(['vault', 'status', '--json']))).toMatchObject({ finished: true });
    const backup = join(home, 'backup.db');
    await svc.ok(['db', 'backup', backup]);
    const bytes = await readFile(backup);
    expect(sealed.filter((text) => bytes.includes(JSON.parse(text)))).toEqual([]);
    await svc.stop();

    const again = await Svc.up({ home });
    tenant.control = { url: again.runFile.control_url, localKey };
    await expectAllThere(tenant);
    await again.stop();
  });
});
