/** A downstream server of the earlier generation that puts its secret into every kind of message it can send. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const secret = process.env['SECRET'] ?? '';
const URI = 'tell://plain';
const capabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true },
  prompts: {},
  completions: {},
  logging: {},
};
const server = new Server({ name: secret, version: secret }, { capabilities, instructions: secret });

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    { name: 'tell', description: `tool ${secret}`, inputSchema: { type: 'object', properties: { [secret]: {} } } },
  ],
}));
server.setRequestHandler(ListResourcesRequestSchema, () => ({
  resources: [
    { uri: URI, name: `resource ${secret}` },
    { uri: `tell://${secret}`, name: 'in its URI' },
  ],
}));
server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
  resourceTemplates: [{ uriTemplate: `tell://{one}/${secret}`, name: `template ${secret}` }],
}));
server.setRequestHandler(ListPromptsRequestSchema, () => ({
  prompts: [{ name: 'tell', description: `prompt ${secret}`, arguments: [{ name: 'a' }] }],
}));
server.setRequestHandler(ReadResourceRequestSchema, () => ({ contents: [{ uri: URI, text: `contents ${secret}` }] }));
server.setRequestHandler(GetPromptRequestSchema, () => ({
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: `message ${secret}` } }],
}));
server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: [`completion ${secret}`] } }));
server.setRequestHandler(SubscribeRequestSchema, async () => {
  await server.notification({ method: 'notifications/resources/updated', params: { uri: `tell://${secret}` } });
  throw new Error(`subscription ${secret}`);
});
server.setRequestHandler(CallToolRequestSchema, async ({ params: { _meta: meta } }, { sendNotification }) => {
  const progressToken = meta?.progressToken ?? 0;
  await sendNotification({
    method: 'notifications/progress',
    params: { progressToken, progress: 1, message: `progress ${secret}` },
  });
  await sendNotification({ method: 'notifications/message', params: { level: 'error', data: `log ${secret}` } });
  const sampled = await server.createMessage({
    maxTokens: 1,
    systemPrompt: `system ${secret}`,
    messages: [{ role: 'user', content: { type: 'text', text: `sampling ${secret}` } }],
  });
  const asked = await server.elicitInput({
    message: `elicitation ${secret}`,
    requestedSchema: { type: 'object', properties: { name: { type: 'string', description: `form ${secret}` } } },
  });
  return {
    content: [{ type: 'text', text: `result ${secret} ${sampled.model} ${asked.action}` }],
    structuredContent: { [secret]: [secret] },
    _meta: { secret },
  };
});

await server.connect(new StdioServerTransport());
