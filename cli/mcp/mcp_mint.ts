import { mcpVaultPath } from '../../shared/model/mcp_server.ts';
import { addSourceAt } from '../bindings/add_source.ts';
import type { AddSourceOptions } from '../bindings/source_options.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';

export type McpMintOptions = AddSourceOptions & OwnerOption;

/** `svc mcp credential mint SERVER NAME KIND`: a source at the vault path of a server's credential. */
export async function mintMcpCredential(call: Call<McpMintOptions>): Promise<undefined> {
  const [wanted = '', name = '', kind = '', ...more] = call.args;
  const client = controlClient(call.context, call.options);
  const { id, owner } = await findMcpServer(client, wanted, call.options.owner);
  return addSourceAt(call, { path: mcpVaultPath(id, name), owner, kind, more });
}
