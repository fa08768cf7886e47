import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { consoleSuite } from './console_suite.ts';
import { type ConsoleWorld, savePicture } from './console_world.ts';
import { WEATHER_VERSIONS } from './marketplace_entries.ts';
import { seedMirror } from './mirror_seeds.ts';
import { type OpenControl, openOnNode } from './open_control.ts';
import { spreadRequests } from './spread_requests.ts';

// The pages that the documentation has pictures of; CONSOLE_SHOTS=write keeps these.

const ENTRIES = 400;
const MAX_PICTURE_BYTES = 200_000;
const PICTURES = {
  overview: '/',
  audit: '/audit',
  marketplace: '/marketplace?q=weather',
  explain: '/bindings?method=GET&url=https%3A%2F%2Fapi.github.com%2Fuser%2Frepos',
} as const;
let registry: RegistryServer;
let control: OpenControl;
let page: Page;
const start = async () => {
  registry = await startRegistryServer({ entries: ENTRIES });
  return (control = await openOnNode({ SVC_REGISTRY_URL: registry.url }));
};
const prepare = async (world: ConsoleWorld) => {
  await world.seed();
  await bindMore();
  await spreadRequests(world.sidecar, Date.now());
  await recordMore();
  const generated = Array.from({ length: ENTRIES }, (_, index) => registry.entry(index));
  await seedMirror(control.database, registry.url, [...generated, WEATHER_VERSIONS.at(-1)!]);
  page = await world.open();
};
const suite = consoleSuite({ control: start, prepare });
afterAll(() => registry?.stop());

async function bindMore(): Promise<void> {
  for (const path of ['user/maps', 'user/registry'])
    await suite.world.api('POST', '/v1/secrets', { path, value: path });
  const maps = { host: 'maps.googleapis.com', scheme: 'query-param', query_param: 'key' };
  await suite.world.api('POST', '/v1/host-bindings', { ...maps, credential_ref: 'vault://user/maps' });
  const packages = { host: '*.packages.example.com', scheme: 'basic', username: 'agent' };
  await suite.world.api('POST', '/v1/host-bindings', { ...packages, credential_ref: 'vault://user/registry' });
}

const REQUESTS = [
  ['binding_injected', 'api.github.com', '/user/repos'],
  ['binding_injected', 'api.github.com', '/repos/acme/app/pulls'],
  ['passthrough', 'docs.example.com', '/guide'],
  ['binding_injected', 'maps.googleapis.com', '/maps/api/geocode/json'],
  ['passthrough', 'files.packages.example.com', '/index.json'],
  ['binding_injected', 'api.github.com', '/repos/acme/app/issues'],
  ['trust_denied', 'api.github.com', '/repos/acme/app/merges'],
] as const;

/** What an agent has just done: the newest rows are requests. */
async function recordMore(): Promise<void> {
  for (const request of [...REQUESTS, ...REQUESTS]) await recordRequest(request);
}

async function recordRequest([kind, host, path]: (typeof REQUESTS)[number]): Promise<void> {
  const isRefused = kind === 'trust_denied';
  const data = {
    'svc.proxy.method': isRefused ? 'POST' : 'GET',
    'svc.proxy.upstream.host': host,
    'svc.proxy.upstream.path': path,
    ...(isRefused ? { 'svc.proxy.reason': 'effect_not_allowed' } : { 'svc.proxy.upstream.status': 200 }),
    ...(kind === 'passthrough' ? {} : { 'svc.proxy.binding.host': host }),
    ...(kind === 'binding_injected' ? { 'svc.proxy.mediation': 'binding', 'svc.proxy.emit': 'inject' } : {}),
  };
  await suite.world.record(`sandbox.proxy.${kind}`, data);
}

test.each(Object.entries(PICTURES))('%s, light and dark', async (name, path) => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.goto(path);
    await page.locator('h1').waitFor();
    expect((await page.screenshot()).length).toBeLessThan(MAX_PICTURE_BYTES);
    await savePicture(page, `${name}_${colorScheme}`);
  }
});
