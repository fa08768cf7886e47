import type { CallToolResult, Client, Tool } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { maskValue } from '../../../../shared/inject/scrub/mask_value.ts';
import { callSummary, callText } from '../../../../shared/mcp/call_summary.ts';
import { readPages } from '../../../../shared/mcp/read_pages.ts';
import { toShownDefinition } from '../../../../shared/mcp/show_definition.ts';
import { formatToolName, splitToolName } from '../../../../shared/mcp/tool_names.ts';
import { paramHeaderProblem } from '../../../../shared/mcp/tools/param_headers.ts';
import { toolDecision } from '../../../../shared/mcp/tool_policy.ts';
import type { AuditEventData, McpOutcome } from '../../../../shared/model/audit_event.ts';
import { MAX_TOOLS_OF_SERVER } from '../../../../shared/model/mcp_tool.ts';
import { errorCode } from '../../../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../../../shared/model/result.ts';
import { commit } from '../../../kernel/commit.ts';
import { randomToken } from '../../../kernel/encoding.ts';
import { sha256Hex } from '../../../kernel/sha256.ts';
import { controlChain } from '../../../kernel/policy_change.ts';
import { isWorthRetrying } from '../../../kernel/is_worth_retrying.ts';
import { neededByRules } from '../../approvals/approval_standings.ts';
import { toolSubject } from '../../approvals/approval_subject.ts';
import { askApproval, fingerprintFor } from '../../approvals/approvals.ts';
import { keepReviewed } from '../mcp_tools.ts';
import { CONNECTOR_TOOL_PREFIX } from '../../../../shared/operation_tools/connector_tool.ts';
import { HeaderMismatch, type ServedCall, type ServedRequest, type ServedResult } from './served_request.ts';
import { callServedOperation, listServedOperations } from './served_operations.ts';
import { describeServerError, openServer, type OpenServer } from './open_server.ts';
import { listServedServers, type ServedServer } from './served_servers.ts';

interface ServedTools {
  readonly tools: readonly Tool[];
  /** The servers that are left out, with the reason. */
  readonly unavailable: Readonly<Record<string, string>>;
}

/** A server that does not answer in time does not hold up the list of the others. */
const LIST_MS = 20_000;
const MAX_PAGES = 20;

/** The tools of the caller's remote servers, as `<server>__<tool>`, and the operations of its connectors. Tools that the policy denies are left out. */
export async function listServedTools(request: ServedRequest): Promise<ServedTools> {
  const [served, ofConnectors] = await Promise.all([
    listServedServers(request.context, request.caller),
    listServedOperations(request),
  ]);
  const listed = await Promise.all(served.map(async (each) => [each.name, await listIsolated(request, each)] as const));
  const tools = [...ofConnectors, ...listed.flatMap(([, result]) => (result.ok ? result.value : []))];
  const failed = listed.flatMap(([name, result]) => (result.ok ? [] : [[name, result.error] as const]));
  return { tools: tools.toSorted((a, b) => (a.name < b.name ? -1 : 1)), unavailable: Object.fromEntries(failed) };
}

/** A failure of ours with one server does not hold up the list of the others. One of the database concerns them all. */
async function listIsolated(request: ServedRequest, served: ServedServer): Promise<Result<readonly Tool[], string>> {
  try {
    return await listOne(request, served);
  } catch (error) {
    if (isWorthRetrying(error)) throw error;
    const what = `the tools of the MCP server ${served.row.id} (${errorCode(error) || 'unknown'})`;
    request.context.defer(what, () => Promise.reject(error));
    return err('the control plane failed: see its log');
  }
}

async function listOne(request: ServedRequest, served: ServedServer): Promise<Result<readonly Tool[], string>> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(LIST_MS)]);
  const open = await openServer(request.context, served, signal);
  if (!open.ok) return open;
  const tools = await readTools(open.value, signal);
  open.value.close();
  if (!tools.ok) return tools;
  const named = await namesOf(served, await keepReviewed(request.context, request.caller, served.row.id, tools.value));
  return ok(named.filter(({ tool }) => decide(served, tool) !== 'denied').map(({ name, tool }) => ({ ...tool, name })));
}

/** What the policy of the server says about a tool that somebody has accepted. */
function decide({ server }: ServedServer, tool: Tool): ReturnType<typeof toolDecision> {
  return toolDecision(server.tools, tool);
}

const toolsPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const isTool = z.looseObject({
  name: z.string().min(1).max(1_024),
  inputSchema: z.looseObject({ type: z.literal('object') }),
});

/**
 * The server's tools with its credentials masked and hidden characters shown. An invalid or repeated item is left out. The
 * error is a sentence for the person.
 */
async function readTools(
  { client, patterns }: OpenServer,
  signal: AbortSignal,
): Promise<Result<readonly Tool[], string>> {
  if (client.getServerCapabilities()?.tools === undefined) return ok([]);
  const byName = new Map<string, Tool>();
  try {
    for (const item of await readItems(client, signal)) {
      const tool = maskValue(item, patterns);
      if (isServerTool(tool) && !byName.has(tool.name)) byName.set(tool.name, toShownDefinition(tool));
    }
  } catch (error) {
    return err(describeServerError(error, patterns));
  }
  return ok([...byName.values()].slice(0, MAX_TOOLS_OF_SERVER));
}

function isServerTool(item: unknown): item is Tool {
  return isTool.safeParse(item).success;
}

/** In the later generation, the SDK leaves out tools whose arguments cannot be repeated in headers. */
async function readItems(client: Client, signal: AbortSignal): Promise<readonly unknown[]> {
  if (client.getProtocolEra() === 'modern') return (await client.listTools(undefined, { signal })).tools;
  return readPages({ maxPages: MAX_PAGES, maxItems: MAX_TOOLS_OF_SERVER }, async (cursor) => {
    const params = cursor === undefined ? {} : { cursor };
    const { tools, nextCursor } = await client.request({ method: 'tools/list', params }, toolsPage, { signal });
    return { items: tools, nextCursor };
  });
}

/** Each tool with its name for clients. */
async function namesOf(
  { name: server }: ServedServer,
  tools: readonly Tool[],
): Promise<readonly { readonly name: string; readonly tool: Tool }[]> {
  return tools.map((tool) => ({ name: formatToolName(server, tool.name, sha256Hex), tool }));
}

/**
 * Calls a tool of one of the caller's servers or connectors. Only a listed tool can be called. Each call is in the audit log before its
 * result is returned. Throws `HeaderMismatch`.
 */
export async function callServedTool(request: ServedRequest, call: ServedCall): Promise<ServedResult | null> {
  if (call.name.startsWith(CONNECTOR_TOOL_PREFIX)) return callServedOperation(request, call);
  const prefix = splitToolName(call.name)?.server;
  const servers = await listServedServers(request.context, request.caller);
  const served = servers.find(({ name }) => name === prefix);
  if (served === undefined) return null;
  const timeout = AbortSignal.timeout(request.context.limits.runTimeoutSeconds * 1000);
  const signal = AbortSignal.any([request.signal, timeout]);
  const open = await openServer(request.context, served, signal);
  if (!open.ok) return unusable(served, open.error);
  try {
    const tools = await readTools(open.value, signal);
    if (!tools.ok) return unusable(served, tools.error);
    const named = await namesOf(served, tools.value);
    const tool = named.find(({ name }) => name === call.name)?.tool;
    if (tool === undefined) return null;
    requireSameHeaders(tool, call);
    const reviewed = await keepReviewed(request.context, request.caller, served.row.id, tools.value);
    const isWaiting = !reviewed.includes(tool);
    const called = callTool(request, { served, tool, isWaiting, open: open.value, args: call.args });
    // A platform may drop the request when its client disconnects, but not the record of what the tool did.
    request.context.defer('a call of a tool', () => called);
    return await called;
  } finally {
    open.value.close();
  }
}

function requireSameHeaders({ inputSchema }: Tool, { args, headers }: ServedCall): void {
  const problem = headers === null ? null : paramHeaderProblem(inputSchema, args, headers);
  if (problem !== null) throw new HeaderMismatch(problem);
}

function unusable({ name }: ServedServer, why: string): ServedResult {
  return { result: failure(`The MCP server ${name} cannot be used: ${why}`), outputSchema: undefined };
}

interface FoundTool {
  readonly served: ServedServer;
  readonly tool: Tool;
  /** Nobody has accepted this form of it. */
  readonly isWaiting: boolean;
  readonly open: OpenServer;
  readonly args: ServedCall['args'];
}

async function callTool(request: ServedRequest, found: FoundTool): Promise<ServedResult> {
  const { outputSchema } = found.tool;
  const denied = await findDenial(request, found);
  if (denied !== null) {
    await record(request, found, 'mcp.tool.denied', { 'svc.mcp.reason': denied.reason });
    return { result: failure(denied.message), outputSchema };
  }
  const startedAt = request.context.clock.now();
  const { outcome, result } = await send(request, found);
  const duration = Math.max(0, request.context.clock.now() - startedAt);
  await record(request, found, 'mcp.tool.called', { 'svc.mcp.outcome': outcome, 'svc.mcp.duration_ms': duration });
  return { result, outputSchema };
}

interface Denial {
  readonly reason: 'tool_waiting' | 'tool_not_allowed' | 'approval_required' | 'approval_denied';
  readonly message: string;
}

/** Why the call must not be sent; null if it may. An approval is used up. */
async function findDenial(
  request: ServedRequest,
  { served, tool, isWaiting, args }: FoundTool,
): Promise<Denial | null> {
  if (isWaiting) return { reason: 'tool_waiting', message: WAITING };
  const decision = decide(served, tool);
  if (decision === 'allowed') return null;
  if (decision === 'denied') return { reason: 'tool_not_allowed', message: NOT_ALLOWED };
  const { server, row } = served;
  const { context, caller } = request;
  const asked = await askApproval(
    context,
    { ...caller, sidecarId: null },
    {
      requestId: randomToken(),
      subject: toolSubject(row, server.version, tool.name),
      fingerprint: fingerprintFor(request.client, sha256Hex(callText(server, tool.name, args))),
      summary: callSummary(server, tool.name, args, request.client.name),
      sessionId: request.client.connectionId,
    },
  );
  if (!asked.ok) return { reason: 'approval_required', message: asked.error.message };
  const { state, id } = asked.value;
  if (state === 'approved') return null;
  if (state === 'denied') return { reason: 'approval_denied', message: 'A person has denied this call.' };
  return { reason: 'approval_required', message: waitsText(id, await neededByRules(context, caller, asked.value)) };
}

const WAITING =
  'This tool is new or has changed, and waits until a person has looked at it, on the page of its server in the console.';
const NOT_ALLOWED = 'The configuration of this server does not allow this tool.';

function waitsText(id: string, needed: string | null): string {
  const who = needed === null ? 'You can approve it' : `By the rules of the enterprise (${needed}), it is approved`;
  return `The call is not approved yet. ${who} in the console, under Approvals (${id}). Then repeat the same call.`;
}

const ANY_RESULT = z.looseObject({});
const NEEDS_INPUT = 'The tool asks for input while it runs, which is only possible at a gateway on a machine.';

async function send(
  { signal }: ServedRequest,
  { tool, args, open: { client, patterns } }: FoundTool,
): Promise<{ readonly outcome: McpOutcome; readonly result: CallToolResult }> {
  const { name, inputSchema } = tool;
  const params = { name, arguments: { ...args } };
  try {
    const sent =
      client.getProtocolEra() === 'modern'
        ? client.callTool(params, { signal, allowInputRequired: true, toolDefinition: { name, inputSchema } })
        : client.request({ method: 'tools/call', params }, ANY_RESULT, { signal });
    const result: unknown = maskValue(await sent, patterns);
    if (!isResult(result)) return { outcome: 'error', result: failure(NEEDS_INPUT) };
    return { outcome: result.isError === true ? 'tool_error' : 'ok', result };
  } catch (error) {
    const why = describeServerError(error, patterns);
    return { outcome: signal.aborted ? 'cancelled' : 'error', result: failure(`The call failed: ${why}`) };
  }
}

const resultSchema = z.looseObject({ content: z.array(z.looseObject({ type: z.string() })) });

function isResult(value: unknown): value is CallToolResult {
  return resultSchema.safeParse(value).success;
}

async function record(
  { context, caller, client }: ServedRequest,
  { served: { row, server }, tool }: FoundTool,
  type: 'mcp.tool.called' | 'mcp.tool.denied',
  about: AuditEventData,
): Promise<void> {
  const data: AuditEventData = {
    'svc.mcp.server': row.name,
    'svc.mcp.server_id': row.id,
    ...(row.registryId !== null && { 'svc.mcp.registry_id': row.registryId }),
    ...(server.version !== null && { 'svc.mcp.version': server.version }),
    'svc.mcp.tool': tool.name,
    'svc.mcp.client': client.id,
    ...about,
  };
  const events = [{ type, actor: caller.userId, data }];
  await commit(context, controlChain(caller), async () => ok({ statements: [], events, value: null }));
}

function failure(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}
