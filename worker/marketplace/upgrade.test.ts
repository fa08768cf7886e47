import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { startMarketplace } from '../../e2e/marketplace/marketplace_world.ts';
import type { RegistryServer } from '../../e2e/marketplace/registry_server.ts';
import type { InProcess } from '../../e2e/runtimes/in_process.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { marketplaceInstallReply, upgradeReply } from '../../shared/wire/marketplace.ts';

const MINUTE_MS = 60_000;
const apiKey = { name: 'API_KEY', isRequired: true, isSecret: true };
const region = { name: 'REGION', isRequired: true };
const unit = { type: 'named', name: '--unit', isRequired: true };
const npm = {
  registryType: 'npm',
  identifier: '@acme/weather',
  version: '1.0.0',
  transport: { type: 'stdio' },
  environmentVariables: [apiKey, region],
  packageArguments: [unit],
};
const GIVEN = { API_KEY: 'the-key-of-the-service', REGION: 'eu', unit: 'celsius' };

let registry: RegistryServer;
let control: InProcess;
let clock: QuickClock;
let made = 0;
beforeAll(async () => {
  ({ registry, control, clock } = await startMarketplace(0));
});
afterAll(async () => {
  await control.stop();
  await registry.stop();
});

/** Publishes a version of an entry; fetched versions expire. */
function publish(name: string, version: string, change: Readonly<Record<string, unknown>> = {}): void {
  const packages = [{ ...npm, version, ...change }];
  const server = { name, description: 'The weather', version, packages };
  clock.move(16 * MINUTE_MS);
  registry.publish({ server, status: 'active', updatedAt: new Date(clock.now()).toISOString() });
}

const newName = () => `io.example.acme/weather-${(made += 1)}`;
async function install(name: string, inputs: unknown = GIVEN) {
  const reply = await control.asUser('POST', `/v1/marketplace/servers/${name}/install`, { inputs });
  const { server } = marketplaceInstallReply.parse(await reply.json());
  if (server === null) throw new Error('no server');
  return server;
}
async function showUpgrade(id: string, query = '') {
  const reply = await control.asUser('GET', `/v1/mcp-servers/${id}/upgrade${query}`);
  return upgradeReply.parse(await reply.json());
}
const post = (id: string, body?: unknown) => control.asUser('POST', `/v1/mcp-servers/${id}/upgrade`, body);
async function upgrade(id: string, body?: unknown) {
  const { server } = marketplaceInstallReply.parse(await (await post(id, body)).json());
  if (server === null) throw new Error('no server');
  return server;
}
async function readRefusal(id: string, body?: unknown) {
  return errorBody.parse(await (await post(id, body)).json()).error;
}

describe('an upgrade', () => {
  test('changes the version and keeps typed, stored and added values', async () => {
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    expect((await showUpgrade(before.id)).available).toBe(false);
    publish(name, '2.0.0');
    expect(await showUpgrade(before.id)).toMatchObject({
      from_version: '1.0.0',
      to_version: '2.0.0',
      available: true,
      customised: false,
      diff: {
        command: { before: before.command, after: ['npx', '-y', '@acme/weather@2.0.0', '--unit', 'celsius'] },
        env: {},
      },
      problems: [],
    });
    const { name: _name, ...configuration } = await upgrade(before.id);
    expect(configuration).toMatchObject({ version: '2.0.0', revision: before.revision + 1, env: before.env });
    expect(configuration.command).toEqual(['npx', '-y', '@acme/weather@2.0.0', '--unit', 'celsius']);
    expect(configuration.credentials).toMatchObject([{ name: 'API_KEY', set: true }]);
    const back = await control.asUser('POST', `/v1/mcp-servers/${before.id}/rollback`, { revision: before.revision });
    expect(await back.json()).toMatchObject({ version: '1.0.0', command: before.command });
  });

  test('asks for new inputs, and shows which are dropped', async () => {
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    const station = { type: 'named', name: '--station', isRequired: true };
    publish(name, '2.0.0', { environmentVariables: [apiKey], packageArguments: [station] });
    const offered = await showUpgrade(before.id);
    expect(offered.problems).toMatchObject([{ input: 'station', code: 'missing' }]);
    expect(await readRefusal(before.id)).toMatchObject({
      code: 'inputs_required',
      details: { inputs: [{ name: 'station' }] },
    });
    const after = await upgrade(before.id, { inputs: { station: 'north' } });
    expect(after.env).toEqual({ API_KEY: before.env['API_KEY'] });
    expect(after.command).toEqual(['npx', '-y', '@acme/weather@2.0.0', '--station', 'north']);
  });

  test('of a configuration that somebody has changed says so', async () => {
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    const { owner, command, env, registry_id, version } = before;
    const changed = {
      name: before.name,
      owner,
      registry_id,
      version,
      command: [...command, '--verbose'],
      env: { ...env, MORE: '1' },
    };
    await control.asUser('PUT', `/v1/mcp-servers/${before.id}`, changed);
    publish(name, '2.0.0');
    const offered = await showUpgrade(before.id);
    expect(offered.customised).toBe(true);
    const after = await upgrade(before.id, { inputs: { unit: 'kelvin' } });
    expect([after.command.slice(2), after.env['MORE'], after.env['REGION']]).toEqual([
      ['@acme/weather@2.0.0', '--unit', 'kelvin'],
      '1',
      'eu',
    ]);
  });

  test('to a version that cannot be installed is refused, and changes nothing', async () => {
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    publish(name, '2.0.0', { runtimeHint: 'bash' });
    expect(await readRefusal(before.id)).toMatchObject({ code: 'package_not_installable' });
    expect(await (await control.asUser('GET', `/v1/mcp-servers/${before.id}`)).json()).toMatchObject({
      command: before.command,
      revision: before.revision,
    });
  });

  test('may name a version, and has no effect when repeated', async () => {
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    publish(name, '2.0.0');
    publish(name, '3.0.0');
    expect((await showUpgrade(before.id, '?version=2.0.0')).to_version).toBe('2.0.0');
    const once = await upgrade(before.id, { version: '2.0.0' });
    const twice = await upgrade(before.id, { version: '2.0.0' });
    expect([once.version, twice.revision]).toEqual(['2.0.0', once.revision]);
  });

  test('is for servers of the registry, for their owner, while the registry answers', async () => {
    const manual = await control.asUser('POST', '/v1/mcp-servers', { name: 'own', command: ['/usr/bin/true'] });
    const { id }: { readonly id: string } = JSON.parse(await manual.text());
    expect(await readRefusal(id)).toMatchObject({ code: 'not_found' });
    expect(await readRefusal('mcp_00000000000000000000000000')).toMatchObject({ code: 'not_found' });
    const name = newName();
    publish(name, '1.0.0');
    const before = await install(name);
    await registry.stop();
    clock.move(16 * MINUTE_MS);
    expect(await readRefusal(before.id)).toMatchObject({ code: 'registry_unavailable' });
    expect((await showUpgrade(before.id)).stale).toBe(true);
    await registry.start();
    clock.move(MINUTE_MS);
  });
});
