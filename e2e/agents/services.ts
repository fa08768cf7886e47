import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { listen } from '../support/tls_upstream.ts';
import type { Certificate } from '../support/test_ca.ts';
import {
  anthropicEvents,
  CHATGPT_ACCOUNTS,
  chatEvents,
  COPILOT_MODELS,
  COPILOT_USER,
  GEMINI_ROUTE,
  geminiEvents,
  type ModelReply,
  responsesEvents,
  type StreamEvent,
} from './replies.ts';
import { serveWebSocket } from '../support/websocket.ts';

/** The wire form of a credential: the header and its whole value. */
interface WireForm {
  readonly header: string;
  readonly value: (credential: string) => string;
}
const BEARER: WireForm = { header: 'authorization', value: (credential) => `Bearer ${credential}` };
const inHeader = (header: string): WireForm => ({ header, value: (credential) => credential });

/** The hosts that need a credential, each with its accepted forms by the secret's vault path. */
type CredentialHosts = Readonly<Record<string, readonly (readonly [secret: string, form: WireForm])[]>>;
const HOSTS: CredentialHosts = {
  'api.anthropic.com': [
    ['user/anthropic', inHeader('x-api-key')],
    ['user/claude-subscription', BEARER],
  ],
  'api.openai.com': [['user/openai', BEARER]],
  'generativelanguage.googleapis.com': [['user/gemini', inHeader('x-goog-api-key')]],
  'dashscope.aliyuncs.com': [['user/dashscope', BEARER]],
  'api.github.com': [['user/copilot', BEARER]],
  'api.individual.githubcopilot.com': [['user/copilot', BEARER]],
};

/** The hosts of logins with a subscription; they want the access token that is current. */
export const LOGIN_HOSTS: CredentialHosts = {
  'api.anthropic.com': [['account/claude', BEARER]],
  'chatgpt.com': [['account/codex', BEARER]],
};

/** The hosts of both. */
export const ALL_HOSTS: CredentialHosts = Object.fromEntries(
  [...new Set([...Object.keys(HOSTS), ...Object.keys(LOGIN_HOSTS)])].map((host) => [
    host,
    [...(HOSTS[host] ?? []), ...(LOGIN_HOSTS[host] ?? [])],
  ]),
);

/** Hosts that the agents call without a credential. They answer here with nothing, so that no agent waits for the network. */
const OTHERS = [
  'ab.chatgpt.com',
  'auth.openai.com',
  'chatgpt.com',
  'claude.ai',
  'downloads.claude.ai',
  'gb4w8c3ygj-default-sea.rum.aliyuncs.com',
  'github.com',
  'mcp-proxy.anthropic.com',
  'models.dev',
  'oauth2.googleapis.com',
  'opencode.ai',
  'platform.claude.com',
  'play.googleapis.com',
  'telemetry.individual.githubcopilot.com',
];

export const SERVICE_HOSTS = [...Object.keys(HOSTS), ...OTHERS];

/** One answer of a model. */
interface Answered {
  readonly host: string;
  /** The secret whose credential the request had. */
  readonly secret: string;
  readonly over: 'SSE' | 'WebSocket';
}

/** The services that the agents call. */
export interface AgentServices {
  readonly port: number;
  /** The answers of models since the last reset. */
  readonly answered: readonly Answered[];
  /** Requests for a model's answer that did not have the credential. */
  readonly refused: readonly string[];
  /** Called before a model's request is answered; the answer waits for what it returns. */
  onAnswer(hook: () => Promise<unknown> | void): void;
  /** The next requests to this path are refused, as if their credential had expired. */
  refuseNext(path: string, count: number): void;
  reset(): void;
  close(): Promise<void>;
}

/** Services of logins: their hosts, and what answers at each token URL, without the scheme. */
interface Logins {
  readonly hosts?: CredentialHosts;
  readonly tokens?: Readonly<Record<string, (body: string) => { readonly status: number; readonly body: object }>>;
}

/** A tool that a request offers to the model, and what the Responses API groups it by. */
export interface OfferedTool {
  readonly name: string;
  readonly namespace?: string;
}

/** A request for a model's answer. */
export interface ModelRequest {
  readonly tools: readonly OfferedTool[];
  readonly body: string;
}

/** What models answer: always the same, or a reply to each request. */
export type ModelAnswer = string | ((request: ModelRequest) => Promise<ModelReply>);

/** Starts the services. Each refuses requests without its credential; models give `answer`. */
export async function startServices(
  certificate: Certificate,
  credentials: Readonly<Record<string, string | readonly string[]>>,
  modelAnswer: ModelAnswer,
  { hosts = HOSTS, tokens = {} }: Logins = {},
): Promise<AgentServices> {
  const answered: Answered[] = [];
  const refused: string[] = [];
  let hook: (() => Promise<unknown> | void) | null = null;
  /** A hook that fails is the business of the test that gave it. */
  const runHook = async (): Promise<void> => {
    await Promise.resolve(hook?.()).catch(() => undefined);
  };
  let expired = { path: '', count: 0 };
  const server = createServer(certificate, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const issue = tokens[`${request.headers.host ?? ''}${pathOf(request)}`];
      if (issue === undefined) return answer(request, body, response);
      const issued = issue(body);
      return sendJson(response, issued.status, issued.body);
    });
  });
  const admit = (request: IncomingMessage): string | null | undefined => {
    const host = request.headers.host ?? '';
    const forms = hosts[host];
    if (forms === undefined) return undefined;
    const found = forms.find(([secret, { header, value }]) => {
      return [credentials[secret] ?? ''].flat().some((accepted) => request.headers[header] === value(accepted));
    });
    return found?.[0] ?? null;
  };
  const replyTo = async (body: string): Promise<ModelReply> =>
    typeof modelAnswer === 'string' ? modelAnswer : modelAnswer({ tools: offeredTools(body), body });
  const answer = (request: IncomingMessage, body: string, response: ServerResponse): void => {
    const secret = admit(request);
    const host = request.headers.host ?? '';
    if (expired.count > 0 && pathOf(request) === expired.path) {
      expired = { ...expired, count: expired.count - 1 };
      return sendJson(response, 401, { error: { message: 'the credential has expired' } });
    }
    const format = secret === undefined ? null : modelFormat(request);
    if (secret === null) {
      if (format !== null) refused.push(`${request.method} ${host}${request.url}`);
      return sendJson(response, 401, { error: { message: 'the credential is wrong' } });
    }
    if (secret !== undefined && format !== null) {
      answered.push({ host, secret, over: 'SSE' });
      void runHook()
        .then(() => replyTo(body))
        .then((reply) => sendEvents(response, format(reply)));
      return;
    }
    const json = secret === undefined ? undefined : PLAIN_ROUTES[`${host}${pathOf(request)}`];
    const isRoute = pathOf(request).includes(':generateContent');
    return sendJson(response, json === undefined && !isRoute ? 404 : 200, json ?? (isRoute ? GEMINI_ROUTE : {}));
  };
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const secret = admit(request);
    if (secret === null) refused.push(`WebSocket ${request.headers.host}${request.url}`);
    if (typeof secret !== 'string' || !pathOf(request).endsWith('/responses')) {
      socket.end(`HTTP/1.1 ${secret === null ? 401 : 404} No\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    serveWebSocket(request, socket, head, async (message) => {
      answered.push({ host: request.headers.host ?? '', secret, over: 'WebSocket' });
      await runHook();
      return responsesEvents(await replyTo(message)).map(([, data]) => JSON.stringify(data));
    });
  });
  const port = await listen(server);
  return {
    port,
    answered,
    refused,
    onAnswer: (next) => (hook = next),
    refuseNext: (path, count) => (expired = { path, count }),
    reset: () => {
      answered.length = 0;
      refused.length = 0;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] ?? '';
}

/** How a model's endpoint streams a reply; null for any other path. */
function modelFormat(request: IncomingMessage): ((reply: ModelReply) => readonly StreamEvent[]) | null {
  const path = pathOf(request);
  if (request.method !== 'POST') return null;
  if (path === '/v1/messages') return anthropicEvents;
  if (path.endsWith('/responses')) return responsesEvents;
  if (path.endsWith('/chat/completions')) return chatEvents;
  return path.includes(':streamGenerateContent') ? geminiEvents : null;
}

const namedTool = z.object({ name: z.string() });
/** The tools of a request in each API, some of them in groups. */
const toolsOfRequest = z.object({
  tools: z.array(
    z.union([
      z.object({ type: z.literal('namespace'), name: z.string(), tools: z.array(namedTool) }),
      z.object({ functionDeclarations: z.array(namedTool) }),
      z.object({ function: namedTool }),
      namedTool,
      z.object({}),
    ]),
  ),
});

/** The tools that a request in any of these APIs offers. */
export function offeredTools(body: string): readonly OfferedTool[] {
  const parsed = toolsOfRequest.safeParse(parseJson(body));
  return (parsed.data?.tools ?? []).flatMap((tool): readonly OfferedTool[] => {
    if ('tools' in tool) return tool.tools.map(({ name }) => ({ name, namespace: tool.name }));
    if ('functionDeclarations' in tool) return tool.functionDeclarations;
    if ('function' in tool) return [tool.function];
    return 'name' in tool ? [{ name: tool.name }] : [];
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const PLAIN_ROUTES: Readonly<Record<string, unknown>> = {
  'api.github.com/copilot_internal/user': COPILOT_USER,
  'api.individual.githubcopilot.com/models': COPILOT_MODELS,
  'chatgpt.com/backend-api/wham/accounts/check': CHATGPT_ACCOUNTS,
};

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Writes each server-sent event separately. */
export function sendEvents(response: ServerResponse, events: readonly StreamEvent[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [name, data] of events) {
    const lines = [...(name === null ? [] : [`event: ${name}`]), `data: ${toData(data)}`, '', ''];
    response.write(lines.join('\n'));
  }
  response.end();
}

function toData(data: unknown): string {
  return typeof data === 'string' ? data : JSON.stringify(data);
}
