import { type McpClientRecord, mcpClientsPage } from '../../shared/wire/mcp/mcp_clients.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';

/** `svc mcp clients`. */
export async function listMcpClients(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const clients = await fetchAllPages(controlClient(context, options), '/v1/mcp-clients', mcpClientsPage, {});
  const now = context.now();
  const columns: readonly Column<McpClientRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'ANSWERS TO', cell: ({ redirect_origin: origin, client_id: id }) => origin || id },
    { title: 'BY', cell: ({ connected_by: by }) => by },
    { title: 'CONNECTED', cell: ({ created_at: at }) => agoText(at, now) },
    { title: 'RENEWED', cell: ({ last_used_at: at }) => agoText(at, now) },
  ];
  print.rows(clients, clients, columns, 'no MCP clients: add the URL of a hosted control plane and /mcp in a client');
}

/** `svc mcp disconnect ID`. */
export async function disconnectMcpClient(call: Call): Promise<undefined> {
  const id = call.args[0] ?? '';
  await controlClient(call.context, call.options).callEmpty('DELETE', `/v1/mcp-clients/${encodeURIComponent(id)}`);
  call.print.line({ disconnected: id }, `disconnected ${id}`);
}
