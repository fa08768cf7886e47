import { createServer, type RequestListener, type Server } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type OAuthProvider, startOAuthProvider } from '../runtimes/oauth_provider.ts';
import { searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { listen } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { earlierClient } from './gateway/test_clients.ts';

// A remote server that requires OAuth, end to end: its metadata, a provider that registers clients, and the gateway that sends
// the token from the control plane.

const begun = z.object({ authorization_url: z.string() });
const shown = z.object({ id: z.string(), authorization: z.object({ state: z.string() }).nullable() });

let svc: Svc;
let provider: OAuthProvider;
let remote: Server;
let url: string;
/** The access tokens that the server accepted. */
const taken = new Set<string>();

beforeAll(async () => {
  const handler = z.custom<RequestListener>().parse(toNodeHandler(createMcpHandler(() => whoServer())));
  remote = createServer((request, response) => {
    if (request.url === '/metadata') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ resource: url, authorization_servers: [provider.origin] }));
      return;
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (token !== undefined && decodeJwt(token).aud === url) {
      taken.add(token);
      handler(request, response);
      return;
    }
    const metadata = new URL('/metadata', url).href;
    const challenge = `Bearer resource_metadata="${metadata}", scope="openid offline_access tools"`;
    response.writeHead(401, { 'www-authenticate': challenge }).end();
  });
  url = `http://127.0.0.1:${await listen(remote)}/mcp`;
  svc = await Svc.up();
  const redirectUris = [`${svc.runFile.control_url}/auth/connectors/callback`];
  provider = await startOAuthProvider({ redirectUris, registration: true, resources: [url] });
});
afterAll(async () => {
  await svc.stop();
  await provider.stop();
  remote.closeAllConnections();
  remote.close();
});

/** A server with one tool. */
function whoServer(): McpServer {
  const server = new McpServer({ name: 'who', version: '1' });
  server.registerTool('who', { description: 'Who is signed in', inputSchema: z.object({}) }, () => ({
    content: [{ type: 'text', text: 'alice' }],
  }));
  return server;
}

const gateway = () => earlierClient({ kind: 'stdio', command: SVC, args: ['--home', svc.home, 'mcp', 'gateway'] });
const record = async () => shown.parse(JSON.parse(await svc.ok(['mcp', 'show', 'hub', '--json'])));

describe('a remote server that requires OAuth', () => {
  it('is not used before a person has signed in to it', async () => {
    await svc.ok(['mcp', 'add', 'hub', '--url', url]);
    const client = await gateway();
    expect(await client.listTools()).toEqual([]);
    await waitFor('the control plane to know', async () =>
      (await svc.ok(['mcp', 'show', 'hub'])).includes('health: needs authorisation'),
    );
    await client.close();
    expect(taken.size).toBe(0);
  });

  it('is used with the tokens of the sign-in that svc mcp authorize started', async () => {
    const refused = await svc.cli(['mcp', 'authorize', 'hub', '--no-wait', '--json']);
    expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('sign in')]);
    const agreed = ['--authorization-host', new URL(provider.origin).host];
    const link = begun.parse(JSON.parse(await svc.ok(['mcp', 'authorize', 'hub', ...agreed, '--no-wait', '--json'])));
    const back = await provider.authorise(link.authorization_url);
    expect(await (await fetch(back)).text()).toContain('hub is authorised');
    expect((await record()).authorization?.state).toBe('ready');
    const client = await gateway();
    const tools = await waitFor('the tools of the server', async () => {
      const found = await client.listTools();
      return found.length > 0 ? found : null;
    });
    expect(tools.map(({ name }) => name)).toEqual(['hub__who']);
    expect((await client.callTool('hub__who')).content).toMatchObject([{ type: 'text', text: 'alice' }]);
    await client.close();
    expect(taken.size).toBe(1);
  });

  it('leaves its token in no file and no process of the machine', () => {
    const [token = ''] = taken;
    expect(searchFiles(svc.home, token).holding).toEqual([]);
    expect(searchProcesses(token).holding).toEqual([]);
    expect(svc.output).not.toContain(token);
  });

  it('is no longer used once the sign-in is deleted', async () => {
    await svc.ok(['mcp', 'authorize', 'hub', '--forget']);
    expect((await record()).authorization).toBeNull();
    const client = await gateway();
    expect(await client.listTools()).toEqual([]);
    await client.close();
  });
});
