import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { referenceProgram } from '../reference/reference_program.ts';
import { callsAsCommands } from './calls_as_commands.ts';

test.each([
  ['list them with GET /v1/secrets', '`svc secret list` lists them'],
  ['list yours with GET /v1/identities', '`svc api GET /v1/identities` lists them'],
  ['delete it with DELETE /v1/connectors/con_1/credential', 'delete it with `svc connector credential rm con_1`'],
  ['delete it with DELETE /v1/mcp-servers/mcp_1/credentials/A', 'delete it with `svc mcp credential unset mcp_1 A`'],
  ['GET /v1/mcp-servers/mcp_1 lists them', '`svc mcp show mcp_1` lists them'],
  ['decide with POST /v1/approvals/apr_1/decide, then run', 'decide with `svc approvals approve apr_1`, then run'],
  ['see GET /v1/marketplace/servers/io.x%2Fy.', 'see `svc mcp view io.x%2Fy`.'],
  [
    'id is not an id of the form tok_… (26 characters)',
    'id is not an id of the form tok_… (26 characters): `svc token list` shows the ids',
  ],
  ['change it with PUT /v1/mcp-servers/mcp_1', 'change it with `svc mcp update mcp_1`'],
  ['run "svc mcp authorize x", or POST /v1/mcp-servers/mcp_1/authorize', 'run "svc mcp authorize x"'],
  [
    'there is no sidecar: list them with GET /v1/sidecars',
    'there is no sidecar: `svc api GET /v1/sidecars` lists them',
  ],
])('in "%s", the call is a command', (message, shown) => {
  expect(callsAsCommands(message)).toBe(shown);
});

test.each([
  ['use_secrets: no binding sends user/x', '--use: no binding sends user/x'],
  ['mcp_servers.0: is too long', '--mcp: is too long'],
  ['host: is not a host', 'host: is not a host'],
])('%s begins with the flag for the field, if there is one', (message, shown) => {
  expect(callsAsCommands(message)).toBe(shown);
});

const SOURCES = ['worker', 'sidecar', 'shared'].flatMap((room) =>
  readdirSync(join(import.meta.dirname, '../..', room), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => readFileSync(join(import.meta.dirname, '../..', room, file), 'utf8')),
);

/** The texts in quotes of the sources that name a call, with `x` for each value. */
const NAMED = SOURCES.flatMap((source) => [
  ...source.matchAll(/(['`])((?:(?!\1)[^\n\\])*\b(?:GET|POST|PUT|PATCH|DELETE) \/v1\/(?:(?!\1)[^\n\\])*)\1/g),
])
  .map(([, , text = '']) => text.replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, 'x'))
  .filter((text) => !text.includes('{'));

test('no message of the API names a call once it is shown at the command line', () => {
  expect(NAMED.length).toBeGreaterThan(20);
  for (const text of NAMED)
    expect(callsAsCommands(text)).not.toMatch(/(?<!svc api )\b(?:GET|POST|PUT|PATCH|DELETE) \/v1/);
});

test('each command that replaces a call exists', async () => {
  const program = await referenceProgram();
  const shown = NAMED.flatMap((text) => [...callsAsCommands(text).matchAll(/`svc ([^`]+)`/g)]);
  const names = new Set(shown.map(([, words = '']) => words.replace(/ (?:x\b|[^a-z]).*/, '')));
  expect(names.size).toBeGreaterThan(10);
  for (const name of names) {
    let command = program;
    for (const word of name.split(' ')) {
      const next = command.commands.find((each) => each.name() === word);
      expect(next, `svc ${name}`).toBeDefined();
      if (next !== undefined) command = next;
    }
  }
});
