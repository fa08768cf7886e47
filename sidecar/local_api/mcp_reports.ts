import type { AuditEventData } from '../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError, noSessionError } from './local_error.ts';
import type { McpOptions } from './mcp_options.ts';
import { noServerError } from './mcp_release.ts';
import { showHidden, toShownLine } from '../../shared/model/shown_text.ts';
import type { HeldContent } from '../ports.ts';
import type { ApprovalInput, EventsInput, GatewayEventRecord, HealthInput } from '../../shared/wire/mcp/mcp_gateway.ts';

const MAX_REMEMBERED = 256;

/** The events of gateways, each recorded once even if it is sent several times. */
export class GatewayEvents {
  readonly #audit: Pick<LocalApiOptions['audit'], 'accepting' | 'record'>;
  /** The number of the last event of each gateway; the gateway heard of last is at the end. */
  readonly #last = new Map<string, number>();

  constructor(audit: Pick<LocalApiOptions['audit'], 'accepting' | 'record'>) {
    this.#audit = audit;
  }

  /** `POST /v1/mcp/events`: records what has happened even if the log accepts nothing new. */
  take({ gateway, events }: EventsInput): { readonly accepting: boolean } {
    const last = this.#last.get(gateway.id) ?? 0;
    let newest = last;
    for (const event of events) {
      if (event.number <= last) continue;
      this.#record(event);
      newest = Math.max(newest, event.number);
    }
    this.#last.delete(gateway.id);
    this.#last.set(gateway.id, newest);
    const [oldest] = this.#last.keys();
    if (oldest !== undefined && this.#last.size > MAX_REMEMBERED) this.#last.delete(oldest);
    return { accepting: this.#audit.accepting };
  }

  #record(event: GatewayEventRecord): void {
    const { type, session_id } = event;
    this.#audit.record({ type, session_id, actor: session_id === null ? null : 'session', data: dataOf(event) });
  }
}

function dataOf(event: GatewayEventRecord): AuditEventData {
  const { server, server_id, registry_id, version, unchecked, tool, outcome, duration_ms, reason } = event;
  return {
    'svc.mcp.server': server,
    'svc.mcp.server_id': server_id,
    ...(registry_id !== null && { 'svc.mcp.registry_id': registry_id }),
    ...(version !== null && { 'svc.mcp.version': version }),
    ...(unchecked === true && { 'svc.mcp.unchecked': true }),
    ...(tool !== undefined && { 'svc.mcp.tool': tool }),
    ...(outcome !== undefined && { 'svc.mcp.outcome': outcome }),
    ...(duration_ms !== undefined && { 'svc.mcp.duration_ms': Math.round(duration_ms) }),
    ...(reason !== undefined && { 'svc.mcp.reason': reason }),
  };
}

/** `POST /v1/mcp/health`. */
export function takeHealth({ board, healthChanged }: McpOptions, input: HealthInput): void {
  board.take(input);
  if (input.ended) board.end(input.gateway.id);
  healthChanged();
}

const MOST_LINE_CHARACTERS = 500;

function shownCall(line: string, { text, bytes }: NonNullable<ApprovalInput['arguments']>): HeldContent {
  return {
    line: toShownLine(line, MOST_LINE_CHARACTERS),
    content_type: 'application/json',
    text: showHidden(text),
    bytes,
  };
}

/** `POST /v1/mcp/approvals`: holds a tool call until a person has decided, its client disconnects, or its session ends. */
export async function approveTool(
  { mcp, sessions }: { readonly mcp: McpOptions } & Pick<LocalApiOptions, 'sessions'>,
  input: ApprovalInput,
  gone: AbortSignal,
): Promise<Result<{ readonly approval_id: string }, LocalError>> {
  const known = mcp.directory.find(input.server_id);
  if (known === null) return err(noServerError(input.server_id));
  if (input.session_id !== null && sessions.get(input.session_id) === null)
    return err(noSessionError(input.session_id));
  const { tool, arguments_hash: argumentsHash, summary, session_id: sessionId } = input;
  const show = async () =>
    input.arguments === undefined ? null : shownCall(`${known.server.name}: ${tool}`, input.arguments);
  const approved = await mcp.approve({ server: known.server, tool, argumentsHash, summary, show, sessionId }, gone);
  if (approved.ok) return ok({ approval_id: approved.value });
  const { refusal, approvalId } = approved.error;
  return err(localError(refusal.reason, refusal.message, { approval_id: approvalId }));
}
