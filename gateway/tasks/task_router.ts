import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type Tool,
} from '@modelcontextprotocol/client';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { McpOutcome } from '../../shared/model/audit_event.ts';
import { toolDecision } from '../../shared/mcp/tool_policy.ts';
import { mayUse } from '../../machine/mcp_caller.ts';
import type { Downstream } from '../fronts/downstream.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { GatewayPorts } from '../gateway_ports.ts';
import { findMissingCapability } from '../routing/active_call.ts';
import { CallSlots, type SlotUse } from '../routing/call_slots.ts';
import { isLargerThan } from '../routing/json_size.ts';
import type { LinkedResources } from '../routing/linked_resources.ts';
import { withErrorMarks, withResultMarks } from '../routing/result_marks.ts';
import { maskError } from '../servers/mask_error.ts';
import { type CreatedTask, type DetailedTask, detailedTask, type TaskResult } from './task_messages.ts';
import { type KeptTask, type StartedTask, TaskTable } from './task_table.ts';

interface TaskRouterOptions {
  readonly ports: Pick<GatewayPorts, 'clock' | 'hasEnded'>;
  readonly limits: GatewayLimits;
  readonly links: Pick<LinkedResources, 'learn'>;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Makes a tool's result one of the client's generation. */
type ProjectResult = (result: CallToolResult, tool: Tool) => CallToolResult;

/** The part of a task's state that a client is shown in every status. */
type TaskFields = Pick<CreatedTask, 'status' | 'statusMessage' | 'lastUpdatedAt' | 'pollIntervalMs'>;

/** The task has no result any more. The message is for the client. */
class TaskLost extends Error {}

/**
 * Routes the tasks of servers to the clients that began them (SEP-2663). The state of a task is its server's, and is asked for each
 * time; the gateway keeps whose task it is and records its end, also if no client asks for it.
 */
export class TaskRouter {
  readonly #options: TaskRouterOptions;
  readonly #table: TaskTable;
  readonly #slots = new CallSlots();
  /** The connections whose ends are watched. */
  readonly #watched = new WeakSet<Downstream>();

  constructor(options: TaskRouterOptions) {
    this.#options = options;
    this.#table = new TaskTable(options.limits, () => options.ports.clock.now());
  }

  /** The tasks of a server that run. */
  countOf(serverId: string): number {
    return this.#table.listRunning().filter(({ supervised }) => supervised.server.id === serverId).length;
  }

  /** Whether there is no free slot for another running task. */
  isFull(use: SlotUse): boolean {
    const { maxTasks, maxTasksOfServer } = this.#options.limits;
    return this.#slots.isFull(use, { maxCalls: maxTasks, maxCallsOfServer: maxTasksOfServer }, NO_OTHERS);
  }

  /** Takes a slot and returns the function that frees it; null if there is none. */
  take(use: SlotUse): (() => void) | null {
    return this.isFull(use) ? null : this.#slots.take(use);
  }

  /** Keeps a task and follows it to its end. Returns the answer to the call. */
  keep(started: StartedTask): TaskResult {
    const { taskMs } = this.#options.limits;
    const task = this.#table.add(started, Math.max(1, Math.floor(Math.min(started.created.ttlMs ?? taskMs, taskMs))));
    void this.#watch(task.downstream);
    void this.#follow(task);
    return { resultType: 'task', ...this.#describe(task, task.downstream.mask.maskValue(task.created)) };
  }

  /** Cancels a task that a server has created and that is not kept. */
  refuse({ downstream, created, capabilities }: Pick<StartedTask, 'downstream' | 'created' | 'capabilities'>): void {
    void this.#cancelAtServer({ downstream, created, capabilities });
  }

  /** The task's state. Rejects for an unknown task, or with the server's error (masked). */
  async get(id: string, request: ClientRequest, project: ProjectResult): Promise<Result> {
    const task = this.#find(id, request);
    try {
      this.#requireAllowed(task);
      const detailed = await this.#ask(task, request.round.signal);
      return this.#show(task, detailed, request, project);
    } catch (error) {
      if (!(error instanceof TaskLost)) throw withErrorMarks(error);
      return this.#describe(task, LOST_FIELDS, { error: { code: INTERNAL, message: error.message } });
    }
  }

  /** Passes the client's input on. What a task that has ended is sent has no effect. */
  async update(id: string, request: ClientRequest): Promise<Result> {
    const { inputResponses = {} } = request;
    const { maxArgumentBytes } = this.#options.limits;
    if (isLargerThan(inputResponses, maxArgumentBytes)) throw invalidParams('the input is too large');
    return this.#tell(this.#find(id, request), 'tasks/update', { inputResponses }, request);
  }

  /** Asks the server to cancel the task. The next {@link get} says whether it has. */
  async cancel(id: string, request: ClientRequest): Promise<Result> {
    return this.#tell(this.#find(id, request), 'tasks/cancel', {}, request);
  }

  /** The client has disconnected: ends its tasks. */
  dropClient(clientKey: string): void {
    for (const task of this.#table.removeClient(clientKey)) void this.#giveUp(task, 'cancelled');
  }

  /** Ends every task. */
  async stop(): Promise<void> {
    await Promise.all(this.#table.listRunning().map((task) => this.#giveUp(task, 'cancelled')));
  }

  #find(id: string, { client }: ClientRequest): KeptTask {
    const task = this.#table.find(id, client);
    // The answer is the same for a task of another client.
    if (task === null || !mayUse(client.caller, task.supervised.server.id)) throw invalidParams('Unknown task');
    return task;
  }

  /** A person may have denied the tool since the call. */
  #requireAllowed(task: KeptTask): void {
    const { server } = task.supervised;
    if (toolDecision(server.tools, task.tool) !== 'denied') return;
    void this.#giveUp(task, 'cancelled');
    throw new TaskLost('the configuration of this server does not allow this tool any more');
  }

  async #tell(
    task: KeptTask,
    method: 'tasks/update' | 'tasks/cancel',
    params: Readonly<Record<string, unknown>>,
    request: ClientRequest,
  ): Promise<Result> {
    if (task.running.signal.aborted) return {};
    try {
      if (method === 'tasks/update') this.#requireAllowed(task);
      await this.#request(task, method, params, request.round.signal);
    } catch (error) {
      if (!(error instanceof TaskLost)) throw withErrorMarks(error);
    }
    return {};
  }

  /** The tasks of a connection end with it. */
  async #watch(downstream: Downstream): Promise<void> {
    if (this.#watched.has(downstream)) return;
    this.#watched.add(downstream);
    await downstream.closed;
    for (const task of this.#table.listRunning()) if (task.downstream === downstream) this.#end(task, 'error');
  }

  /**
   * Asks for the state now and then, in case that the client does not. Ends the task when it expires, or when its session has ended:
   * nobody can fetch it then.
   */
  async #follow(task: KeptTask): Promise<void> {
    const { ports, limits, pause } = this.#options;
    const { signal } = task.running;
    // Before a task of a short life has expired, its end is known.
    const everyMs = Math.max(limits.minPollMs, Math.min(limits.followTaskMs, (task.expiresAt - task.createdAt) / 4));
    while (!signal.aborted) {
      const now = ports.clock.now();
      if (now >= task.expiresAt) return void this.#giveUp(task, 'timeout');
      const due = Math.min(task.askedAt + everyMs, task.expiresAt);
      if (due > now) await pause(due - now, signal);
      else if (await this.#isOfEndedSession(task)) return void this.#giveUp(task, 'cancelled');
      else await this.#ask(task, signal).catch(() => undefined);
    }
  }

  async #isOfEndedSession({ client: { caller }, running }: KeptTask): Promise<boolean> {
    return caller.sessionId !== null && this.#options.ports.hasEnded(caller.sessionId, running.signal);
  }

  /** Asks the server for the task's state, masked. */
  async #ask(task: KeptTask, signal: AbortSignal): Promise<DetailedTask> {
    task.askedAt = this.#options.ports.clock.now();
    const answer = await this.#request(task, 'tasks/get', {}, signal);
    const read = detailedTask.safeParse(task.downstream.mask.maskValue(answer));
    if (!read.success) throw new ProtocolError(INTERNAL, "the server's description of the task cannot be read");
    const outcome = outcomeOf(read.data);
    if (outcome !== null) this.#end(task, outcome);
    return read.data;
  }

  /** Rejects with the server's error (masked), or {@link TaskLost} if the server has no such task any more. */
  async #request(
    task: KeptTask,
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Result> {
    const { supervised, downstream } = task;
    // Connecting also renews values that have ended, with which nothing may be sent.
    const isConnected = supervised.current === downstream && (await isStill(task));
    if (!isConnected) throw this.#lose(task, 'the task is lost: its server, or the connection to it, has ended');
    try {
      return await send(task, method, params, { signal, timeout: this.#options.limits.requestMs });
    } catch (error) {
      if (supervised.current !== downstream) throw this.#lose(task, 'the task is lost: its server has ended');
      if (ProtocolError.isInstance(error) && error.code === INVALID_PARAMS && method === 'tasks/get')
        throw this.#lose(task, 'the task is lost: its server does not know it any more');
      throw maskError(error, downstream.mask);
    }
  }

  #show(task: KeptTask, detailed: DetailedTask, request: ClientRequest, project: ProjectResult): Result {
    if (isLargerThan(detailed, this.#options.limits.maxReplyBytes))
      throw new TaskLost('the result is too large; ask for less');
    if (detailed.status === 'completed') {
      const result = withResultMarks(project(TOOL_RESULT.parse(detailed.result), task.tool));
      this.#options.links.learn(request.client.caller, task.supervised.server.id, result);
      return { ...this.#describe(task, detailed), result };
    }
    if (detailed.status === 'failed') return this.#describe(task, detailed, { error: detailed.error });
    if (detailed.status !== 'input_required') return this.#describe(task, detailed);
    requireCapabilities(detailed.inputRequests, request.capabilities);
    return this.#describe(task, detailed, { inputRequests: detailed.inputRequests });
  }

  /** A task with the id and the times of the gateway. Its status and `texts` are the server's, and are marked. */
  #describe({ id, createdAt, expiresAt }: KeptTask, fields: TaskFields, texts: Readonly<Record<string, unknown>> = {}) {
    const { minPollMs, followTaskMs } = this.#options.limits;
    const { status, statusMessage, lastUpdatedAt, pollIntervalMs = minPollMs } = fields;
    return {
      ...withResultMarks({ ...texts, ...(statusMessage === undefined ? {} : { statusMessage }) }),
      taskId: id,
      status,
      createdAt: new Date(createdAt).toISOString(),
      lastUpdatedAt: this.#readTime(lastUpdatedAt),
      ttlMs: expiresAt - createdAt,
      pollIntervalMs: Math.ceil(Math.min(Math.max(pollIntervalMs, minPollMs), followTaskMs)),
    };
  }

  /** A server's time in ISO 8601; the current time if it is none. */
  #readTime(text: string): string {
    const ms = Date.parse(text);
    return new Date(Number.isNaN(ms) ? this.#options.ports.clock.now() : ms).toISOString();
  }

  #lose(task: KeptTask, why: string): TaskLost {
    this.#end(task, 'error');
    return new TaskLost(why);
  }

  /** Ends a task whose server still works on it. */
  async #giveUp(task: KeptTask, outcome: McpOutcome): Promise<void> {
    if (task.running.signal.aborted) return;
    this.#end(task, outcome);
    if (task.supervised.current === task.downstream) await this.#cancelAtServer(task);
  }

  async #cancelAtServer(task: Pick<StartedTask, 'downstream' | 'created' | 'capabilities'>): Promise<void> {
    const timeout = this.#options.limits.stopMs;
    await send(task, 'tasks/cancel', {}, { timeout }).catch(() => undefined);
  }

  #end(task: KeptTask, outcome: McpOutcome): void {
    if (task.running.signal.aborted) return;
    task.running.abort();
    task.finished(outcome);
  }
}

const INVALID_PARAMS: number = ProtocolErrorCode.InvalidParams;
const INTERNAL = ProtocolErrorCode.InternalError;
const ANY_RESULT = z.looseObject({});
const TOOL_RESULT = z.custom<CallToolResult>();
const LOST_FIELDS: TaskFields = { status: 'failed', lastUpdatedAt: '' };
const NO_OTHERS = { all: 0, ofServer: 0 } as const;

async function isStill({ supervised, downstream }: KeptTask): Promise<boolean> {
  const connected = await supervised.connect();
  return connected.ok && connected.value === downstream;
}

interface SendOptions {
  readonly timeout: number;
  readonly signal?: AbortSignal;
}

function send(
  { downstream, created, capabilities }: Pick<StartedTask, 'downstream' | 'created' | 'capabilities'>,
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: SendOptions,
): Promise<Result> {
  const meta = { [CLIENT_CAPABILITIES_META_KEY]: capabilities };
  const all = { ...params, taskId: created.taskId, _meta: meta };
  return downstream.client.request({ method, params: all }, ANY_RESULT, options);
}

/** Null while the task runs. A `failed` task is one whose call had an error; a failure of the tool is in its result. */
function outcomeOf(task: DetailedTask): McpOutcome | null {
  if (task.status === 'completed') return task.result['isError'] === true ? 'tool_error' : 'ok';
  if (task.status === 'failed') return 'error';
  return task.status === 'cancelled' ? 'cancelled' : null;
}

type InputRequests = Extract<DetailedTask, { readonly status: 'input_required' }>['inputRequests'];

/** A server may ask a client only for what the client has said that it can do. */
function requireCapabilities(requests: InputRequests, capabilities: ClientCapabilities): void {
  for (const { method, params = {} } of Object.values(requests)) {
    const missing = findMissingCapability({ method, params }, capabilities);
    if (missing !== null)
      throw new ProtocolError(INTERNAL, `the task asks for input that the client does not support: ${missing}`);
  }
}

function invalidParams(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
