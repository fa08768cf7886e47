import type { McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { replace } from './mcp_change.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

export interface McpToolsOptions extends OwnerOption {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly approve?: readonly string[];
  readonly reset?: boolean;
}

const EVERY_TOOL: McpServerRecord['tools'] = { allow: null, deny: [], approval: [] };

/** `svc mcp tools SERVER`: prints the rules. With options, each given list replaces the earlier one. */
export async function mcpTools(call: Call<McpToolsOptions>): Promise<undefined> {
  const { allow, deny, approve, reset } = call.options;
  const client = controlClient(call.context, call.options);
  const before = await findMcpServer(client, call.args[0] ?? '', call.options.owner);
  const isChange = reset === true || allow !== undefined || deny !== undefined || approve !== undefined;
  const rules = reset === true ? EVERY_TOOL : before.tools;
  const tools = { allow: allow ?? rules.allow, deny: deny ?? rules.deny, approval: approve ?? rules.approval };
  const record = isChange ? await replace(client, before, { tools }) : before;
  if (isChange) await serversAfterChange(call);
  call.print.data(record.tools, () =>
    toolRules(record)
      .map((rule) => `${toPrintable(rule)}\n`)
      .join(''),
  );
}

/** The rules, one per line. */
export function toolRules({ tools }: Pick<McpServerRecord, 'tools'>): readonly string[] {
  const { allow, deny, approval } = tools;
  const allowed = allow === null ? 'all' : allow.length === 0 ? 'none' : allow.join(', ');
  return [
    `tools: ${allowed}`,
    ...(deny.length > 0 ? [`never: ${deny.join(', ')}`] : []),
    ...(approval.length > 0 ? [`with a person's approval: ${approval.join(', ')}`] : []),
  ];
}
