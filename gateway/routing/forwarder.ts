import { randomUUID } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  InsufficientScopeError,
  type InputRequiredResult,
  isInputRequiredResult,
  LOG_LEVEL_META_KEY,
  type LoggingLevel,
  type Progress,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  SdkError,
  SdkErrorCode,
  type Tool,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { McpOutcome } from '../../shared/model/audit_event.ts';
import { ActiveCall, CallEnded } from './active_call.ts';
import type { BegunRequest, CallRegistry, HeldCall, HeldCalls } from './call_registry.ts';
import type { Downstream } from '../fronts/downstream.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import { scopeText } from '../servers/scope_text.ts';
import { isLogged } from '../fronts/log_levels.ts';
import { unreachableFailure } from '../servers/launcher.ts';
import { maskError } from '../servers/mask_error.ts';
import { DownstreamError, ServerUnavailable } from '../servers/server_unavailable.ts';
import { dropStale } from '../servers/stale_connection.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { declaresTasks, TASKS_CAPABILITY, unwrapCreatedTask } from '../tasks/task_messages.ts';
import type { TaskRouter } from '../tasks/task_router.ts';
import { waitUnlessAborted } from '../servers/wait_unless_aborted.ts';

/** A request to one server that may need input from the client before it is answered. */
interface Target {
  readonly supervised: SupervisedServer;
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read';
  readonly params: Readonly<Record<string, unknown>>;
  /** For a tool call: the server's definition of the tool. */
  readonly tool?: Tool;
}

interface ForwarderOptions {
  readonly limits: GatewayLimits;
  readonly registry: CallRegistry;
  readonly held: HeldCalls;
  readonly tasks: Pick<TaskRouter, 'isFull' | 'keep' | 'refuse'>;
}

type Answer = Result | InputRequiredResult;

interface Leg {
  readonly target: Target;
  readonly request: ClientRequest;
  readonly subject: string;
  readonly begun: BegunRequest;
  readonly downstream: Downstream;
}

const ANY_RESULT = z.looseObject({});

/** Forwards requests to servers and answers to clients, including requests for input in between. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  /** The connection of each call that waits for its client. */
  readonly #downstreamOf = new WeakMap<ActiveCall, Downstream>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * Returns the server's answer, masked. For a new request (not a continuation), `begin` is called before anything is sent, and
   * its result is told once how the request has ended. Rejects with the server's error (masked), {@link ServerUnavailable} or
   * {@link CallEnded}.
   */
  async run(target: Target, request: ClientRequest, begin: () => Promise<BegunRequest>): Promise<Answer> {
    const subject = subjectOf(target, request);
    const held = request.state === undefined ? undefined : this.#options.held.take(request.state, subject);
    if (held === null) throw invalidState();
    if (held === undefined) return this.#first(target, request, subject, await begin());
    const { running } = held;
    const downstream = running === null ? undefined : this.#downstreamOf.get(running);
    if (running === null || downstream === undefined) {
      return this.#first(target, request, subject, held.begun, held);
    }
    const leg = { target, request, subject, begun: held.begun, downstream };
    running.answer(request.inputResponses);
    return this.#step(leg, running).catch((error: unknown) => failLeg(leg, error));
  }

  async #first(
    target: Target,
    request: ClientRequest,
    subject: string,
    begun: BegunRequest,
    held?: HeldCall,
  ): Promise<Answer> {
    const connected = await this.connection(target.supervised, request.round.signal).catch((error: unknown) => {
      begun.finished(outcomeOf(error));
      throw error;
    });
    const leg = { target, request, subject, begun, downstream: connected };
    try {
      return await this.#step(leg, this.#begin(leg, held));
    } catch (error) {
      if (!(await dropStale(target.supervised, connected, error))) return await failLeg(leg, error);
    }
    // The server did not know the session, so nothing was done: retry once with a new session.
    const downstream = await this.connection(target.supervised, request.round.signal).catch((error: unknown) =>
      failLeg(leg, error),
    );
    const again = { ...leg, downstream };
    return this.#step(again, this.#begin(again, held)).catch((error: unknown) => failLeg(again, error));
  }

  /** The connection of a server, started if necessary. What a client knows from the last run may be asked for while it starts. */
  async connection(supervised: SupervisedServer, signal: AbortSignal): Promise<Downstream> {
    const { startMs } = this.#options.limits;
    const late = Promise.withResolvers<'late' | 'gone'>();
    const gone = (): void => late.resolve('gone');
    const timer = setTimeout(() => late.resolve('late'), startMs);
    signal.addEventListener('abort', gone, { once: true });
    try {
      const connected = await Promise.race([supervised.connectPatiently(), late.promise]);
      if (connected === 'gone') throw new CallEnded('cancelled');
      if (connected === 'late')
        throw new ServerUnavailable(supervised.server.name, 'it is still starting; try again later');
      if (!connected.ok) throw new ServerUnavailable(supervised.server.name, connected.error.message);
      return connected.value;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', gone);
    }
  }

  #begin(leg: Leg, held: HeldCall | undefined): ActiveCall {
    const { target, request, downstream } = leg;
    const { client } = request;
    const { capabilities } = request;
    const wantsLog = (level: LoggingLevel): boolean => isLogged(level, request.logLevel ?? client.logLevel());
    const owner = { clientKey: client.key ?? randomUUID(), capabilities, wantsLog };
    const params = paramsOf(leg, this.#taskCapabilities(leg), held);
    const { callMs, maxCallMs } = this.#options.limits;
    const call: ActiveCall = new ActiveCall(owner, callMs, (signal) =>
      send(target, downstream, params, {
        signal,
        timeout: maxCallMs,
        allowInputRequired: true,
        onprogress: (progress: Progress) => call.reportProgress(downstream.mask.maskValue(progress)),
      }),
    );
    this.#downstreamOf.set(call, downstream);
    this.#options.registry.add(target.supervised.server.id, call);
    return call;
  }

  async #step(leg: Leg, call: ActiveCall): Promise<Answer> {
    const { downstream, target, begun } = leg;
    try {
      const step = await call.runRound(leg.request.round);
      if (step.kind === 'input') return this.#requireInput(leg, step.requests, call, undefined);
      this.#options.registry.remove(target.supervised.server.id, call);
      if (unwrapCreatedTask(step.result) !== null) return this.#keepTask(leg, step.result);
      const result = downstream.mask.maskValue(step.result);
      if (isInputRequiredResult(result))
        return this.#requireInput(leg, result.inputRequests, null, result.requestState);
      begun.finished('isError' in result && result['isError'] === true ? 'tool_error' : 'ok');
      return result;
    } catch (error) {
      this.#options.registry.remove(target.supervised.server.id, call);
      throw error;
    }
  }

  /** The extension if this request's answer may be a task. Only then does a server that has tasks hear that the client has them. */
  #taskCapabilities(leg: Leg): ClientCapabilities {
    const { target, request } = leg;
    const use = { serverId: target.supervised.server.id, sessionId: request.client.caller.sessionId };
    return canBecomeTask(leg) && !this.#options.tasks.isFull(use) ? TASKS_CAPABILITY : {};
  }

  /** The call has become a task, which ends later. */
  #keepTask(leg: Leg, result: Result): Answer {
    const { target, request, downstream, begun } = leg;
    const created = unwrapCreatedTask(result);
    const { tool, supervised } = target;
    if (created === null || created === 'invalid')
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'the server answered with a task that cannot be read');
    const capabilities = { ...capabilitiesOf(request), ...TASKS_CAPABILITY };
    if (!canBecomeTask(leg) || tool === undefined || !begun.becomeTask()) {
      this.#options.tasks.refuse({ downstream, created, capabilities });
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'the server began a task where none is possible now');
    }
    const { client } = request;
    const { finished } = begun;
    return this.#options.tasks.keep({ client, supervised, downstream, tool, created, capabilities, finished });
  }

  #requireInput(
    { request, subject, begun, target }: Leg,
    inputRequests: InputRequiredResult['inputRequests'],
    running: ActiveCall | null,
    state: string | undefined,
  ): InputRequiredResult {
    const requestState = this.#options.held.hold({
      subject,
      clientKey: request.client.key,
      running,
      state,
      begun,
      onDropped: () => {
        if (running !== null) this.#options.registry.remove(target.supervised.server.id, running);
        begun.finished('cancelled');
      },
    });
    if (requestState === null) {
      running?.end('cancelled');
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'too many calls wait for input; try again later');
    }
    return { resultType: 'input_required', requestState, ...(inputRequests === undefined ? {} : { inputRequests }) };
  }
}

/** A call of a tool, and both its client and its server have the extension. */
function canBecomeTask({ target, request, downstream: { client } }: Leg): boolean {
  if (!request.hasTasks || target.tool === undefined || client.getProtocolEra() !== 'modern') return false;
  return declaresTasks(client.getServerCapabilities());
}

interface SendOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
  readonly allowInputRequired: true;
  readonly onprogress: (progress: Progress) => void;
}

/** Over HTTP, the later generation repeats arguments in headers; the SDK does that if it knows the tool. */
function send(
  target: Target,
  downstream: Downstream,
  params: Record<string, unknown>,
  options: SendOptions,
): Promise<Result> {
  const { client } = downstream;
  const { tool } = target;
  if (tool !== undefined && client.getProtocolEra() === 'modern') {
    const { name, inputSchema } = tool;
    return client.callTool({ ...params, name }, { ...options, toolDefinition: { name, inputSchema } });
  }
  return client.request({ method: target.method, params }, ANY_RESULT, options);
}

function paramsOf(
  { target: { params, tool }, request, downstream: { client } }: Leg,
  more: ClientCapabilities,
  held: HeldCall | undefined,
): Record<string, unknown> {
  const isModern = client.getProtocolEra() === 'modern';
  const meta = isModern ? { ...request.meta, ...envelopeOf(request, more) } : request.meta;
  return {
    ...params,
    ...(tool === undefined ? {} : { name: tool.name }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
    ...(held?.state === undefined ? {} : { requestState: held.state }),
    // A client may answer before it is asked: a server without a state of its own cannot tell the difference.
    ...(isModern && request.inputResponses !== undefined ? { inputResponses: request.inputResponses } : {}),
  };
}

/** In the later generation each request carries the client's capabilities, so the real client's are sent. */
function envelopeOf(request: ClientRequest, more: ClientCapabilities): Record<string, unknown> {
  const { logLevel } = request;
  const can = { ...capabilitiesOf(request), ...more };
  return { [CLIENT_CAPABILITIES_META_KEY]: can, ...(logLevel === null ? {} : { [LOG_LEVEL_META_KEY]: logLevel }) };
}

function capabilitiesOf({ capabilities: { sampling, elicitation, roots } }: ClientRequest): ClientCapabilities {
  return {
    ...(sampling === undefined ? {} : { sampling }),
    ...(elicitation === undefined ? {} : { elicitation }),
    ...(roots === undefined ? {} : { roots }),
  };
}

/** The parts that must be equal for a request to continue an earlier one. */
function subjectOf({ supervised, method, params }: Target, { client }: ClientRequest): string {
  return JSON.stringify([client.key, client.caller.sessionId, supervised.server.id, method, params]);
}

function invalidState(): ProtocolError {
  const message = 'Invalid or expired requestState';
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, { reason: 'invalid_request_state' });
}

function outcomeOf(error: unknown): McpOutcome {
  if (error instanceof CallEnded) return error.why;
  return 'error';
}

/** The request is over. If its server has ended, the error says how, with its last output. */
async function failLeg({ begun, downstream, target }: Leg, error: unknown): Promise<never> {
  begun.finished(outcomeOf(error));
  if (error instanceof InsufficientScopeError) throw new DownstreamError(scopeText(target.supervised.server, error));
  if (error instanceof CallEnded || error instanceof ServerUnavailable) throw error;
  const isClosed = SdkError.isInstance(error) && error.code === SdkErrorCode.ConnectionClosed;
  const ending = isClosed ? await waitUnlessAborted(downstream.closed, AbortSignal.timeout(ENDING_MS)) : null;
  if (ending !== null) throw new DownstreamError(ending.message);
  const { server } = target.supervised;
  const unreachable = server.mode === 'remote' ? unreachableFailure(server, error, downstream.mask) : null;
  if (unreachable !== null) throw new DownstreamError(unreachable.message);
  throw maskError(error, downstream.mask);
}

/** How long the end of a server may take to be known after its connection has closed. */
const ENDING_MS = 2_000;
