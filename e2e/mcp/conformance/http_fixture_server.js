// The suite's tools as a remote server, in both generations. Prints its port.
import { serve } from '@hono/node-server';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { answers } from './fixture_answers.js';

const { fetch } = createMcpHandler(() => {
  const server = new Server({ name: 'fixture', version: '1' }, { capabilities: { tools: {} } });
  for (const method of ['tools/list', 'tools/call']) {
    server.setRequestHandler(method, (request, context) =>
      answers.get(method)(request, { sendNotification: (notification) => context.mcpReq.notify(notification) }),
    );
  }
  return server;
});
serve({ fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => process.stdout.write(`${port}\n`));
