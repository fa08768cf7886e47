import { mcpRevisionsReply, mcpServerRecord, type McpRevisionsReply } from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { noteMissingCredentials } from './mcp_change.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { requireOutsideForTools } from './mcp_outside.ts';
import { startText } from './mcp_views.ts';
import { agoText } from '../terminal/relative_time.ts';

export interface McpRollbackOptions extends OwnerOption {
  readonly to?: string;
}
type Revision = McpRevisionsReply['items'][number];

/** `svc mcp rollback SERVER [--to REVISION]`. */
export async function rollbackMcpServer(call: Call<McpRollbackOptions>): Promise<undefined> {
  const { options, print } = call;
  const client = controlClient(call.context, options);
  const { id, name } = await findMcpServer(client, call.args[0] ?? '', options.owner);
  if (options.to === undefined) {
    const revisions = await client.call('GET', `/v1/mcp-servers/${id}/revisions`, mcpRevisionsReply);
    print.rows(revisions, revisions.items, columnsAt(call.context.now()), 'No revisions.');
    return;
  }
  if (!/^[1-9]\d{0,8}$/.test(options.to)) {
    throw new CliError(EXIT.usage, '--to is not a revision number', [`svc mcp rollback ${name} lists them.`]);
  }
  // An earlier revision may allow more tools.
  requireOutsideForTools(call);
  const body = { revision: Number(options.to) };
  const record = await client.call('POST', `/v1/mcp-servers/${id}/rollback`, mcpServerRecord, { body });
  await serversAfterChange(call);
  print.data(
    record,
    () => `restored ${record.name} from revision ${options.to ?? ''} (now revision ${record.revision})\n`,
  );
  noteMissingCredentials(call, record);
}

function columnsAt(now: number) {
  return [
    { title: 'REVISION', cell: (row: Revision) => String(row.revision) },
    { title: 'MADE', cell: (row: Revision) => agoText(row.created_at, now) },
    { title: 'BY', cell: (row: Revision) => row.changed_by },
    { title: 'NAME', cell: (row: Revision) => row.configuration.name },
    { title: 'ENABLED', cell: (row: Revision) => (row.configuration.enabled ? 'yes' : 'no') },
    { title: 'STARTS', cell: (row: Revision) => startText(row.configuration) },
  ];
}
