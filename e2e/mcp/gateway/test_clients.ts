import { Client as ModernClient, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as EarlierClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as EarlierStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as EarlierHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { z } from 'zod';
import { pause } from '../../../machine/pause.ts';
import { HANGS_MS } from '../../support/hangs.ts';

/** The location of the gateway. */
export type GatewayEndpoint =
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }
  | { readonly kind: 'http'; readonly url: URL; readonly headers: Readonly<Record<string, string>> };

/** The parts of a client's answers that a test checks. */
interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly progress: number; readonly message?: string | undefined }) => void;
}

/** An official client with the handlers that a test needs, the same for each generation. */
export interface TestClient {
  readonly asked: string[];
  readonly toolChanges: () => number;
  readonly instructions: () => string;
  readonly updated: string[];
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<ToolAnswer>;
  listTools(): Promise<readonly { readonly name: string; readonly description?: string }[]>;
  listPrompts(): Promise<readonly string[]>;
  getPrompt(name: string, args?: Record<string, string>): Promise<string>;
  listResources(): Promise<readonly string[]>;
  readResource(uri: string): Promise<string>;
  complete(prompt: string, argument: string, value: string): Promise<readonly string[]>;
  watch(uri: string): Promise<void>;
  close(): Promise<void>;
}

const ANSWER = z.custom<ToolAnswer>();
const TOOLS = z.custom<readonly { readonly name: string; readonly description?: string }[]>();
const SAMPLED = { model: 'm', role: 'assistant', content: { type: 'text', text: 'a sampled answer' } } as const;
const CAPABILITIES = { sampling: {}, elicitation: { form: {} }, roots: {} };
const INFO = { name: 'e2e', version: '1' };

interface ToolList {
  readonly tools: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

/** The tools, once no server is left out because it starts: on a busy machine that takes longer than a list waits. */
async function listStarted({ kind }: GatewayEndpoint, list: () => Promise<ToolList>): Promise<z.infer<typeof TOOLS>> {
  const deadline = performance.now() + HANGS_MS;
  while (true) {
    const { tools, _meta: meta } = await list();
    const isWhole = kind === 'http' || meta?.['svc/starting'] === undefined;
    if (isWhole || performance.now() > deadline) return TOOLS.parse(tools);
    await pause(100);
  }
}

/** The SDK of the later generation, speaking either generation. */
export async function modernClient(
  endpoint: GatewayEndpoint,
  mode: 'auto' | 'legacy',
  can: object = CAPABILITIES,
): Promise<TestClient> {
  const asked: string[] = [];
  const updated: string[] = [];
  let changes = 0;
  const client = new ModernClient(INFO, {
    capabilities: can,
    versionNegotiation: { mode },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => (changes += 1) } },
  });
  if ('sampling' in can) client.setRequestHandler('sampling/createMessage', () => (asked.push('sampling'), SAMPLED));
  if ('elicitation' in can) {
    client.setRequestHandler(
      'elicitation/create',
      () => (asked.push('elicitation'), { action: 'accept', content: { name: 'Ada' } }),
    );
  }
  if ('roots' in can)
    client.setRequestHandler('roots/list', () => (asked.push('roots'), { roots: [{ uri: 'file:///e2e' }] }));
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void updated.push(params.uri));
  const transport: Transport =
    endpoint.kind === 'stdio'
      ? new StdioClientTransport({ command: endpoint.command, args: [...endpoint.args], stderr: 'inherit' })
      : new StreamableHTTPClientTransport(endpoint.url, { requestInit: { headers: { ...endpoint.headers } } });
  await client.connect(transport);
  if (mode === 'auto' && client.getProtocolEra() !== 'modern')
    throw new Error('the later generation was not agreed on');
  return {
    asked,
    updated,
    toolChanges: () => changes,
    instructions: () => client.getInstructions() ?? '',
    callTool: async (name, args = {}, options = {}) =>
      ANSWER.parse(await client.callTool({ name, arguments: args }, options)),
    listTools: () => listStarted(endpoint, () => client.listTools(undefined, { cacheMode: 'refresh' })),
    listPrompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    getPrompt: async (name, args = {}) => JSON.stringify((await client.getPrompt({ name, arguments: args })).messages),
    listResources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    readResource: async (uri) => JSON.stringify((await client.readResource({ uri })).contents),
    complete: async (prompt, name, value) =>
      (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } })).completion
        .values,
    watch: async (uri) => {
      if (mode === 'auto') await client.listen({ resourceSubscriptions: [uri] });
      else await client.subscribeResource({ uri });
    },
    close: () => client.close(),
  };
}

/** The SDK that most clients use today. */
export async function earlierClient(endpoint: GatewayEndpoint): Promise<TestClient> {
  const asked: string[] = [];
  const updated: string[] = [];
  let changes = 0;
  const client = new EarlierClient(INFO, { capabilities: CAPABILITIES });
  client.setRequestHandler(CreateMessageRequestSchema, () => (asked.push('sampling'), SAMPLED));
  client.setRequestHandler(ElicitRequestSchema, () => {
    asked.push('elicitation');
    return { action: 'accept', content: { name: 'Ada' } };
  });
  client.setRequestHandler(ListRootsRequestSchema, () => (asked.push('roots'), { roots: [{ uri: 'file:///e2e' }] }));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (changes += 1));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.push(params.uri));
  const transport =
    endpoint.kind === 'stdio'
      ? new EarlierStdio({ command: endpoint.command, args: [...endpoint.args], stderr: 'inherit' })
      : new EarlierHttp(endpoint.url, { requestInit: { headers: { ...endpoint.headers } } });
  await client.connect(transport);
  return {
    asked,
    updated,
    toolChanges: () => changes,
    instructions: () => client.getInstructions() ?? '',
    callTool: async (name, args = {}, options = {}) =>
      ANSWER.parse(await client.callTool({ name, arguments: args }, CallToolResultSchema, options)),
    listTools: () => listStarted(endpoint, () => client.listTools()),
    listPrompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    getPrompt: async (name, args = {}) => JSON.stringify((await client.getPrompt({ name, arguments: args })).messages),
    listResources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    readResource: async (uri) => JSON.stringify((await client.readResource({ uri })).contents),
    complete: async (prompt, name, value) =>
      (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } })).completion
        .values,
    watch: async (uri) => void (await client.subscribeResource({ uri })),
    close: () => client.close(),
  };
}
