import { createMcpHandler, type McpHttpHandler, Server } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { err, ok } from '../../shared/model/result.ts';
import { mcpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { type Outbound, type OutboundRequest, targetProblem } from '../../worker/kernel/outbound.ts';
import { hostedUser, type HostedUser, PUBLIC_URL, signInBrowser } from '../runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../runtimes/in_process.ts';

/** What a host on the Internet answers. */
type Host = (request: Request) => Response | Promise<Response>;

/** A hosted control plane in this process whose outgoing calls reach hosts of the test. */
export interface RemoteWorld {
  readonly control: InProcess;
  readonly hosts: Map<string, Host>;
  /** Every outgoing call. */
  readonly calls: OutboundRequest[];
  stop(): Promise<void>;
}

export async function startRemoteWorld(publicUrl = PUBLIC_URL): Promise<RemoteWorld> {
  const hosts = new Map<string, Host>();
  const calls: OutboundRequest[] = [];
  const outbound: Outbound = {
    async call(request) {
      calls.push(request);
      const url = new URL(request.url);
      const problem = targetProblem(url, false);
      if (problem !== null) return err(problem);
      const host = hosts.get(url.host);
      if (host === undefined) return err({ reason: 'upstream_unreachable', message: `${url.host} is not there` });
      const { method, headers, body } = request;
      const reply = await host(new Request(url, { method, headers, body }));
      const [session, challenge] = [reply.headers.get('mcp-session-id'), reply.headers.get('www-authenticate')];
      return ok({
        status: reply.status,
        contentType: reply.headers.get('content-type') ?? '',
        ...(session !== null && { mcpSessionId: session }),
        ...(challenge !== null && { wwwAuthenticate: challenge }),
        body: new Uint8Array(await reply.arrayBuffer()),
      });
    },
  };
  const control = await startInProcess({ localKey: null, publicUrl, outbound });
  return { control, hosts, calls, stop: () => control.stop() };
}

/** A tool of the test's server, and what it answers. */
interface TestTool {
  readonly description?: string;
  readonly answer: (args: Readonly<Record<string, unknown>>) => string;
}

/** A remote MCP server that wants this bearer token, with its calls. */
export function toolServer(
  tools: Readonly<Record<string, TestTool>>,
  token: string,
): { readonly host: Host; readonly called: string[] } {
  const called: string[] = [];
  const handler: McpHttpHandler = createMcpHandler(() => {
    const server = new Server({ name: 'tools', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({
      tools: Object.entries(tools).map(([name, { description = '' }]) => ({
        name,
        description,
        inputSchema: { type: 'object' as const },
      })),
    }));
    server.setRequestHandler('tools/call', ({ params }) => {
      called.push(params.name);
      const text = tools[params.name]?.answer(params.arguments ?? {}) ?? 'no such tool';
      return { content: [{ type: 'text', text }] };
    });
    return server;
  });
  const host: Host = (request) => {
    if (request.headers.get('authorization') !== `Bearer ${token}`) return new Response('no', { status: 401 });
    return handler.fetch(request);
  };
  return { host, called };
}

export interface RemoteUser extends HostedUser {
  /** The cookie of its browser. */
  readonly cookie: string;
}

export async function remoteUser(control: InProcess, enterpriseId: string | null = null): Promise<RemoteUser> {
  const user = await hostedUser(control, enterpriseId);
  return { ...user, cookie: await signInBrowser(control, user.caller) };
}

/** Registers a remote server with a stored bearer token for the user. */
export async function addRemoteServer(
  user: HostedUser,
  server: Readonly<Record<string, unknown>> & { readonly name: string },
  token: string,
): Promise<string> {
  const headers = { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' };
  const input = { mode: 'remote', url: 'https://tools.example.com/mcp', headers, owner: 'personal', ...server };
  const { id } = await parseReply(mcpServerRecord, user.call('POST', '/v1/mcp-servers', input));
  const stored = await user.call('POST', `/v1/mcp-servers/${id}/credentials`, {
    env_var_name: 'TOKEN',
    secret_value: token,
  });
  if (!stored.ok) throw new Error(await stored.text());
  return id;
}

/** A PKCE pair (RFC 7636). */
export async function pkce(): Promise<{ readonly verifier: string; readonly challenge: string }> {
  const verifier = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return { verifier, challenge: Buffer.from(digest).toString('base64url') };
}

/** The answer of a browser that opens the consent page and decides there. */
export async function decideInBrowser(
  control: InProcess,
  cookie: string,
  url: string,
  decision: 'connect' | 'deny' = 'connect',
  origin = PUBLIC_URL,
): Promise<Response> {
  return control.send(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, origin, 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ decision }),
  });
}

export const registered = z.looseObject({ client_id: z.string() });
