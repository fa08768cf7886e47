// The server that the protocol's conformance suite expects of the earlier generation (2025-11-25).
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { answers } from './fixture_answers.js';

const SCHEMAS = {
  'tools/list': types.ListToolsRequestSchema,
  'tools/call': types.CallToolRequestSchema,
  'resources/list': types.ListResourcesRequestSchema,
  'resources/templates/list': types.ListResourceTemplatesRequestSchema,
  'resources/read': types.ReadResourceRequestSchema,
  'completion/complete': types.CompleteRequestSchema,
  'prompts/list': types.ListPromptsRequestSchema,
  'prompts/get': types.GetPromptRequestSchema,
};
const RESULTS = { sampling: types.CreateMessageResultSchema, elicitation: types.ElicitResultSchema };

const server = new Server(
  { name: 'fixture', version: '1' },
  {
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
    },
  },
);
for (const [method, answer] of answers) {
  server.setRequestHandler(SCHEMAS[method], (request, { sendNotification, sendRequest }) =>
    answer(request, { sendNotification, sendRequest: (asked, result) => sendRequest(asked, RESULTS[result]) }),
  );
}
const EMPTY = [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema, types.SetLevelRequestSchema];
for (const schema of EMPTY) server.setRequestHandler(schema, () => ({}));
await server.connect(new StdioServerTransport());
