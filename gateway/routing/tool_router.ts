import {
  type CallToolResult,
  type InputRequiredResult,
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
  type Tool,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { callSummary, callText } from '../../shared/mcp/call_summary.ts';
import { formatToolName } from '../../shared/mcp/tool_names.ts';
import { HEADER_MISMATCH, paramHeaderProblem } from '../../shared/mcp/tools/param_headers.ts';
import { toolText } from '../../shared/mcp/tools/tool_definition.ts';
import { isToolListed, toolDecision } from '../../shared/mcp/tool_policy.ts';
import { CallEnded } from './active_call.ts';
import type { BegunRequest, CallRegistry } from './call_registry.ts';
import type { Caller } from '../../machine/mcp_caller.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Forwarder } from './forwarder.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { GatewayPorts, ToolDenial } from '../gateway_ports.ts';
import { isLargerThan } from './json_size.ts';
import { STARTING_META } from './kept_lists.ts';
import type { LinkedResources } from './linked_resources.ts';
import { pageOf, sortBy } from './page.ts';
import type { ServerCatalog } from './server_catalog.ts';
import { DownstreamError, ServerUnavailable, unavailableError } from '../servers/server_unavailable.ts';
import { withErrorMarks, withResultMarks } from './result_marks.ts';
import type { ToolReviews } from './tool_reviews.ts';
import type { TaskRouter } from '../tasks/task_router.ts';
import type { TaskResult } from '../tasks/task_messages.ts';
import type { ToolSource } from '../tool_source.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { waitUnlessAborted } from '../servers/wait_unless_aborted.ts';
import { sha256Hex } from '../../machine/sha256.ts';

interface ToolRouterOptions {
  readonly ports: GatewayPorts;
  readonly fleet: Fleet;
  readonly catalog: ServerCatalog;
  readonly forwarder: Forwarder;
  readonly registry: CallRegistry;
  readonly tasks: Pick<TaskRouter, 'take'>;
  readonly sources: readonly ToolSource[];
  readonly links: LinkedResources;
  readonly reviews: ToolReviews;
  readonly limits: GatewayLimits;
}

interface ToolCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>> | undefined;
}

/** A tool of a server, found by its name for clients. */
interface Found {
  readonly supervised: SupervisedServer;
  readonly tool: Tool;
  /** Everything that its server lists. */
  readonly listed: readonly Tool[];
}

type CallAnswer = CallToolResult | InputRequiredResult | TaskResult;

/** Lists the tools of all servers under unique names and routes each call to its server. */
export class ToolRouter {
  /** The headers of calls that were refused because their arguments differ. */
  readonly mismatched = new WeakSet<Headers>();
  readonly #options: ToolRouterOptions;

  constructor(options: ToolRouterOptions) {
    this.#options = options;
  }

  async list(caller: Caller, cursor: string | undefined, signal: AbortSignal): Promise<ListToolsResult> {
    const { catalog, limits, reviews } = this.#options;
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.listMs + limits.reportMs)]);
    const [listings, ...built] = await Promise.all([
      catalog.listAll('tools', caller, signal),
      ...this.#options.sources.map((source) => this.#listOfSource(source, caller, signal)),
    ]);
    const ofServers = await Promise.all(
      listings.map(async ({ supervised, name, items }) =>
        listExposed(supervised, name, await reviews.offer(supervised, items, deadline), reviews),
      ),
    );
    const sorted = sortBy([...ofServers.flat(), ...built.flat()], ({ name }) => name);
    const page = pageOf(sorted, ({ name }) => name, cursor, limits.pageItems);
    if (page === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'invalid cursor');
    const { items, nextCursor } = page;
    const starting = catalog.startingNames(caller, listings);
    return {
      tools: [...items],
      ...(nextCursor === undefined ? {} : { nextCursor }),
      ...(starting.length === 0 ? {} : { _meta: { [STARTING_META]: starting } }),
    };
  }

  /** A source that fails or is too slow does not affect the others. */
  async #listOfSource(source: ToolSource, caller: Caller, signal: AbortSignal): Promise<readonly Tool[]> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.#options.limits.listMs)]);
    const tools = await waitUnlessAborted(source.tools(caller, deadline), deadline).catch(() => null);
    return tools ?? [];
  }

  /**
   * The result for the client, and the schema that the tool declares. A refusal is a result with `isError`, so that a model can
   * read it.
   */
  async call(
    call: ToolCall,
    request: ClientRequest,
  ): Promise<{ readonly result: CallAnswer; readonly tool: Tool | null }> {
    const { caller } = request.client;
    const source = this.#options.sources.find(({ prefix }) => call.name.startsWith(prefix));
    if (source !== undefined) return { result: await this.#callSource(source, call, request), tool: null };
    let tool: Tool | null = null;
    try {
      const found = await this.#find(call.name, caller, request.round.signal);
      tool = found.tool;
      this.#requireSameHeaders(tool, call, request);
      return { result: await this.#callServer(found, call, request), tool };
    } catch (error) {
      const told = error instanceof ServerUnavailable || error instanceof DownstreamError || error instanceof CallEnded;
      if (!told) throw withErrorMarks(error);
      return { result: withResultMarks(failure(error.message)), tool };
    }
  }

  /** The SDK checks the headers of a call for tools of its own alone. */
  #requireSameHeaders({ inputSchema }: Tool, { args }: ToolCall, { headers }: ClientRequest): void {
    const problem = headers === null ? null : paramHeaderProblem(inputSchema, args, headers);
    if (headers === null || problem === null) return;
    this.mismatched.add(headers);
    throw new ProtocolError(HEADER_MISMATCH, problem);
  }

  #callSource(source: ToolSource, { name, args = {} }: ToolCall, request: ClientRequest): Promise<CallToolResult> {
    const { round } = request;
    const { progressToken, signal } = round;
    return source.call({
      caller: request.client.caller,
      tool: name,
      args,
      signal,
      progress: (progress) => {
        if (progressToken === undefined) return;
        const params = { ...progress, progressToken };
        round.notify({ method: 'notifications/progress', params }).catch(() => undefined);
      },
    });
  }

  async #callServer({ supervised, tool, listed }: Found, call: ToolCall, request: ClientRequest): Promise<CallAnswer> {
    const { limits, forwarder } = this.#options;
    const params = { name: tool.name, ...(call.args === undefined ? {} : { arguments: call.args }) };
    const target = { supervised, method: 'tools/call', params, tool } as const;
    const denied = toolDecision(supervised.server.tools, tool) === 'denied';
    if (denied) return this.#deny(supervised, tool, request, 'tool_not_allowed');
    if (!(await this.#options.reviews.mayCall(supervised, tool, listed, AbortSignal.timeout(limits.listMs)))) {
      const command = `svc mcp tools ${supervised.server.name}`;
      const message = `this tool is new or has changed, and waits until a person has looked at it: ${command}`;
      return this.#deny(supervised, tool, request, 'tool_waiting', message);
    }
    if (!this.#options.ports.isAccepting())
      return failure('calls cannot be recorded now, so they are refused; try again later');
    try {
      const begin = () => this.#begin({ supervised, tool, listed }, call, request);
      const answer = ANSWER.parse(await forwarder.run(target, request, begin));
      if (isLargerThan(answer, limits.maxReplyBytes)) return failure(TOO_LARGE);
      const result = withResultMarks(answer);
      this.#options.links.learn(request.client.caller, supervised.server.id, result);
      return result;
    } catch (error) {
      if (error instanceof Denied) return this.#deny(supervised, tool, request, error.reason, error.message);
      throw error;
    }
  }

  /** Checks what must hold before a call is sent, and records the call when it ends. */
  async #begin({ supervised, tool }: Found, call: ToolCall, request: ClientRequest): Promise<BegunRequest> {
    const { limits, registry, ports, tasks } = this.#options;
    const { server } = supervised;
    const { sessionId } = request.client.caller;
    if (isLargerThan(call.args ?? {}, limits.maxArgumentBytes)) throw new Denied('arguments_too_large');
    const use = { serverId: server.id, sessionId };
    if (registry.isFull(use, limits)) throw new Denied('too_many_calls');
    if (toolDecision(server.tools, tool) === 'approval') {
      const args = call.args ?? {};
      const asked = { server, tool: tool.name, sessionId, signal: request.round.signal };
      const approved = await ports.approve({
        ...asked,
        argumentsHash: sha256Hex(callText(server, tool.name, args)),
        summary: callSummary(server, tool.name, args),
        shownArguments: shownArguments(supervised, args),
      });
      if (!approved.ok) throw new Denied(approved.error.reason, approved.error.message);
      await this.#requireUnchanged({ supervised, tool }, call, request);
    }
    const slot = registry.take(use, limits);
    if (slot === null) throw new Denied('too_many_calls');
    let leave = slot;
    const startedAt = performance.now();
    return {
      finished(outcome) {
        leave();
        const durationMs = Math.round(performance.now() - startedAt);
        ports.record({ type: 'mcp.tool.called', server, tool: tool.name, outcome, durationMs, sessionId });
      },
      becomeTask() {
        const taskSlot = tasks.take(use);
        if (taskSlot === null) return false;
        leave();
        leave = taskSlot;
        return true;
      },
    };
  }

  /** A person may decide after minutes. Meanwhile, the tool may have been denied or removed, or its server have changed it. */
  async #requireUnchanged(
    { supervised, tool }: Pick<Found, 'supervised' | 'tool'>,
    call: ToolCall,
    request: ClientRequest,
  ) {
    const { fleet, reviews } = this.#options;
    const { server } = supervised;
    const isServed = server.enabled && fleet.find(server.id) === supervised;
    if (!isServed || toolDecision(server.tools, tool) === 'denied') throw new Denied('tool_not_allowed');
    const found = await this.#findListed(supervised, fleet.prefixOf(server.id), call.name, request.round.signal);
    const isSame = found !== null && toolText(found.tool) === toolText(tool);
    if (!isSame || !reviews.isReviewed(supervised, tool)) throw new Denied('tool_waiting', CHANGED);
  }

  #deny(
    supervised: SupervisedServer,
    tool: Tool,
    request: ClientRequest,
    reason: ToolDenial,
    message?: string,
  ): CallToolResult {
    const { sessionId } = request.client.caller;
    this.#options.ports.record({
      type: 'mcp.tool.denied',
      server: supervised.server,
      tool: tool.name,
      reason,
      sessionId,
    });
    return failure(message ?? DENIALS[reason]);
  }

  /** Only a listed tool can be called. */
  async #find(name: string, caller: Caller, signal: AbortSignal): Promise<Found> {
    const { fleet, catalog, limits } = this.#options;
    await waitUnlessAborted(fleet.listed, AbortSignal.any([signal, AbortSignal.timeout(limits.listWaitMs)]));
    const supervised = fleet.findByToolName(name, caller);
    if (supervised === null) throw unknownToolError(name);
    const serverName = fleet.prefixOf(supervised.server.id);
    // A tool of the last run may be called while its server still starts.
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.startMs)]);
    await waitUnlessAborted(supervised.connectPatiently(), deadline);
    const found = await this.#findListed(supervised, serverName, name, signal);
    if (found !== null) return { supervised, ...found };
    if (supervised.current === null) throw unavailableError(fleet.nameOf(supervised.server.id), supervised);
    catalog.forget('tools', supervised.server.id);
    const again = await this.#findListed(supervised, serverName, name, signal);
    if (again === null) throw unknownToolError(name);
    return { supervised, ...again };
  }

  async #findListed(
    supervised: SupervisedServer,
    serverName: string,
    name: string,
    signal: AbortSignal,
  ): Promise<Omit<Found, 'supervised'> | null> {
    const listing = await this.#options.catalog.listOne('tools', supervised, signal);
    const listed = listing?.items ?? [];
    const tool = listed.find((one) => formatToolName(serverName, one.name, sha256Hex) === name);
    return tool === undefined ? null : { tool, listed };
  }
}

/** A call that the gateway itself refuses. */
class Denied extends Error {
  readonly reason: ToolDenial;

  constructor(reason: ToolDenial, message: string = DENIALS[reason]) {
    super(message);
    this.reason = reason;
  }
}

const DENIALS: Readonly<Record<ToolDenial, string>> = {
  tool_waiting: 'this tool is new or has changed, and waits until a person has looked at it',
  tool_not_allowed: 'the configuration of this server does not allow this tool',
  approval_required: 'this call needs the approval of a person, who did not decide in time',
  approval_denied: 'a person has denied this call',
  control_plane_unavailable: 'this call needs the approval of a person, who cannot be asked now; try again later',
  arguments_too_large: 'the arguments are too large; pass less',
  too_many_calls: 'too many calls are running; try again when some have finished',
};

const CHANGED = 'this tool has changed while the call waited for its approval; list the tools again';

const ANSWER = z.custom<CallAnswer>();
const TOO_LARGE = 'the result is too large; ask for less';

/** The tools that the policy allows, by their names for clients. A tool with a duplicate name is left out. */
function listExposed(
  supervised: SupervisedServer,
  serverName: string,
  tools: readonly Tool[],
  reviews: ToolReviews,
): readonly Tool[] {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (!isToolListed(supervised.server.tools, tool)) continue;
    const name = formatToolName(serverName, tool.name, sha256Hex);
    if (!byName.has(name)) byName.set(name, { ...reviews.show(tool), name });
  }
  return [...byName.values()];
}

function failure(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}

function unknownToolError(name: string): ProtocolError {
  const shown = JSON.stringify(name.slice(0, 128));
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${shown}`);
}

/** The arguments for the person who decides. Null while nothing can mask them: the server does not run yet. */
function shownArguments({ current }: Pick<SupervisedServer, 'current'>, args: ToolCall['args']): string | null {
  return current === null ? null : JSON.stringify(current.mask.maskValue(args ?? {}), null, 2);
}
