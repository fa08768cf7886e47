import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type Client } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { type RegistryServer, startRegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { newLocalKey, newMasterKey } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { nodeOutbound } from '../entries/node_outbound.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import type { ServiceContext } from '../kernel/service_context.ts';
import { start } from '../installation/start.ts';
import { NO_TURNS } from '../kernel/turns.ts';
import { openDatabase } from '../store/database.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { findDocuments, listServers } from '../store/registry_servers.ts';
import { isSyncDue, syncMirror } from './mirror_sync.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ENTRIES = 420;

let directory: string;
let registry: RegistryServer;
let clock: QuickClock;
let clients: Client[] = [];
const masterKey = newMasterKey();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-mirror-'));
  registry = await startRegistryServer({ entries: ENTRIES });
  clock = new QuickClock();
});
afterEach(async () => {
  await registry.stop();
  for (const client of clients) client.close();
  clients = [];
  await rm(directory, { recursive: true, force: true });
});

/** One of the workers that share the database. */
async function worker(options: { readonly syncMs?: number; readonly lifetime?: ProgramLifetime } = {}) {
  const client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
  clients.push(client);
  const started = await start({
    database: openDatabase(client),
    clock,
    turns: NO_TURNS,
    lifetime: options.lifetime ?? new ProgramLifetime(() => undefined),
    outbound: nodeOutbound({ isLocal: true, pinned: new Map() }),
    masterKey,
    makeMasterKey: null,
    localKey: new Secret(newLocalKey()),
    registry: { url: registry.url, syncMs: options.syncMs },
  });
  if (!started.ok) throw new Error(started.error.message);
  return started.value;
}

const mirrorOf = async ({ database }: ServiceContext) => {
  const mirror = await findMirror(database, registry.url);
  if (mirror === null) throw new Error('there is no mirror');
  return mirror;
};
const namesIn = async (context: ServiceContext) =>
  (await listServers(context.database, (await mirrorOf(context)).id, { after: '', limit: 1_000 })).map(
    ({ name }) => name,
  );
const pages = () => registry.calls.length;

describe('the mirror', () => {
  test('has every entry after one sync, and is not synced again until due', async () => {
    const context = await worker();
    await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES);
    expect(pages()).toBe(5);
    const mirror = await mirrorOf(context);
    expect([mirror.syncedAt === null, mirror.lease, isSyncDue(mirror, clock.now())]).toEqual([false, null, false]);
    await syncMirror(context);
    expect(pages()).toBe(5);
    expect(isSyncDue(mirror, clock.now() + 16 * MINUTE_MS)).toBe(true);
  });

  test('is synced by one of many workers', async () => {
    const workers = await Promise.all([worker(), worker(), worker()]);
    await Promise.all(workers.map((each) => syncMirror(each)));
    expect(pages()).toBe(5);
  });

  test('is synced in slices if a request has a time limit, each continuing the last one', async () => {
    const context = await worker({ syncMs: 1 });
    for (let slice = 0; slice < 5; slice += 1) await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES);
    expect(new Set(registry.calls).size).toBe(5);
    expect(pages()).toBe(5);
  });

  test('is continued by another worker when the lease of a killed one expires', async () => {
    const context = await worker({ syncMs: 1 });
    await syncMirror(context);
    const { id } = await mirrorOf(context);
    const killed = { lease: 'of a worker that is gone', until: clock.now() + 90_000, id };
    await context.database.client.execute({
      sql: 'UPDATE registry_mirrors SET lease = :lease, lease_until_ms = :until WHERE id = :id',
      args: killed,
    });
    const other = await worker();
    await syncMirror(other);
    expect(pages()).toBe(1);
    clock.move(91_000);
    await syncMirror(other);
    expect([pages(), (await namesIn(other)).length]).toEqual([5, ENTRIES]);
  });

  test('stops between two pages when the program stops', async () => {
    const lifetime = new ProgramLifetime(() => undefined);
    const context = await worker({ lifetime });
    const syncing = syncMirror(context);
    lifetime.beginStop();
    await syncing;
    expect(pages()).toBeLessThanOrEqual(1);
    expect((await mirrorOf(context)).lease).toBeNull();
  });

  test('waits as long as the registry asks, and loses nothing', async () => {
    const context = await worker();
    registry.behaviour = 'too_many';
    await syncMirror(context);
    expect([pages(), isSyncDue(await mirrorOf(context), clock.now())]).toEqual([1, false]);
    registry.behaviour = 'well';
    clock.move(31_000);
    await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES);
  });

  test('applies changes, and removes deleted entries', async () => {
    const context = await worker();
    await syncMirror(context);
    const [changed, deleted] = [registry.entry(9), registry.entry(10)];
    const updatedAt = new Date(clock.now()).toISOString();
    registry.publish({ ...changed, server: { ...changed.server, description: 'another one' }, updatedAt });
    registry.publish({ ...deleted, status: 'deleted', updatedAt });
    clock.move(16 * MINUTE_MS);
    await syncMirror(context);
    expect(pages()).toBe(6);
    const { id } = await mirrorOf(context);
    expect(await namesIn(context)).not.toContain(deleted.server.name);
    const documents = await findDocuments(context.database, id, [changed.server.name, deleted.server.name]);
    expect([documents.size, documents.get(changed.server.name)]).toEqual([1, expect.stringContaining('another one')]);
  });

  test('keeps the newer version of an entry when an older one arrives', async () => {
    const context = await worker();
    await syncMirror(context);
    const { server } = registry.entry(3);
    clock.move(16 * MINUTE_MS);
    registry.publish({ server: { ...server, version: '0.0.1' }, status: 'active', updatedAt: '2020-01-01T00:00:00Z' });
    clock.move(8 * DAY_MS);
    await syncMirror(context);
    const { id } = await mirrorOf(context);
    expect((await findDocuments(context.database, id, [server.name])).get(server.name)).toContain(server.version);
  });

  test('is fetched completely once a week: entries that vanished are then removed', async () => {
    const context = await worker();
    await syncMirror(context);
    await registry.stop();
    const { port } = new URL(registry.url);
    const smaller = await startRegistryServer({ entries: ENTRIES - 20, port: Number(port) });
    clock.move(16 * MINUTE_MS);
    await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES);
    clock.move(8 * DAY_MS);
    await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES - 20);
    await smaller.stop();
    await registry.start();
  });

  test('is not emptied by a registry that lists nothing', async () => {
    const context = await worker();
    await syncMirror(context);
    await registry.stop();
    const empty = await startRegistryServer({ entries: 0, port: Number(new URL(registry.url).port) });
    clock.move(8 * DAY_MS);
    await syncMirror(context);
    expect(await namesIn(context)).toHaveLength(ENTRIES);
    await empty.stop();
    await registry.start();
  });
});
