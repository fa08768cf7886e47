import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorBody } from '../../shared/wire/errors.ts';
import {
  marketplaceDetail,
  marketplaceInstallReply,
  marketplacePage,
  type MarketplacePage,
} from '../../shared/wire/marketplace.ts';
import type { ControlPlaneUnderTest } from '../runtimes/programs.ts';
import { waitFor } from '../support/wait_for.ts';
import { type RegistryServer, startRegistryServer } from './registry_server.ts';

const ENTRIES = 350;
const ACME = 'io.example.acme/weather';
const apiKey = { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true };
const npm = {
  registryType: 'npm',
  identifier: '@acme/weather',
  version: '1.2.3',
  transport: { type: 'stdio' },
  environmentVariables: [apiKey],
};

/** The marketplace on a runtime, with its own registry. The tests build on each other. */
export function describeMarketplace(
  runtime: string,
  start: (registryUrl: string) => Promise<ControlPlaneUnderTest>,
): void {
  describe(`the marketplace on ${runtime}`, () => {
    let registry: RegistryServer;
    let control: ControlPlaneUnderTest;

    const send = (path: string, init?: RequestInit) => fetch(`${control.url}/v1/marketplace/servers${path}`, init);
    const list = async (query = ''): Promise<MarketplacePage> =>
      marketplacePage.parse(await (await send(query)).json());
    const install = async (name: string) => {
      const headers = { authorization: `Bearer ${control.localKey}` };
      return send(`/${encodeURIComponent(name)}/install`, { method: 'POST', headers });
    };

    beforeAll(async () => {
      registry = await startRegistryServer({ entries: ENTRIES });
      const server = { name: ACME, description: 'Sun, rain and SNOW', version: '1.2.3', packages: [npm] };
      registry.publish({ server, status: 'active', updatedAt: '2026-02-01T00:00:00Z' });
      control = await start(registry.url);
    });
    afterAll(async () => {
      await control.stop();
      await registry.stop();
    });

    test('serves simultaneous first visitors with one call, and nobody waits for the mirror', async () => {
      registry.behaviour = 'slow';
      registry.slowMs = 300;
      const mirrored = Promise.withResolvers<void>();
      registry.laterPages = mirrored.promise;
      const pages = await Promise.all(Array.from({ length: 12 }, () => list('?limit=5')));
      expect(pages.every(({ items, stale }) => items.length === 5 && !stale)).toBe(true);
      // One call for the visitors and one for the mirror.
      expect(registry.calls.filter((call) => !call.includes('cursor=')).length).toBeLessThanOrEqual(2);
      registry.behaviour = 'well';
      mirrored.resolve();
    });

    test('searches names with the registry at first, and all texts once there is a mirror', async () => {
      const first = await list(`?q=${ACME}`);
      expect(first.items.map(({ name }) => name)).toEqual([ACME]);
      await waitFor('a complete mirror', async () => !(await list('?q=snow')).partial);
      const found = await list('?q=rain%20and%20Snow');
      expect([found.items.map(({ name }) => name), found.partial, found.stale]).toEqual([[ACME], false, false]);
      const calls = registry.calls.length;
      for (let index = 0; index < 5; index += 1) await list('?q=mcp');
      expect(registry.calls).toHaveLength(calls);
    });

    test('finds words that are apart and misspelled ones, filters, and says what an install would risk', async () => {
      for (const text of ['snow%20weather', 'wether', 'weather%20mcp%20server%20for%20rain', '@acme/weather']) {
        expect([text, (await list(`?q=${text}&limit=1`)).items[0]?.name]).toEqual([text, ACME]);
      }
      const [only, ...others] = (await list('?publisher=IO.example.acme&needs_secret=true')).items;
      expect([only?.name, others]).toEqual([ACME, []]);
      expect(only?.risks.map(({ text }) => text)).toEqual(expect.arrayContaining(['runs code as you', '1 secret']));
      expect((await list('?publisher=io.example.acme&needs_secret=false')).items).toEqual([]);
    });

    test('pages through all of it', async () => {
      const names: string[] = [];
      let cursor = '';
      do {
        const page = await list(`?limit=100${cursor}`);
        names.push(...page.items.map(({ name }) => name));
        cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
      } while (cursor !== '');
      expect([names.length, new Set(names).size]).toEqual([ENTRIES + 1, ENTRIES + 1]);
    });

    test('shows and installs an entry, once', async () => {
      const detail = marketplaceDetail.parse(await (await send(`/${ACME}`)).json());
      expect(detail.preview?.command).toEqual(['npx', '-y', '@acme/weather@1.2.3']);
      const [first, again] = [await install(ACME), await install(ACME)];
      expect([first.status, again.status]).toEqual([201, 200]);
      const made = marketplaceInstallReply.parse(await first.json());
      expect(made.server).toMatchObject({ registry_id: ACME, status: 'stopped', version: '1.2.3' });
      expect(made.server?.command).toEqual(detail.preview?.command);
      expect(made.required_credentials).toMatchObject([{ name: 'API_KEY', required: true }]);
      expect(marketplaceInstallReply.parse(await again.json()).server?.id).toBe(made.server?.id);
      const headers = { authorization: `Bearer ${control.localKey}` };
      const mine = marketplacePage.parse(await (await send(`?q=${ACME}`, { headers })).json());
      expect([mine.items[0]?.installed, (await list(`?q=${ACME}`)).items[0]?.installed]).toEqual([true, false]);
    });

    test('names what is wrong with a request', async () => {
      for (const [path, status] of [
        ['?limit=0', 400],
        ['?cursor=bm90IG91cnM', 400],
        ['/%00%0a', 404],
        ['/..%2f..%2fsecrets', 404],
        ['/%E2%80%AEevil', 404],
      ] as const) {
        expect([path, (await send(path)).status]).toEqual([path, status]);
      }
      expect((await send(`/${ACME}/install`, { method: 'POST' })).status).toBe(401);
    });

    test('works without the registry, but then installs only entries that it just fetched', async () => {
      await registry.stop();
      expect((await list('?q=mcp&limit=3')).items).toHaveLength(3);
      const gone = await send('/io.example.none%2Fgone');
      expect([gone.status, errorBody.parse(await gone.json()).error.code]).toEqual([502, 'registry_unavailable']);
      const refused = await install('io.example.none/gone');
      expect([refused.status, errorBody.parse(await refused.json()).error.code]).toEqual([502, 'registry_unavailable']);
      await registry.start();
    });
  });
}
