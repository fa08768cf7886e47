import { expect, test } from 'vitest';
import { cursorInstallLink, gatewayConfiguration, vscodeInstallLink } from './client_links.ts';

const ENTRY = { command: 'svc', args: ['mcp', 'gateway'] };

test('the link for VS Code has the name and the entry as its query', () => {
  const link = new URL(vscodeInstallLink());
  expect(link.protocol + link.pathname).toBe('vscode:mcp/install');
  expect(JSON.parse(decodeURIComponent(link.search.slice(1)))).toEqual({ name: 'svc', ...ENTRY });
});

test('the link for Cursor has the entry in Base64', () => {
  const link = new URL(cursorInstallLink());
  expect([link.protocol, link.host, link.pathname]).toEqual(['cursor:', 'anysphere.cursor-deeplink', '/mcp/install']);
  expect(link.searchParams.get('name')).toBe('svc');
  expect(JSON.parse(atob(link.searchParams.get('config') ?? ''))).toEqual(ENTRY);
});

test.each(['mcpServers', 'servers'] as const)('the configuration has the entry under %s', (key) => {
  expect(JSON.parse(gatewayConfiguration(key))).toEqual({ [key]: { svc: ENTRY } });
});
