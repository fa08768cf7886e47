import { mcpClientParams, mcpClientsPage, mcpClientsQuery } from '../../../shared/wire/mcp/mcp_clients.ts';
import { disconnectMcpClient, listMcpClientPage } from '../../tokens/mcp/mcp_connections.ts';
import { forUser } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getMcpClients = forUser({
  summary: 'List your MCP clients',
  description:
    'They use your remote MCP servers at /mcp of a hosted control plane. You have connected them, or the OpenID provider of your enterprise has.',
  query: mcpClientsQuery,
  replies: { 200: mcpClientsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listMcpClientPage(context, who, query));
  },
});

export const deleteMcpClient = forUser({
  summary: 'Disconnect one of your MCP clients',
  description:
    'Its next call is refused. The provider of your enterprise does not connect it again until you connect it yourself, unless you still have another connection of it that you made.',
  params: mcpClientParams,
  replies: { 204: 'Disconnected' },
  async handle({ context, who, params }) {
    return emptyReply(await disconnectMcpClient(context, who, params.id));
  },
});
