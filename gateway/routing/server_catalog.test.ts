import type { Tool } from '@modelcontextprotocol/client';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { ok } from '../../shared/model/result.ts';
import type { Downstream } from '../fronts/downstream.ts';
import { DEFAULT_GATEWAY_LIMITS, type GatewayLimits } from '../gateway_limits.ts';
import type { Fleet } from '../servers/fleet.ts';
import { SecretMask } from '../servers/secret_mask.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { ServerCatalog } from './server_catalog.ts';

const OLD: Tool = { name: 'old', inputSchema: { type: 'object' } };
const NEW: Tool = { name: 'new', inputSchema: { type: 'object' } };
const AT_ONCE = { ...DEFAULT_GATEWAY_LIMITS, keptListMs: 0 };

/** A catalog with one server, whose start and whose list a test finishes. */
function world(kept: readonly Tool[] | null, limits: GatewayLimits = AT_ONCE) {
  const started = Promise.withResolvers<void>();
  const listed = Promise.withResolvers<{ tools: Tool[] }>();
  const asked = Promise.withResolvers<void>();
  const downstream = z.custom<Downstream>().parse({
    mask: new SecretMask([]),
    client: {
      getServerCapabilities: () => ({ tools: { listChanged: true } }),
      getProtocolEra: () => 'legacy',
      transport: { pid: 1 },
      request: () => {
        asked.resolve();
        return listed.promise;
      },
    },
  });
  const supervised = {
    server: localServer({ name: 'demo' }),
    credentials: '',
    current: null as Downstream | null,
    isStarting: true,
    connect: async () => {
      await started.promise;
      supervised.current = downstream;
      supervised.isStarting = false;
      return ok(downstream);
    },
  };
  const server = z.custom<SupervisedServer>().parse(supervised);
  const fleet = z.custom<Fleet>().parse({
    listed: Promise.resolve(),
    serversOf: () => [server],
    find: () => server,
    prefixOf: () => 'demo',
    nameOf: () => 'demo',
  });
  const lists = z
    .custom<ConstructorParameters<typeof ServerCatalog>[0]['kept']>()
    .parse({ read: () => kept, write: () => Promise.resolve() });
  const late = Promise.withResolvers<readonly [kind: string, serverId: string]>();
  const onLate = (...told: readonly [kind: string, serverId: string]): void => late.resolve(told);
  const catalog = new ServerCatalog({ fleet, limits, now: () => 0, kept: lists, onLate });
  const names = async (): Promise<readonly string[]> => {
    const listings = await catalog.listAll('tools', HOST_CALLER, new AbortController().signal);
    return listings.flatMap(({ items }) => items.map(({ name }) => name));
  };
  const known = async (kind: 'tools' | 'prompts' = 'tools'): Promise<readonly string[] | null> => {
    const listings = await catalog.listKnown(kind, HOST_CALLER, new AbortController().signal);
    return listings?.flatMap(({ items }) => items.map(({ name }) => name)) ?? null;
  };
  const starting = () => catalog.startingNames(HOST_CALLER, []);
  const end = (): void => void (supervised.current = null);
  return { names, known, starting, started, listed, asked, end, late: late.promise };
}

test('a server that is still starting has the list of its last run', async () => {
  const { names, started } = world([OLD]);
  expect(await names()).toEqual(['old']);
  started.resolve();
});

test('a server that runs, and has not listed yet, is waited for', async () => {
  const { names, started, listed, asked } = world([OLD]);
  started.resolve();
  const found = names();
  await asked.promise;
  // Longer than the patience for a starting server.
  await new Promise((resolve) => setTimeout(resolve, 20));
  listed.resolve({ tools: [NEW] });
  expect(await found).toEqual(['new']);
});

test('a server that runs, and does not list in time, has the list of its last run; clients are notified of its own', async () => {
  const { names, started, listed, late } = world([OLD], { ...AT_ONCE, freshListMs: 0 });
  started.resolve();
  expect(await names()).toEqual(['old']);
  expect(await names()).toEqual(['old']);
  listed.resolve({ tools: [NEW] });
  expect(await late).toEqual(['tools', localServer().id]);
  expect(await names()).toEqual(['new']);
});

test('a server without a list of its last run is waited for', async () => {
  const { names, started, listed } = world(null);
  const found = names();
  started.resolve();
  listed.resolve({ tools: [NEW] });
  expect(await found).toEqual(['new']);
});

test('a server that takes long to start, without a list of its last run, is left out in time, and named', async () => {
  const { names, starting, started, listed } = world(null, { ...AT_ONCE, listMs: 1 });
  expect(await names()).toEqual([]);
  expect(starting()).toEqual(['demo']);
  started.resolve();
  listed.resolve({ tools: [NEW] });
  await vi.waitFor(async () => expect(await names()).toEqual(['new']), { timeout: 60_000 });
  expect(starting()).toEqual([]);
});

test('what is known is the list of a server that runs, and of the last run of one that does not', async () => {
  const { names, known, started, listed } = world([OLD]);
  expect(await known()).toEqual(['old']);
  started.resolve();
  listed.resolve({ tools: [NEW] });
  await vi.waitFor(async () => expect(await names()).toEqual(['new']), { timeout: 60_000 });
  expect(await known()).toEqual(['new']);
});

test('a server of which nothing is known is asked, but not waited for each time', async () => {
  const { names, known, started, listed } = world(null, { ...AT_ONCE, listMs: 1 });
  expect(await known()).toBeNull();
  expect(await names()).toEqual([]);
  expect(await known()).toEqual([]);
  expect(await known('prompts')).toBeNull();
  started.resolve();
  await vi.waitFor(async () => expect(await known()).toBeNull(), { timeout: 60_000 });
  listed.resolve({ tools: [NEW] });
});

test('a server that has listed is waited for again when it has ended', async () => {
  const { names, known, started, listed, end } = world(null, { ...AT_ONCE, listMs: 1 });
  expect(await names()).toEqual([]);
  started.resolve();
  listed.resolve({ tools: [NEW] });
  await vi.waitFor(async () => expect(await names()).toEqual(['new']), { timeout: 60_000 });
  end();
  expect(await known()).toBeNull();
});

test('a list comes before the first clients give up, which wait 5 s', () => {
  const { listMs, reportMs, keptListMs, freshListMs } = DEFAULT_GATEWAY_LIMITS;
  expect(Math.max(listMs, keptListMs + freshListMs) + reportMs).toBeLessThan(5_000);
});

test('clients are notified of the list of a running server that they were answered without', async () => {
  const { names, started, listed, asked, late } = world(null, { ...AT_ONCE, listMs: 500 });
  started.resolve();
  const found = names();
  await asked.promise;
  expect(await found).toEqual([]);
  listed.resolve({ tools: [NEW] });
  expect(await late).toEqual(['tools', localServer().id]);
  expect(await names()).toEqual(['new']);
});
