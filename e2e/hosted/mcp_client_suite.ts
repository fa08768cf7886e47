import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, test } from 'vitest';
import { mcpTokens } from '../../shared/wire/mcp/mcp_clients.ts';
import { pkce, registered } from '../mcp/remote_world.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import type { TestBrowser } from '../sign_in/test_browser.ts';
import type { HostedWorker } from './hosted_worker.ts';
import { ORIGIN } from './hosted_world.ts';

/** What a call to a host that is not there ends with: what stands for the network of workerd answers in its place. */
const GONE: Readonly<Record<string, string>> = { workerd: 'HTTP 500' };
const REDIRECT = 'http://localhost/callback';

/** Connects an MCP client, as a person allows it in the browser. Returns its access token. */
async function connectClient(worker: HostedWorker, browser: TestBrowser): Promise<string> {
  const registration = await worker.post('/oauth/register', { redirect_uris: [REDIRECT] });
  const { client_id: clientId } = registered.parse(await registration.json());
  const { verifier, challenge } = await pkce();
  const asked = { response_type: 'code', client_id: clientId, redirect_uri: REDIRECT, code_challenge: challenge };
  const query = new URLSearchParams({ ...asked, code_challenge_method: 'S256' }).toString();
  const page = await (await browser.get(`/oauth/authorize?${query}`)).text();
  if (!page.includes('Connect this MCP client?')) throw new Error(`the person is not asked: ${page}`);
  const decided = await browser.submit(`/oauth/authorize?${query}`, { decision: 'connect' });
  const code = new URL(decided.headers.get('location') ?? 'none:').searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: REDIRECT };
  const redeemed = await worker.send('/oauth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ ...exchange, code_verifier: verifier }).toString(),
  });
  return mcpTokens.parse(await redeemed.json()).access_token;
}

/** The control plane as a remote MCP server, which the SDK's client uses. */
export function describeMcpClient(runtime: string, workerOf: () => HostedWorker): void {
  describe(`a remote MCP server for each person on ${runtime}`, () => {
    test('connects a client, which lists its tools and runs an operation', async () => {
      const worker = workerOf();
      const { browser } = await worker.signIn(`mcp-${runtime}`);
      const { program } = await worker.openPerson(browser, `mcp-${runtime}`);
      const gone = { name: 'gone', mode: 'remote', url: 'https://gone.invalid/mcp', owner: 'personal' };
      expect((await program.call('POST', '/v1/mcp-servers', gone)).status).toBe(201);
      expect((await program.call('POST', '/v1/connectors?owner=personal', ITEMS_SPEC)).status).toBe(201);
      const token = await connectClient(worker, browser);

      for (const mode of ['legacy', 'auto'] as const) {
        const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
        const authProvider = { token: async () => token };
        const options = { fetch: worker.send, authProvider };
        await client.connect(new StreamableHTTPClientTransport(new URL(`${ORIGIN}/mcp`), options));
        const listed = await client.listTools();
        expect(listed.tools.map(({ name }) => name)).toEqual(
          ['create-item', 'delete-item', 'get-item'].map((name) => `svc_run__acme_items__${name}`),
        );
        const called = await client.callTool({ name: 'svc_run__acme_items__get-item', arguments: { id: 'a1' } });
        expect([called.isError, JSON.stringify(called)]).toEqual([true, expect.stringContaining('binding_required')]);
        expect(listed['_meta']).toMatchObject({
          'svc/unavailable': { gone: expect.stringContaining(GONE[runtime] ?? 'gone.invalid') },
        });
        await client.close();
      }
      expect((await worker.post('/mcp', {})).status).toBe(401);
    });
  });
}
