import { expect, test } from 'vitest';
import type { UpgradeReply } from '../../../shared/wire/marketplace.ts';
import { mcpServerInput, type McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { EMPTY_FORM } from '../components/form_field.ts';
import { upgradePage } from './mcp_server_changes.ts';

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
  credential: null,
  default: null,
  choices: [],
  placeholder: null,
  goes_to: ['the variable REGION'],
  repeated: false,
};
const UPGRADE = {
  from_version: '1.0.0',
  to_version: '1.0.0',
  entry_version: '1.0.0',
  available: false,
  customised: false,
  diff: { command: null, url: null, env: {}, headers: {} },
  preview: { inputs: [], warnings: [] },
  problems: [],
  fetched_at: NOW,
  stale: false,
};

function pageOf(upgrade: object): { title: string; text: string } {
  // The page reads only these fields of the reply.
  const view = { server: SERVER, upgrade: { ...UPGRADE, ...upgrade } as unknown as UpgradeReply, form: EMPTY_FORM };
  const { title, content } = upgradePage({ ...view, nowMs: Date.parse(NOW) });
  return {
    title,
    text: String(content)
      .replaceAll(/<\/?bdi\s*>/g, '')
      .replaceAll(/\s+/g, ' '),
  };
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
    preview: { inputs: [REGION], warnings: [] },
    problems: [{ input: 'REGION', message: 'is required' }],
  };
  const { title, text } = pageOf({ ...inputs, available: true });
  expect(title).toBe('Update demo');
  expect(text).toContain('The configuration stays');
  expect(text).not.toMatch(/Nothing<|nothing to update/);
});
