import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mcpVaultPath, type McpServer } from '../model/mcp_server.ts';
import {
  credentialNameProblem,
  mcpReference,
  referenceProblem,
  referencesOf,
  splitReferences,
  withReferences,
} from './references.ts';
import { localServer, remoteServer, SERVER_ID } from './testing/servers.ts';

const OTHER_ID = 'mcp_00000000000000000000000009';
const TOKEN = mcpReference(SERVER_ID, 'TOKEN');

function withValues(server: McpServer, values: Record<string, string>) {
  const byPath = Object.entries(values).map(([name, value]) => [mcpVaultPath(SERVER_ID, name), value] as const);
  return withReferences(server, new Map(byPath));
}

describe('references in values', () => {
  test('are found anywhere in a text', () => {
    expect(splitReferences(`Bearer ${TOKEN}; x=${mcpReference(SERVER_ID, 'B')}/c`)).toEqual({
      ok: true,
      value: [
        { kind: 'text', text: 'Bearer ' },
        { kind: 'reference', serverId: SERVER_ID, name: 'TOKEN', path: `mcp-servers/${SERVER_ID}/TOKEN` },
        { kind: 'text', text: '; x=' },
        { kind: 'reference', serverId: SERVER_ID, name: 'B', path: `mcp-servers/${SERVER_ID}/B` },
        { kind: 'text', text: '/c' },
      ],
    });
  });

  test('a text without one is one part, and an empty text has none', () => {
    expect(splitReferences('plain')).toEqual({ ok: true, value: [{ kind: 'text', text: 'plain' }] });
    expect(splitReferences('')).toEqual({ ok: true, value: [] });
  });

  test.each([
    'vault://user/demo',
    'vault://mcp-servers/mcp_short/TOKEN',
    `vault://mcp-servers/${SERVER_ID}/`,
    `vault://mcp-servers/${SERVER_ID}/9`,
    `vault://mcp-servers/${SERVER_ID}/../x`,
    `VAULT://mcp-servers/${SERVER_ID}/TOKEN`,
    `vault://mcp-servers/${SERVER_ID}/SVC_TOKEN`,
    `vault://mcp-servers/${SERVER_ID}/${'A'.repeat(129)}`,
    `Bearer vault://${TOKEN}`,
  ])('refuses %s, without quoting it', (text) => {
    const result = splitReferences(text);
    expect(result.ok).toBe(false);
    expect(JSON.stringify(result)).not.toContain(text);
  });

  test('the parts of a text add up to the text', () => {
    const piece = fc.oneof(fc.string(), fc.constant(TOKEN), fc.constant('vault://'), fc.constant('vault:'));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join('');
        const parts = splitReferences(text);
        if (!parts.ok) return;
        const said = parts.value.map((part) => (part.kind === 'text' ? part.text : `vault://${part.path}`));
        expect(said.join('')).toBe(text);
      }),
    );
  });

  test("a credential's name is a variable name outside our own prefix", () => {
    expect(credentialNameProblem('API_KEY')).toBeNull();
    expect(credentialNameProblem('A'.repeat(128))).toBeNull();
    for (const name of ['', '1A', 'A-B', 'A B', 'A'.repeat(129), 'SVC_TOKEN', 'svc_token', 'A\n']) {
      expect(credentialNameProblem(name)).not.toBeNull();
    }
  });
});

describe('where a server may refer to credentials', () => {
  test('in env, arguments, headers and the query of the URL, to its own credentials', () => {
    expect(referenceProblem(localServer({ command: ['x', `--k=${TOKEN}`], env: { A: `p${TOKEN}` } }))).toBeNull();
    const remote = remoteServer({
      url: `https://a.example/mcp?k=${TOKEN}`,
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    expect(referenceProblem(remote)).toBeNull();
  });

  test.each([
    ['command[0]', localServer({ command: [TOKEN] })],
    ['command[2]', localServer({ command: ['x', 'y', 'vault://user/demo'] })],
    ['env.A', localServer({ env: { A: mcpReference(OTHER_ID, 'TOKEN') } })],
    ['env.A', localServer({ env: { A: 'vault://connectors/acme/mail' } })],
    ['headers.X', remoteServer({ headers: { X: mcpReference(OTHER_ID, 'TOKEN') } })],
    ['url', remoteServer({ url: `https://${TOKEN}/mcp` })],
    ['url', remoteServer({ url: `https://a.example/${TOKEN}?q` })],
    ['url', remoteServer({ url: `https://a.example/mcp?k=${mcpReference(OTHER_ID, 'TOKEN')}` })],
    ['url', remoteServer({ url: `https://a.example/mcp?a#${TOKEN}` })],
  ])('refuses one elsewhere, or to another server: %s', (place, server) => {
    expect(referenceProblem(server)?.startsWith(place)).toBe(true);
    expect(withReferences(server, new Map([[mcpVaultPath(OTHER_ID, 'TOKEN'), 'x']])).ok).toBe(false);
  });

  test('lists each path once', () => {
    const server = localServer({ command: ['x', TOKEN], env: { A: TOKEN, B: mcpReference(SERVER_ID, 'B') } });
    expect(referencesOf(server)).toEqual([mcpVaultPath(SERVER_ID, 'TOKEN'), mcpVaultPath(SERVER_ID, 'B')]);
  });
});

describe('values in place of references', () => {
  test('are written unchanged, and percent-encoded into a URL', () => {
    const local = localServer({ command: ['x', `--k=${TOKEN}`], env: { A: `p ${TOKEN}`, B: 'plain' } });
    expect(withValues(local, { TOKEN: 'a&b' })).toMatchObject({
      ok: true,
      value: { command: ['x', '--k=a&b'], env: { A: 'p a&b', B: 'plain' } },
    });
    const remote = remoteServer({
      url: `https://a.example/mcp?k=${TOKEN}`,
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    expect(withValues(remote, { TOKEN: 'a&b' })).toMatchObject({
      ok: true,
      value: { url: 'https://a.example/mcp?k=a%26b', headers: { Authorization: 'Bearer a&b' } },
    });
  });

  test('a value that looks like a reference is not resolved again', () => {
    const server = localServer({ env: { A: TOKEN } });
    expect(withValues(server, { TOKEN: mcpReference(SERVER_ID, 'B'), B: 'never' })).toMatchObject({
      value: { env: { A: mcpReference(SERVER_ID, 'B') } },
    });
  });

  test('a missing one is an error that names its path', () => {
    const server = localServer({ env: { A: TOKEN } });
    expect(withValues(server, {})).toEqual({ ok: false, error: `no value is stored for ${TOKEN}` });
  });
});
