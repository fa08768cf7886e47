import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createClient } from '@libsql/client';
import { afterAll, describe, expect, test } from 'vitest';
import { Secret } from '../../shared/model/secret.ts';
import { mcpTokens } from '../../shared/wire/mcp/mcp_clients.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { PUBLIC_URL, signInBrowser } from '../runtimes/hosted_users.ts';
import { addUser, startInProcess } from '../runtimes/in_process.ts';
import {
  type DatabaseUrls,
  databaseSettings,
  listening,
  run,
  runDeno,
  startLibsqlServer,
  startOnWorkerd,
  until,
} from '../runtimes/programs.ts';
import { forwardedHeaders } from '../sign_in/named_outbound.ts';
import { CONTROL_PLANE } from '../support/program.ts';
import { pkce, registered } from './remote_world.ts';

// A hosted control plane on each runtime connects a client, and the SDK's client uses it.

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const HOST = new URL(PUBLIC_URL).host;
const REDIRECT = 'http://localhost/callback';
type Settings = Readonly<Record<string, string>>;

async function startOnNode(settings: Settings): Promise<string> {
  const program = run('node', [...CONTROL_PLANE, '--port', '0'], { ...settings });
  stops.push(() => program.stop());
  return until(program, listening(program));
}

async function startOnDeno(settings: Settings): Promise<string> {
  const program = runDeno([], { ...settings });
  stops.push(() => program.stop());
  return until(program, listening(program));
}

async function startHostedOnWorkerd(settings: Settings, database: DatabaseUrls): Promise<string> {
  const control = await startOnWorkerd(database, { ...settings, SVC_LOCAL: '0' });
  stops.push(() => control.stop());
  return control.url;
}

/** The cookie of a signed-in browser; a second worker on the same database signs it in, like a provider. */
async function signInOn(database: DatabaseUrls, key: string): Promise<string> {
  const client = createClient({ url: database.url });
  const shared = { database: openDatabase(client), clock: SYSTEM_CLOCK, masterKey: new Secret(key) };
  const beside = await startInProcess({ ...shared, publicUrl: PUBLIC_URL, localKey: null });
  stops.push(() => beside.stop());
  return signInBrowser(beside, await addUser(beside.context, null));
}

describe('a remote MCP server for each person', () => {
  test.each([
    ['Node', startOnNode],
    ['Deno', startOnDeno],
    ['workerd', startHostedOnWorkerd],
  ] as const)('connects a client on %s, which lists its tools and runs an operation', async (_, start) => {
    const server = await startLibsqlServer();
    stops.push(() => server.stop());
    const database = { url: server.url };
    const settings: Settings = { ...databaseSettings(database), SVC_PUBLIC_URL: PUBLIC_URL, SVC_ALLOWED_HOSTS: HOST };
    const url = await start(settings, database);
    const cookie = await signInOn(database, settings['SVC_VAULT_KEY'] ?? '');
    const send = (target: string | URL, init: RequestInit = {}) => {
      const { pathname, search } = new URL(target, PUBLIC_URL);
      const headers = { ...Object.fromEntries(new Headers(init.headers)), ...forwardedHeaders(HOST) };
      return fetch(url + pathname + search, { ...init, headers, redirect: 'manual' });
    };
    const ofBrowser = { cookie, origin: PUBLIC_URL, 'content-type': 'application/json' };
    const gone = { name: 'gone', mode: 'remote', url: 'https://gone.invalid/mcp', owner: 'personal' };
    const added = await send('/v1/mcp-servers', { method: 'POST', headers: ofBrowser, body: JSON.stringify(gone) });
    expect(added.status).toBe(201);
    const spec = JSON.stringify(ITEMS_SPEC);
    const installed = await send('/v1/connectors?owner=personal', { method: 'POST', headers: ofBrowser, body: spec });
    expect(installed.status).toBe(201);

    const registration = { method: 'POST', body: JSON.stringify({ redirect_uris: [REDIRECT] }) };
    const { client_id: clientId } = registered.parse(await (await send('/oauth/register', registration)).json());
    const { verifier, challenge } = await pkce();
    const asked = { response_type: 'code', client_id: clientId, redirect_uri: REDIRECT, code_challenge: challenge };
    const query = new URLSearchParams({ ...asked, code_challenge_method: 'S256' }).toString();
    const page = await send(`/oauth/authorize?${query}`, { headers: { cookie } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Connect this MCP client?')]);
    const decided = await send(`/oauth/authorize?${query}`, {
      method: 'POST',
      headers: { cookie, origin: PUBLIC_URL, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'decision=connect',
    });
    const code = new URL(decided.headers.get('location') ?? 'none:').searchParams.get('code') ?? '';
    const exchange = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: REDIRECT };
    const redeemed = await send('/oauth/token', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...exchange, code_verifier: verifier }).toString(),
    });
    const { access_token: token } = mcpTokens.parse(await redeemed.json());

    for (const mode of ['legacy', 'auto'] as const) {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
      const authProvider = { token: async () => token };
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${PUBLIC_URL}/mcp`), { fetch: send, authProvider }),
      );
      const listed = await client.listTools();
      expect(listed.tools.map(({ name }) => name)).toEqual(
        ['create-item', 'delete-item', 'get-item'].map((name) => `svc_run__acme_items__${name}`),
      );
      const called = await client.callTool({ name: 'svc_run__acme_items__get-item', arguments: { id: 'a1' } });
      expect([called.isError, JSON.stringify(called)]).toEqual([true, expect.stringContaining('binding_required')]);
      expect(listed['_meta']).toMatchObject({ 'svc/unavailable': { gone: expect.stringContaining('gone.invalid') } });
      await client.close();
    }
    expect((await send('/mcp', { method: 'POST', body: '{}' })).status).toBe(401);
  });
});
