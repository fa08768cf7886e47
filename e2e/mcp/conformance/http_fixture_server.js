// The suite's tools, prompts and resources as a remote server, in both generations. Prints its port.
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { answers } from './fixture_answers.js';

const { fetch: answerMcp } = createMcpHandler(() => {
  const server = new Server(
    { name: 'fixture', version: '1' },
    { capabilities: { tools: {}, prompts: {}, resources: {} } },
  );
  for (const method of ['tools/list', 'tools/call']) {
    server.setRequestHandler(method, (request, context) =>
      answers.get(method)(request, { sendNotification: (notification) => context.mcpReq.notify(notification) }),
    );
  }
  return server;
});

const http = createServer(async (request, response) => {
  const body = request.method === 'POST' ? await buffer(request) : undefined;
  const { method, headers } = request;
  const reply = await answerMcp(new Request(`http://127.0.0.1${request.url}`, { method, headers, body }));
  response.writeHead(reply.status, Object.fromEntries(reply.headers)).end(Buffer.from(await reply.arrayBuffer()));
});
http.listen(0, '127.0.0.1', () => process.stdout.write(`${http.address().port}\n`));
