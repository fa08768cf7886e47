import { expect, test } from 'vitest';
import { scopeText } from './scope_text.ts';

const server = { name: 'hub' };

test('names the command that grants what a server asks for', () => {
  expect(scopeText(server, { requiredScope: 'mcp:write  https://api.example.com/auth/read' })).toBe(
    'it asks for more access than you granted it (403); to grant it: svc mcp authorize hub --add-scope mcp:write --add-scope https://api.example.com/auth/read',
  );
});

test.each(['$(id)', '`id`', 'a;b', "a'b", '--client-id', 'a|b', 'ok $HOME', ''])(
  'puts no scope into the command that a shell would read: %s',
  (requiredScope) => {
    expect(scopeText(server, { requiredScope })).toMatch(/svc mcp authorize hub$/);
  },
);
