import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BAD_ENTRIES } from '../../e2e/marketplace/registry_entries.ts';
import { type RegistryServer, startRegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { ok } from '../../shared/model/result.ts';
import { nodeOutbound } from '../entries/node_outbound.ts';
import { askRegistry, listUrl, type RegistryPage, versionsUrl } from './registry_client.ts';

let registry: RegistryServer;
beforeEach(async () => {
  registry = await startRegistryServer({ entries: 250 });
});
afterEach(() => registry.stop());

const outbound = nodeOutbound({ isLocal: true, pinned: new Map() });
const FIRST = { cursor: null, search: null, updatedSince: null };

async function page(url: string): Promise<RegistryPage> {
  const reply = await askRegistry(outbound, url, Date.now());
  if (!reply.ok) throw new Error(reply.error.message);
  return reply.value;
}

async function problem(url = listUrl(registry.url, FIRST)) {
  const reply = await askRegistry(outbound, url, Date.now());
  return reply.ok ? null : reply.error;
}

describe('the registry is read', () => {
  test('page by page to the last one', async () => {
    const first = await page(listUrl(registry.url, FIRST));
    const second = await page(listUrl(registry.url, { ...FIRST, cursor: first.nextCursor }));
    const third = await page(listUrl(registry.url, { ...FIRST, cursor: second.nextCursor }));
    expect([first, second, third].map(({ records }) => records.length)).toEqual([100, 100, 50]);
    expect(third.nextCursor).toBeNull();
    expect(registry.calls[0]).toBe('/v0/servers?limit=100&version=latest');
  });

  test('for changes since a time, including deletions', async () => {
    const before = registry.entry(7);
    registry.publish({ ...before, status: 'deleted', updatedAt: '2026-06-01T00:00:00.000Z' });
    const { records } = await page(listUrl(registry.url, { ...FIRST, updatedSince: '2026-05-01T00:00:00.000Z' }));
    expect(records.map(({ name, state }) => [name, state])).toEqual([[before.server.name, 'deleted']]);
  });

  test('for the versions of an entry, or one version', async () => {
    const { server } = registry.entry(3);
    registry.publish({ ...registry.entry(3), server: { ...server, version: '9.0.0' } });
    const all = await page(versionsUrl(registry.url, server.name, null));
    expect(all.records.map(({ version, isLatest }) => [version, isLatest])).toEqual([
      ['9.0.0', true],
      [server.version, false],
    ]);
    const one = await page(versionsUrl(registry.url, server.name, server.version));
    expect(one.records.map(({ version }) => version)).toEqual([server.version]);
    expect(await problem(versionsUrl(registry.url, server.name, '8.8.8'))).toMatchObject({ reason: 'not_found' });
  });

  test('in the flat format of early 2025', async () => {
    const current = await page(listUrl(registry.url, FIRST));
    registry.behaviour = 'flat';
    const flat = await page(listUrl(registry.url, FIRST));
    expect(flat.records.map(({ name, version }) => [name, version])).toEqual(
      current.records.map(({ name, version }) => [name, version]),
    );
    expect(flat.records[0]).toMatchObject({ registryTypes: ['npm'], isLatest: true, state: 'active' });
  });
});

describe('faults of a registry', () => {
  test('an invalid entry is skipped and counted', async () => {
    registry.behaviour = 'bad_entries';
    const { records, skipped } = await page(listUrl(registry.url, FIRST));
    expect([records.length, skipped]).toEqual([100, BAD_ENTRIES.length]);
  });

  test('a 429 with an HTML page gives the time to wait', async () => {
    registry.behaviour = 'too_many';
    expect(await problem()).toMatchObject({ reason: 'too_many_requests', retryAfterSeconds: 7 });
  });

  test('the time to wait may be a date', async () => {
    const reply = { status: 503, contentType: '', retryAfter: new Date(90_000).toUTCString(), body: new Uint8Array() };
    const busy = { call: () => Promise.resolve(ok(reply)) };
    const asked = await askRegistry(busy, listUrl(registry.url, FIRST), 30_000);
    expect(asked).toMatchObject({ error: { reason: 'unavailable', retryAfterSeconds: 60 } });
  });

  test.each([
    ['endless', 'bad_reply'],
    ['redirecting', 'bad_reply'],
    ['garbage', 'bad_reply'],
    ['failing', 'unavailable'],
  ] as const)('%s: %s', async (behaviour, reason) => {
    registry.behaviour = behaviour;
    expect(await problem()).toMatchObject({ reason });
  });

  test('no connection: there is no answer', async () => {
    await registry.stop();
    expect(await problem()).toMatchObject({ reason: 'unavailable' });
    await registry.start();
    expect(await problem()).toBeNull();
  });
});
