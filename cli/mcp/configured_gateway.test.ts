import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mcpClients } from './client_configuration.ts';
import { describeUnrecordedGateway, hasGivenGateway, recordGateway, SANDBOXED_CLIENTS } from './configured_gateway.ts';

const JSON_ENTRY = '{"mcpServers":{"svc":{"command":"/opt/svc","args":["mcp",\n"gateway"]}}}';
const TOML_ENTRY = '[mcp_servers.svc]\ncommand = "/opt/svc"\nargs = ["mcp", "gateway"]\n';

let root = '';
let home = '';
let file = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-configured-'));
  home = join(root, 'home');
  file = join(root, 'client.json');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const isGiven = (agent = 'claude', folder = '/work/shop') => hasGivenGateway(home, agent, folder);

test.each([JSON_ENTRY, TOML_ENTRY])('a configuration counts while it has the gateway: %s', async (entry) => {
  writeFileSync(file, entry);
  await recordGateway(home, { client: 'claude-code', path: file, project: null }, 0);
  await recordGateway(home, { client: 'claude-code', path: file, project: null }, 0);
  expect([isGiven(), isGiven('codex')]).toEqual([true, false]);
  writeFileSync(file, '{"mcpServers":{}}');
  expect(isGiven()).toBe(false);
});

test('a configuration of a project counts in its folder alone', async () => {
  writeFileSync(file, JSON_ENTRY);
  await recordGateway(home, { client: 'claude-code', path: file, project: '/work/shop' }, 0);
  expect([isGiven(), isGiven('claude', '/work/other')]).toEqual([true, false]);
});

test('a configuration without a record is named, with the command that records it', () => {
  const folders = { userHome: join(root, 'user'), workingDirectory: join(root, 'shop') };
  for (const folder of [join(folders.userHome, '.codex'), folders.workingDirectory])
    mkdirSync(folder, { recursive: true });
  expect(describeUnrecordedGateway('codex', folders)).toBeNull();
  writeFileSync(join(folders.userHome, '.codex/config.toml'), TOML_ENTRY);
  expect(describeUnrecordedGateway('codex', folders)).toContain('svc mcp export --client codex --write');
  writeFileSync(join(folders.workingDirectory, 'opencode.jsonc'), JSON_ENTRY);
  expect(describeUnrecordedGateway('opencode', folders)).toContain('--client opencode --project --write');
  expect(describeUnrecordedGateway('goose', folders)).toBeNull();
});

const below = (base: string, path: string | null | undefined) => relative(base, path ?? '').replace(/c$/, '');

test('the configurations of clients with a sandbox are where svc mcp export writes them', async () => {
  const clients = await mcpClients(root);
  const exported = Object.keys(SANDBOXED_CLIENTS).map((name) => {
    const client = clients.find((each) => each.name === name);
    return [name, { home: below(homedir(), client?.path), project: below(root, client?.projectPath) }];
  });
  expect(Object.fromEntries(exported)).toEqual(SANDBOXED_CLIENTS);
});

test('what an agent or a project wrote does not count, nor a damaged record', () => {
  writeFileSync(file, JSON_ENTRY);
  expect(isGiven()).toBe(false);
  mkdirSync(home);
  writeFileSync(join(home, 'mcp_clients.json'), `[{"client":"claude-code","path":"${file}"`);
  expect(isGiven()).toBe(false);
});
