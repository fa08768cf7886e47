import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { startMarketplace } from '../../e2e/marketplace/marketplace_world.ts';
import type { RegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { marketplacePage, type MarketplacePage } from '../../shared/wire/marketplace.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';

const MINUTE_MS = 60_000;
let registry: RegistryServer;
let control: InProcess;
let clock: QuickClock;
let lifetime: ProgramLifetime;

beforeEach(async () => {
  lifetime = new ProgramLifetime((what, error) => {
    throw new Error(`deferred: ${what}`, { cause: error });
  });
  ({ registry, control, clock } = await startMarketplace(250, lifetime));
});
afterEach(async () => {
  lifetime.beginStop();
  await lifetime.drain();
  await control.stop();
  await registry.stop();
});

const browse = (query = '') => parseReply(marketplacePage, control.send(`/v1/marketplace/servers${query}`));
const searches = () => registry.calls.filter((call) => call.includes('search='));
const names = (page: { readonly items: readonly { readonly name: string }[] }) => page.items.map(({ name }) => name);

/** The mirror after the running sync. */
async function fillMirror(): Promise<void> {
  await browse();
  await lifetime.drain();
}

async function everyPage(query: string): Promise<string[]> {
  const found: string[] = [];
  let cursor = '';
  for (;;) {
    const page = await browse(`${query}${cursor}`);
    found.push(...names(page));
    if (page.next_cursor === null) return found;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

const marked = ({ items }: MarketplacePage) => items.filter(({ rule_problem: problem }) => problem !== null).length;

test('an entry of which the rules of the enterprise let nothing run is marked, for its members only', async () => {
  await control.asUser('PUT', '/v1/mcp-rules', { sources: [] });
  const asMember = () => parseReply(marketplacePage, control.asUser('GET', '/v1/marketplace/servers?limit=5'));
  expect(marked(await asMember())).toBeGreaterThan(0);
  expect(marked(await browse('?limit=5'))).toBe(0);
  await control.asUser('PUT', '/v1/mcp-rules', {});
  expect(marked(await asMember())).toBe(0);
});

describe('before there is a mirror', () => {
  test('the first page comes from the registry, without waiting', async () => {
    const page = await browse('?limit=20');
    expect(page).toMatchObject({ stale: false, partial: false });
    // The registry's first page, the newest first.
    expect(names(page)).toEqual(Array.from({ length: 20 }, (_, index) => registry.entry(99 - index).server.name));
    expect(page.items.every(({ installed }) => !installed)).toBe(true);
  });

  test('all entries can be paged through', async () => {
    registry.behaviour = 'well';
    const all = await everyPage('?limit=30');
    expect(new Set(all).size).toBe(250);
    expect(all).toHaveLength(250);
  });

  test("a search uses the registry's search, and says so", async () => {
    const wanted = registry.entry(123).server.name;
    const page = await browse(`?q=${encodeURIComponent(wanted.toUpperCase())}`);
    expect([names(page), page.partial]).toEqual([[wanted], true]);
  });
});

describe('with a complete mirror', () => {
  test('the registry is not called for searches', async () => {
    await fillMirror();
    const page = await browse('?q=mcp&limit=100');
    expect([page.items.length, page.partial, page.stale]).toEqual([100, false, false]);
    expect(searches()).toEqual([]);
    expect(new Set(await everyPage('?q=MCP&limit=70')).size).toBe(250);
  });

  test('names and descriptions are searched, ignoring case', async () => {
    await fillMirror();
    const { server } = registry.entry(77);
    const words = String(server['description']).split(' ').slice(0, 4).join(' ');
    expect(names(await browse(`?q=${encodeURIComponent(words.toUpperCase())}`))).toContain(server.name);
    expect(names(await browse(`?q=${encodeURIComponent(server.name)}`))).toEqual([server.name]);
    expect(names(await browse('?q=nothing%20has%20this'))).toEqual([]);
  });

  test('lists can be filtered by transport and by package registry', async () => {
    await fillMirror();
    const local = await browse('?limit=100&transport=stdio');
    expect(local.items.length).toBeGreaterThan(20);
    expect(local.items.every(({ packages }) => packages[0]?.registry_type === 'npm')).toBe(true);
    expect(await everyPage('?transport=stdio')).toEqual(await everyPage('?registry_type=npm'));
    expect(names(await browse('?registry_type=pypi'))).toEqual([]);
  });

  test('lists can be filtered by secret and by publisher, and entries say what an install would risk', async () => {
    await fillMirror();
    const item = { registryType: 'npm', identifier: '@acme/free', version: '1.0.0', transport: { type: 'stdio' } };
    const server = { name: 'com.acme/free', version: '1.0.0', packages: [item] };
    registry.publish({ server, status: 'active', updatedAt: new Date(clock.now()).toISOString() });
    clock.move(16 * MINUTE_MS);
    await fillMirror();
    clock.move(MINUTE_MS);
    const free = await browse('?needs_secret=false');
    expect(free.items.map(({ name, risks }) => [name, risks.map(({ text }) => text)])).toEqual([
      ['com.acme/free', ['runs code as you', 'new this week']],
    ]);
    expect(await everyPage('?needs_secret=true&limit=100')).toHaveLength(250);
    expect(names(await browse('?publisher=COM.acme'))).toEqual(['com.acme/free']);
    expect(names(await browse('?publisher=com'))).toEqual([]);
  });

  test('changed entries appear and deleted ones disappear', async () => {
    await fillMirror();
    const [changed, deleted, deprecated] = [registry.entry(1), registry.entry(2), registry.entry(3)];
    const updatedAt = new Date(clock.now()).toISOString();
    registry.publish({ ...changed, server: { ...changed.server, version: '9.9.9' }, updatedAt });
    registry.publish({ ...deleted, status: 'deleted', updatedAt });
    registry.publish({ ...deprecated, status: 'deprecated', updatedAt });
    registry.publish({ server: { name: 'io.example/new', version: '1.0.0' }, status: 'active', updatedAt });
    clock.move(16 * MINUTE_MS);
    await fillMirror();
    clock.move(MINUTE_MS);
    const all = await everyPage('?limit=100');
    expect(all).toHaveLength(250);
    expect(all).not.toContain(deleted.server.name);
    expect(all).toContain('io.example/new');
    const [item] = (await browse(`?q=${changed.server.name}`)).items;
    expect(item?.version).toBe('9.9.9');
    const [old] = (await browse(`?q=${deprecated.server.name}`)).items;
    expect(old?.status).toBe('deprecated');
    expect(registry.calls.filter((call) => call.includes('updated_since'))).toHaveLength(1);
  });

  test('with the registry down, replies say how old they are', async () => {
    await fillMirror();
    const { fetched_at } = await browse();
    await registry.stop();
    clock.move(60 * MINUTE_MS);
    const page = await browse('?q=mcp');
    expect(page).toMatchObject({ stale: true, fetched_at, partial: false });
    expect(page.items).toHaveLength(50);
    await registry.start();
  });

  test('with the registry down, nothing is installed from an old entry', async () => {
    await fillMirror();
    const { name } = registry.entry(0).server;
    const install = () =>
      control.asUser('POST', `/v1/marketplace/servers/${name}/install`, { dry_run: true }).then(async (reply) => {
        const error = errorBody.safeParse(await reply.json()).data?.error;
        return [reply.status, error?.code, error?.details?.['last_seen']] as const;
      });
    await registry.stop();
    expect((await install())[1]).not.toBe('registry_unavailable');
    clock.move(60 * MINUTE_MS);
    expect(await install()).toEqual([
      502,
      'registry_unavailable',
      expect.objectContaining({ version: expect.any(String) }),
    ]);
    await registry.start();
  });

  test('another worker with the same database does not fetch it again', async () => {
    await fillMirror();
    const calls = registry.calls.length;
    await fillMirror();
    expect(registry.calls).toHaveLength(calls);
  });
});

describe('a failing registry', () => {
  test.each(['too_many', 'failing', 'garbage', 'endless', 'redirecting'] as const)(
    '%s: there is no list, and it is not called again and again',
    async (behaviour) => {
      registry.behaviour = behaviour;
      const reply = await control.send('/v1/marketplace/servers');
      expect([reply.status, await reply.json()]).toMatchObject([502, { error: { code: 'registry_unavailable' } }]);
      await Promise.all([1, 2, 3, 4, 5].map(() => control.send('/v1/marketplace/servers')));
      expect(registry.calls.length).toBeLessThanOrEqual(2);
    },
  );

  test('a page that was fetched before is shown, marked as stale', async () => {
    registry.behaviour = 'cursor_loop';
    const { fetched_at } = await browse();
    await lifetime.drain();
    registry.behaviour = 'failing';
    clock.move(20 * MINUTE_MS);
    expect(await browse()).toMatchObject({ stale: true, fetched_at });
  });

  test('circular cursors are detected, and the mirror is not considered complete', async () => {
    registry.behaviour = 'cursor_loop';
    await fillMirror();
    expect(registry.calls.length).toBeLessThan(10);
    expect((await browse('?q=mcp')).partial).toBe(true);
  });

  test('invalid entries do not block the others', async () => {
    registry.behaviour = 'bad_entries';
    await fillMirror();
    expect(await everyPage('?limit=100')).toHaveLength(250);
  });

  test('concurrent requests make one call', async () => {
    registry.behaviour = 'slow';
    registry.slowMs = 50;
    await Promise.all(Array.from({ length: 20 }, () => browse()));
    expect(registry.calls.filter((call) => !call.includes('cursor')).length).toBeLessThanOrEqual(2);
  });
});

test('an invalid query is refused', async () => {
  for (const query of [
    '?limit=0',
    '?limit=101',
    '?transport=carrier-pigeon',
    '?registry_type=%00',
    '?sort=name',
    '?needs_secret=maybe',
    '?publisher=',
  ]) {
    expect((await control.send(`/v1/marketplace/servers${query}`)).status).toBe(400);
  }
  const reply = await control.send('/v1/marketplace/servers?cursor=bm90IG91cnM');
  expect(await reply.json()).toMatchObject({ error: { code: 'invalid_cursor' } });
});
