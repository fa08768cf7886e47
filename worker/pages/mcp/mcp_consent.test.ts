import { expect, test } from 'vitest';
import { mcpServerInput, type McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { consentPanel } from './mcp_consent.ts';

function serverOf(command: readonly string[]): McpServerRecord {
  return {
    ...mcpServerInput.parse({ name: 'demo', command: [...command] }),
    id: 'mcp_01k0000000000000000000000b',
    owner: 'personal',
    registry_id: null,
    status: 'stopped',
    revision: 1,
    health: null,
    authorization: null,
    credentials: [],
    warnings: [],
    rule_problem: null,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  };
}

const text = (content: unknown) => String(content);

test("a server's page says that its command is unchecked, and shows the consent command", () => {
  const page = text(consentPanel(serverOf(['erl', '-eval', 'x'])));
  expect(page).toContain('Nobody checked this command.');
  expect(page).toMatch(/Unchecked[^]*runs code that nobody checked: it starts "?(?:&quot;)?erl/);
  expect(text(consentPanel(serverOf(['npx', '-y', 'demo@1.2.3'])))).not.toContain('Nobody checked');
});
