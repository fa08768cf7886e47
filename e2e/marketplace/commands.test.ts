import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { foundIn, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { expectStatus, Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { type RegistryServer, startRegistryServer } from './registry_server.ts';

// From the registry to a server that this machine may run, with the commands that a person types.

const ENTRY = 'io.example.acme/weather';
const SECRET = plantSecret();
const status = z.object({ items: z.array(z.looseObject({ name: z.string(), consent: z.string() })) });
const record = z.looseObject({ id: z.string(), version: z.string(), command: z.array(z.string()) });

let svc: Svc;
let registry: RegistryServer;

function publish(version: string): void {
  const apiKey = { name: 'API_KEY', isRequired: true, isSecret: true };
  const packages = [
    {
      registryType: 'npm',
      identifier: '@acme/weather',
      version,
      transport: { type: 'stdio' },
      environmentVariables: [apiKey],
      packageArguments: [{ type: 'named', name: '--unit', isRequired: true }],
    },
  ];
  const server = { name: ENTRY, description: 'The \u202eweather of today', version, packages };
  registry.publish({ server, status: 'active', updatedAt: new Date().toISOString() });
}

beforeAll(async () => {
  registry = await startRegistryServer({ entries: 40 });
  publish('1.0.0');
  publish('1.1.0');
  svc = await Svc.up({ flags: ['--registry-url', registry.url] });
});
afterAll(async () => {
  await svc.stop();
  await registry.stop();
});

const consent = async () => status.parse(JSON.parse(await svc.ok(['mcp', 'status', '--json']))).items[0]?.consent;
const showServer = async () => record.parse(JSON.parse(await svc.ok(['mcp', 'show', 'weather', '--json'])));

it('finds an entry, and shows its hidden characters', async () => {
  const found = await svc.ok(['mcp', 'search', 'ACME']);
  expect(found).toContain(ENTRY);
  const view = await svc.ok(['mcp', 'view', ENTRY, '--release', '1.0.0']);
  expect(view).toContain('npx -y @acme/weather@1.0.0 --unit {unit}');
  expect(found + view).not.toContain('\u202e');
});

it('installs it: what was shown may run on this machine, and the secret is only in the vault', async () => {
  const argv = ['mcp', 'install', ENTRY, '--release', '1.0.0', '--yes', '--input', 'unit=celsius'];
  const installed = await svc.cli([...argv, '--credential', 'API_KEY', '--stdin'], { input: SECRET });
  expect([installed.code, installed.stderr]).toEqual([0, expect.stringContaining('npx -y @acme/weather@1.0.0')]);
  expect(installed.stdout + installed.stderr).not.toContain(SECRET);
  expect((await showServer()).command).toEqual(['npx', '-y', '@acme/weather@1.0.0', '--unit', 'celsius']);
  await waitFor('the consent', async () => (await consent()) === 'given');
  expect(searchFiles(svc.home, SECRET).holding).toEqual([]);
  expect(foundIn(readFileSync(join(svc.home, 'control.db')), SECRET)).toEqual([]);
});

it('installs it once', async () => {
  const before = await showServer();
  const again = await svc.cli(['mcp', 'install', ENTRY, '--yes']);
  expect([again.code, again.stdout.trim()]).toEqual([0, before.id]);
});

it('upgrades it after showing the changes, with the consent; a rollback undoes it', async () => {
  const offered = await svc.ok(['mcp', 'upgrade', 'weather', '--check']);
  expect(offered).toContain('+ npx -y @acme/weather@1.1.0 --unit celsius');
  const upgraded = await svc.cli(['mcp', 'upgrade', 'weather', '--yes']);
  expect(upgraded.code).toBe(0);
  expect((await showServer()).version).toBe('1.1.0');
  await waitFor('the consent to the new one', async () => (await consent()) === 'given');
  expect(await svc.ok(['mcp', 'upgrade', 'weather'])).toContain('up to date');
  await svc.ok(['mcp', 'rollback', 'weather', '--to', '1']);
  expect((await showServer()).version).toBe('1.0.0');
});

it("gives no consent to another person's changes", async () => {
  const { id, ...server } = await showServer();
  const command = ['npx', '-y', '@evil/weather@1.0.0'];
  const fields = { name: 'weather', mode: 'local', command, env: {}, version: server.version };
  expectStatus(await svc.api('PUT', `/v1/mcp-servers/${id}`, fields), 200);
  await waitFor('the consent to be over', async () => (await consent()) === 'needed');
});

it("deletes the credential when somebody changes a remote server's URL", async () => {
  const hub = ['mcp', 'add', 'hub', '--url', 'http://127.0.0.1:9/mcp', '--header', 'Authorization: Bearer {TOKEN}'];
  const id = (await svc.ok(hub)).trim();
  const stored = await svc.cli(['mcp', 'credential', 'set', 'hub', 'TOKEN', '--stdin'], { input: SECRET });
  expect(stored.code).toBe(0);
  const headers = { Authorization: `Bearer vault://mcp-servers/${id}/TOKEN` };
  const moved = { name: 'hub', mode: 'remote', url: 'http://127.0.0.1:10/mcp', headers };
  expectStatus(await svc.api('PUT', `/v1/mcp-servers/${id}`, moved), 200);
  expect(await svc.ok(['mcp', 'show', 'hub'])).toContain('credential TOKEN: missing');
  await waitFor('this machine to hear of it', async () => {
    const { items } = status.parse(JSON.parse(await svc.ok(['mcp', 'status', '--json'])));
    return JSON.stringify(items.find(({ name }) => name === 'hub')?.['missing']) === `["mcp-servers/${id}/TOKEN"]`;
  });
});

it('says why an entry cannot be installed, and how to search for a missing one', async () => {
  const server = { name: 'io.example.acme/empty', description: '', version: '1.0.0' };
  registry.publish({ server, status: 'active', updatedAt: new Date().toISOString() });
  expect(await svc.ok(['mcp', 'view', server.name])).toContain('neither a package nor a remote address');
  const refused = await svc.cli(['mcp', 'install', server.name, '--yes']);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('neither a package nor a remote address'),
  ]);
  const none = await svc.cli(['mcp', 'install', 'io.example.acme/none', '--yes']);
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('svc mcp search')]);
});
