import { expect, test } from 'vitest';
import { upgradeReply } from '../../../shared/wire/marketplace.ts';
import { mcpServerInput, type McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { EMPTY_FORM } from '../components/form_field.ts';
import { configurationChanges, upgradePage } from './mcp_server_changes.ts';

const NOW = '2026-01-01T00:00:00.000Z';
const SERVER: McpServerRecord = {
  ...mcpServerInput.parse({ name: 'demo', command: ['npx', '-y', 'demo@1.0.0'] }),
  id: 'mcp_01k0000000000000000000000b',
  owner: 'personal',
  registry_id: 'io.example/demo',
  status: 'stopped',
  revision: 1,
  health: null,
  authorization: null,
  credentials: [],
  warnings: [],
  rule_problem: null,
  created_at: NOW,
  updated_at: NOW,
};
const REGION = {
  name: 'REGION',
  description: '',
  required: true,
  secret: false,
  format: null,
  credential: null,
  default: null,
  choices: [],
  placeholder: null,
  goes_to: ['the variable REGION'],
  repeated: false,
};
const PREVIEW = {
  choice: { kind: 'package', index: 0 },
  mode: 'local',
  version: '1.0.0',
  command: ['npx', '-y', 'demo@1.0.0'],
  env: {},
  url: null,
  transport: null,
  headers: {},
  inputs: [],
  warnings: [],
};
const UPGRADE = {
  from_version: '1.0.0',
  to_version: '1.0.0',
  entry_version: '1.0.0',
  available: false,
  customised: false,
  diff: { command: null, url: null, env: {}, headers: {} },
  preview: PREVIEW,
  problems: [],
  fetched_at: NOW,
  stale: false,
};
const textOf = (content: unknown) => String(content);

function pageOf(upgrade: object): { title: string; text: string } {
  const view = { server: SERVER, upgrade: upgradeReply.parse({ ...UPGRADE, ...upgrade }), form: EMPTY_FORM };
  const { title, content } = upgradePage({ ...view, nowMs: Date.parse(NOW) });
  const text = textOf(content)
    .replaceAll(/<\/?bdi\s*>/g, '')
    .replaceAll(/\s+/g, ' ');
  return { title, text };
}

test('a server at the newest release is up to date, in the title and in the words', () => {
  const { title, text } = pageOf({});
  expect(title).toBe('demo is up to date');
  expect(text).toContain('1.0.0 is installed, and is the registry’s newest release');
  expect(text).toContain('There is nothing to update');
  expect(text).not.toMatch(/the registry has|What changes|>Update</);
});

test('an update that only asks for a value says that the configuration stays', () => {
  const inputs = {
    preview: { ...PREVIEW, inputs: [REGION] },
    problems: [{ input: 'REGION', code: 'missing', message: 'is required' }],
  };
  const { title, text } = pageOf({ ...inputs, available: true });
  expect(title).toBe('Update demo');
  expect(text).toContain('The configuration stays');
  expect(text).not.toMatch(/Nothing<|nothing to update/);
});

test.each([
  ['description', { description: 'Of the team' }, ['description', null, 'Of the team']],
  ['registry entry', { registry_id: null }, ['registry entry', 'io.example/demo', null]],
  [
    'denied tools',
    { tools: { allow: null, deny: ['drop', 'wipe'], approval: [] } },
    ['tools that may not be called', null, 'drop, wipe'],
  ],
  [
    'allowed tools',
    { tools: { allow: [], deny: [], approval: [] } },
    ['tools that may be called', 'all tools', 'no tool'],
  ],
  [
    'name of the only allowed tool',
    { tools: { allow: ['all'], deny: [], approval: [] } },
    ['tools that may be called', 'all tools', 'all'],
  ],
  [
    'place where a word of the command ends',
    { command: ['npx', '-y demo@1.0.0'] },
    ['command', 'npx -y demo@1.0.0', 'npx "-y demo@1.0.0"'],
  ],
  ['isolation', { isolation: 'container' as const }, ['isolation', 'process', 'container']],
])('two configurations that differ only in the %s are told apart', (_, change, [name, before, after]) => {
  expect(configurationChanges(SERVER, { ...SERVER, ...change })).toEqual([{ name, before, after }]);
});

test('two configurations that are the same have no differences', () => {
  expect(configurationChanges(SERVER, structuredClone(SERVER))).toEqual([]);
});
