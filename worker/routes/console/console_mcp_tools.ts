import { withChoice } from '../../../shared/mcp/tool_policy.ts';
import { TOOL_CHOICES } from '../../../shared/model/mcp_tool.ts';
import { mcpServerInput, type McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { mcpToolsAcceptInput } from '../../../shared/wire/mcp/mcp_tools.ts';
import { mcpToolsPage } from '../../pages/mcp/mcp_tools.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { putMcpServer } from '../../services/mcp/mcp_servers.ts';
import { acceptTools, listTools } from '../../services/mcp/mcp_tools.ts';
import type { AppContext } from '../http/app_env.ts';
import { invalidInput } from '../http/error_reply.ts';
import { formAgain, problem, redirectDone } from './console.ts';
import { CHANGED, changeOfServer, pageOfServer, toWrittenFields } from './console_mcp_servers.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-servers/{id}/tools` */
export const getMcpToolsPage = pageOfServer(async (c, caller, server) => {
  const tools = await toolsView(c, caller, server, null);
  return tools.ok ? consolePage(c, caller, mcpToolsPage(tools.value)) : problem(c, caller, tools.error);
});

async function toolsView(c: AppContext, caller: Caller, server: McpServerRecord, refusal: string | null) {
  const context = c.get('context');
  const tools = await listTools(context, caller, server.id);
  if (!tools.ok) return tools;
  const mayChange = writableOwner(caller, server.owner).ok;
  const value = { server, tools: tools.value.items, refusal, done: c.req.query('done'), mayChange };
  return { ok: true as const, value: { ...value, nowMs: context.clock.now() } };
}

async function again(c: AppContext, caller: Caller, server: McpServerRecord, refusal: string): Promise<Response> {
  const tools = await toolsView(c, caller, server, refusal);
  return tools.ok ? formAgain(c, caller, mcpToolsPage(tools.value)) : problem(c, caller, tools.error);
}

/** `POST /mcp-servers/{id}/tools/accept` */
export const submitMcpToolsAccept = changeOfServer(async (c, caller, server, fields) => {
  const input = mcpToolsAcceptInput.safeParse({ hashes: (fields['hashes'] ?? '').split(' ') });
  if (!input.success) return problem(c, caller, invalidInput('json', input.error));
  const accepted = await acceptTools(c.get('context'), caller, server.id, input.data.hashes);
  if (accepted.ok) return redirectDone(c, `/mcp-servers/${server.id}/tools`, 'mcp_tools_accepted');
  if (accepted.error.code !== 'conflict') return problem(c, caller, accepted.error);
  return again(c, caller, server, 'The tools have changed meanwhile: this page shows them as they are now.');
});

/** `POST /mcp-servers/{id}/tools/choice` */
export const submitMcpToolChoice = changeOfServer(async (c, caller, server, fields) => {
  if (fields['revision'] !== String(server.revision)) return again(c, caller, server, CHANGED);
  const choice = TOOL_CHOICES.find((one) => one === fields['choice']);
  const name = fields['tool'] ?? '';
  const changed = choice === undefined ? null : withChoice(server.tools, name, choice);
  if (changed?.ok === false) {
    const refusal = `A rule for several tools decides about this one: ${changed.error}. Change that rule on the page of the server.`;
    return again(c, caller, server, refusal);
  }
  const input = mcpServerInput.safeParse({ ...toWrittenFields(server), tools: changed?.value });
  if (!input.success || changed === null) return again(c, caller, server, 'No rule can name this tool.');
  const saved = await putMcpServer(c.get('context'), caller, server.id, input.data, server.revision);
  if (!saved.ok) return problem(c, caller, saved.error);
  return redirectDone(c, `/mcp-servers/${server.id}/tools`, 'mcp_tools_saved');
});
