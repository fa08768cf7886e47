import { expect, test } from 'vitest';
import { cursorInstallLink, gatewayConfiguration, gatewayEntry, vscodeInstallLink } from './client_links.ts';

const ENTRY = { command: 'svc', args: ['mcp', 'gateway'] };

test('the link for VS Code has the name and the entry as its query', () => {
  const link = new URL(vscodeInstallLink(ENTRY));
  expect(link.protocol + link.pathname).toBe('vscode:mcp/install');
  expect(JSON.parse(decodeURIComponent(link.search.slice(1)))).toEqual({ name: 'svc', ...ENTRY });
});

test('the link for Cursor has the entry in Base64', () => {
  const link = new URL(cursorInstallLink(ENTRY));
  expect([link.protocol, link.host, link.pathname]).toEqual(['cursor:', 'anysphere.cursor-deeplink', '/mcp/install']);
  expect(link.searchParams.get('name')).toBe('svc');
  expect(JSON.parse(atob(link.searchParams.get('config') ?? ''))).toEqual(ENTRY);
});

test.each(['mcpServers', 'servers'] as const)('the configuration has the entry under %s', (key) => {
  expect(JSON.parse(gatewayConfiguration(key, ENTRY))).toEqual({ [key]: { svc: ENTRY } });
});

test('the entry calls svc as it is called on the machine', () => {
  expect(gatewayEntry(['svc'])).toEqual(ENTRY);
  const command = ['/home/ada/böx/bin/svc', '--home', '/home/ada/other'];
  const entry = { command: command[0], args: ['mcp', 'gateway', '--home', '/home/ada/other'] };
  expect(gatewayEntry(command)).toEqual(entry);
  const config = atob(new URL(cursorInstallLink(gatewayEntry(command))).searchParams.get('config') ?? '');
  const bytes = Uint8Array.from(config, (character) => character.charCodeAt(0));
  expect(JSON.parse(new TextDecoder().decode(bytes))).toEqual(entry);
});
