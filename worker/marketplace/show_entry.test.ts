import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { startMarketplace } from '../../e2e/marketplace/marketplace_world.ts';
import type { RegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { marketplaceDetail, marketplacePage } from '../../shared/wire/marketplace.ts';

const MINUTE_MS = 60_000;
let registry: RegistryServer;
let control: InProcess;
let clock: QuickClock;
beforeAll(async () => {
  ({ registry, control, clock } = await startMarketplace(30));
});
beforeEach(() => {
  registry.behaviour = 'well';
  registry.calls.length = 0;
  clock.move(16 * MINUTE_MS);
});
afterAll(async () => {
  await control.stop();
  await registry.stop();
});

const show = (id: string) => control.send(`/v1/marketplace/servers/${id}`);
const detail = (id: string) => parseReply(marketplaceDetail, show(id));
async function codeOf(id: string): Promise<string> {
  const body = errorBody.safeParse(await (await show(id)).json());
  return body.data?.error.code ?? 'none';
}

describe('an entry', () => {
  test('is found by its name, with its slash encoded or not', async () => {
    const { name } = registry.entry(5).server;
    expect((await detail(name)).name).toBe(name);
    expect((await detail(encodeURIComponent(name))).name).toBe(name);
    expect((await detail(name.replace('/', '%2f'))).name).toBe(name);
  });

  test('is shown with its versions, in the requested one', async () => {
    const { server } = registry.entry(5);
    registry.publish({ ...registry.entry(5), server: { ...server, version: '7.0.0' } });
    const shown = await detail(server.name);
    expect([shown.version, shown.versions.map(({ version }) => version)]).toEqual(['7.0.0', ['7.0.0', server.version]]);
    expect((await detail(`${server.name}?version=${server.version}`)).version).toBe(server.version);
    expect(await codeOf(`${server.name}?version=8.0.0`)).toBe('not_found');
  });

  test('shows what an install would do, or why it cannot be installed', async () => {
    const all = await Promise.all(Array.from({ length: 30 }, (_, index) => detail(registry.entry(index).server.name)));
    const remote = all.find(({ remotes }) => remotes.length > 0);
    expect(remote?.preview).toMatchObject({
      mode: 'remote',
      command: [],
      headers: { Authorization: '{Authorization}' },
    });
    const local = all.find(({ packages }) => packages.length > 0);
    expect(local?.preview?.command.slice(0, 2)).toEqual(['npx', '-y']);
    expect(local?.preview?.inputs).toMatchObject([{ name: 'API_KEY', secret: true, required: true }]);
    const name = 'io.example/shell';
    const packages = [
      { registryType: 'npm', identifier: 'a;rm -rf ~', version: '1.0.0', transport: { type: 'stdio' } },
    ];
    registry.publish({
      server: { name, version: '1.0.0', packages },
      status: 'active',
      updatedAt: '2026-01-01T00:00:00Z',
    });
    const refused = await detail(name);
    expect([refused.preview, refused.options[0]?.installable]).toEqual([null, false]);
  });

  test('shows the source and start command of each package; secrets have no value', async () => {
    const name = 'io.example/runtime';
    const key = { type: 'named', name: '--key', isSecret: true, value: 'a-value', default: 'a-default' };
    const local = {
      registryType: 'npm',
      registryBaseUrl: 'https://packages.example.test',
      identifier: '@example/runtime',
      version: '1.0.0',
      transport: { type: 'stdio' },
      runtimeHint: 'npx',
      runtimeArguments: [{ type: 'named', name: '--prefer-offline' }, key],
      packageArguments: [{ type: 'positional', valueHint: 'folder', isRequired: true, isRepeated: true }],
    };
    const older = { registry_name: 'pypi', name: 'older', version: '2.0.0', runtime_hint: 'uvx' };
    const server = { name, version: '1.0.0', packages: [local, older] };
    registry.publish({ server, status: 'active', updatedAt: '2026-01-01T00:00:00Z' });
    const { packages } = await detail(name);
    const argument = { description: '', required: false, secret: false, default: null, choices: [] };
    const plain = { ...argument, value: null, value_hint: null, repeated: false };
    expect(packages).toEqual([
      {
        registry_type: 'npm',
        registry_base_url: 'https://packages.example.test',
        identifier: '@example/runtime',
        version: '1.0.0',
        transport: 'stdio',
        runtime_hint: 'npx',
        runtime_arguments: [
          { ...plain, type: 'named', name: '--prefer-offline' },
          { ...plain, type: 'named', name: '--key', secret: true },
        ],
        package_arguments: [
          { ...plain, type: 'positional', name: '', required: true, value_hint: 'folder', repeated: true },
        ],
        environment_variables: [],
      },
      expect.objectContaining({ identifier: 'older', runtime_hint: 'uvx', registry_base_url: null }),
    ]);
    const page = await parseReply(marketplacePage, control.send('/v1/marketplace/servers?q=example/runtime'));
    expect(page.items.find((item) => item.name === name)?.packages).toEqual(packages);
  });

  test('that was deleted is not found', async () => {
    const entry = registry.entry(4);
    registry.publish({ ...entry, status: 'deleted' });
    expect(await codeOf(entry.server.name)).toBe('not_found');
  });

  test('with one deleted version has only the others', async () => {
    const entry = registry.entry(6);
    const { name, version } = entry.server;
    registry.publish({ ...entry, server: { ...entry.server, version: '7.0.0' } });
    registry.publish({ ...entry, status: 'deleted' });
    expect((await detail(name)).versions.map((each) => each.version)).toEqual(['7.0.0']);
    expect(await codeOf(`${name}?version=${version}`)).toBe('not_found');
  });

  test('is fetched once in 15 minutes', async () => {
    const { name } = registry.entry(5).server;
    await detail(name);
    await detail(name);
    expect(registry.calls).toHaveLength(1);
    clock.move(15 * MINUTE_MS);
    await detail(name);
    expect(registry.calls).toHaveLength(2);
  });

  test('is shown from the cache, marked as stale, when the registry is down', async () => {
    const { name } = registry.entry(5).server;
    const { fetched_at } = await detail(name);
    await registry.stop();
    clock.move(16 * MINUTE_MS);
    expect(await detail(name)).toMatchObject({ name, fetched_at, stale: true });
    expect(await codeOf('io.example/never-seen')).toBe('registry_unavailable');
    await registry.start();
  });

  test('in the flat format is found in a registry without version lists', async () => {
    registry.behaviour = 'flat_only';
    const { name } = registry.entry(5).server;
    expect((await detail(name)).version).toBe(registry.entry(5).server.version);
    expect(await codeOf('io.example/none')).toBe('not_found');
  });
});

test.each([
  'nothing',
  'io.example/none',
  '%',
  'a%00b/c',
  'a/b%0Ac',
  '%E2%80%AE/x',
  '..%2f..%2fv0%2fservers',
  'a%252Fb',
  '%ED%A0%80/x',
  'x'.repeat(900),
  'a/b?version=%00',
  "a'/b%22;drop",
])('%s is not found, without an error', async (id) => {
  expect(await codeOf(id)).toBe('not_found');
  const calls = registry.calls.filter((call) => !/^\/v0\/servers(\?|\/[^/]+\/versions(\/[^/]+)?$)/.test(call));
  expect(calls).toEqual([]);
});
