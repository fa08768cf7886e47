import { randomBytes } from 'node:crypto';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { APPROVAL_HOLD_SECONDS } from '../../shared/wire/approvals.ts';
import { MAX_WAIT_SECONDS } from '../../shared/wire/channel.ts';
import type { ApprovalRequest, ApprovalSource, HeldContent, NotApproved } from '../ports.ts';
import { sealView } from './seal_view.ts';
import { unavailableRefusal, type ChannelFailure } from './channel_failure.ts';
import type { ApprovalAnswer, ApprovalCall, ControlChannel } from './control_channel.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { pause } from '../../machine/pause.ts';

interface ApprovalsOptions {
  readonly channel: Pick<ControlChannel, 'requestApproval' | 'awaitApproval' | 'sendView'>;
  /** What a person is told of the session that asks; null if it is unknown. */
  readonly findSession?: (id: string) => { readonly name: string | null; readonly folder: string | null } | null;
  readonly holdSeconds?: number;
  /** The most requests held at one time. Further ones are told at once that they need an approval. */
  readonly maxHeld?: number;
  /** Waits between two polls; returns early if `gone` is aborted. */
  readonly pause?: (gone: AbortSignal) => Promise<void>;
}

/** A tool call that needs a person's approval. */
export interface ToolApprovalRequest {
  readonly server: Pick<McpServer, 'id'>;
  readonly tool: string;
  /** SHA-256 over the arguments, so only identical calls have the same hash. */
  readonly argumentsHash: string;
  /** Server, tool and the names of the arguments; never their values. */
  readonly summary: string;
  readonly show: () => Promise<HeldContent | null>;
  readonly sessionId: string | null;
}

type Answer = Result<ApprovalAnswer, ChannelFailure>;

/** What a person may be shown of a request while it is held; null: nothing. */
type Show = () => Promise<HeldContent | null>;

interface Held {
  readonly call: ApprovalCall;
  readonly show: Show;
}

const MAX_HELD = 64;
/** Keeps one session from taking every place. */
const MAX_HELD_OF_SESSION = 16;
const PAUSE_MS = 1_000;
/** The length limit of the control plane. */
const MAX_TOOL_CHARACTERS = 256;
const MAX_SUMMARY_CHARACTERS = 500;
const MAX_NAME_CHARACTERS = 100;
const MAX_FOLDER_CHARACTERS = 300;
/** An approval that was used by another identical request, or that has expired, is requested again this many times. */
const MAX_QUESTIONS = 4;

/**
 * Asks the control plane whether a request may be sent, and holds the request until a person decides. The control plane
 * gives an approval to one call only, so of two identical requests one passes.
 */
export class Approvals implements ApprovalSource {
  readonly #options: ApprovalsOptions;
  /** The session of each held request. */
  readonly #held: (string | null)[] = [];

  constructor(options: ApprovalsOptions) {
    this.#options = options;
  }

  approve(request: ApprovalRequest, gone: AbortSignal): Promise<Result<string, NotApproved>> {
    return this.#ask({ ...callOf(request), ...this.#whoAsks(request) }, request.show, gone);
  }

  /** The same for a tool call of an MCP server. */
  approveTool(request: ToolApprovalRequest, gone: AbortSignal): Promise<Result<string, NotApproved>> {
    return this.#ask({ ...toolCallOf(request), ...this.#whoAsks(request) }, request.show, gone);
  }

  #whoAsks({ sessionId }: { readonly sessionId: string | null }): Pick<ApprovalCall, 'sessionName' | 'folder'> {
    const session = sessionId === null ? null : (this.#options.findSession?.(sessionId) ?? null);
    return {
      sessionName: toShownOrNull(session?.name ?? null, MAX_NAME_CHARACTERS),
      folder: toShownOrNull(session?.folder ?? null, MAX_FOLDER_CHARACTERS),
    };
  }

  async #ask(call: ApprovalCall, show: Show, gone: AbortSignal): Promise<Result<string, NotApproved>> {
    const answer = await this.#options.channel.requestApproval(call);
    if (!answer.ok) return refuseApproval(notAskedRefusal(answer.error), null);
    const decided = decision(answer.value);
    if (decided !== null) return decided;
    if (!this.#mayHold(call.sessionId)) return refuseUnapproved(answer.value.approvalId);
    this.#held.push(call.sessionId);
    try {
      return await this.#hold({ call, show }, answer.value, gone);
    } finally {
      this.#held.splice(this.#held.indexOf(call.sessionId), 1);
    }
  }

  #mayHold(sessionId: string | null): boolean {
    const ofSession = this.#held.filter((held) => held === sessionId).length;
    return this.#held.length < (this.#options.maxHeld ?? MAX_HELD) && ofSession < MAX_HELD_OF_SESSION;
  }

  /** Polls again after an outage: the approval still exists when the control plane is back. */
  async #hold({ call, show }: Held, first: ApprovalAnswer, gone: AbortSignal): Promise<Result<string, NotApproved>> {
    const until = performance.now() + (this.#options.holdSeconds ?? APPROVAL_HOLD_SECONDS) * 1000;
    let known = first;
    let questions = 1;
    for (let left = until - performance.now(); left > 0 && !gone.aborted; left = until - performance.now()) {
      const isOver = known.state !== 'pending';
      if (isOver && questions === MAX_QUESTIONS) break;
      if (isOver) questions += 1;
      const askedAt = performance.now();
      const answer = isOver
        ? await this.#options.channel.requestApproval(call)
        : await this.#wait(call, known.approvalId, left, gone);
      const decided = answer.ok ? decision(answer.value) : null;
      if (decided !== null) return decided;
      if (answer.ok) known = answer.value;
      if (answer.ok) await this.#show(call, show, answer.value);
      if (performance.now() - askedAt < PAUSE_MS) await (this.#options.pause ?? holdOff)(gone);
    }
    return refuseUnapproved(known.approvalId);
  }

  /** Seals the request to each page that wants to see it. A page that gets nothing says so itself. */
  async #show({ fingerprint }: ApprovalCall, show: Show, { approvalId, views = [] }: ApprovalAnswer): Promise<void> {
    if (views.length === 0) return;
    const content = await show();
    if (content === null) return;
    for (const view of views) {
      const sealed = await sealView(view, { approval_id: approvalId, fingerprint, ...content });
      await this.#options.channel.sendView({ approvalId, viewId: view.id, sealed });
    }
  }

  #wait({ requestId }: ApprovalCall, approvalId: string, leftMs: number, signal: AbortSignal): Promise<Answer> {
    const waitSeconds = Math.min(MAX_WAIT_SECONDS, Math.ceil(leftMs / 1000));
    return this.#options.channel.awaitApproval({ requestId, approvalId, waitSeconds, signal });
  }
}

function toShownOrNull(text: string | null, most: number): string | null {
  return text === null ? null : toShownLine(text, most);
}

/** A call without what is told of its session. */
type BareCall = Omit<ApprovalCall, 'sessionName' | 'folder'>;

function callOf({ match, fingerprint, scope, summary, sessionId }: ApprovalRequest): BareCall {
  const requestId = randomBytes(16).toString('base64url');
  const { connector, operation } = match;
  const subject = { connectorId: connector.id, operation: operation.name };
  return { requestId, subject, fingerprint, scope, summary: toShownLine(summary, MAX_SUMMARY_CHARACTERS), sessionId };
}

/** Two tool calls are the same only if server, tool and arguments are the same. */
function toolCallOf({ server, tool, argumentsHash, summary, sessionId }: ToolApprovalRequest): BareCall {
  const requestId = randomBytes(16).toString('base64url');
  const identity = JSON.stringify(['mcp tool call', server.id, tool, argumentsHash]);
  const fingerprint = sha256Hex(identity);
  const subject = { mcpServerId: server.id, tool: toShownLine(tool, MAX_TOOL_CHARACTERS) };
  const readable = toShownLine(summary, MAX_SUMMARY_CHARACTERS);
  return { requestId, subject, fingerprint, scope: null, summary: readable, sessionId };
}

/** Null while undecided. */
function decision({ state, approvalId }: ApprovalAnswer): Result<string, NotApproved> | null {
  if (state === 'approved') return ok(approvalId);
  if (state !== 'denied') return null;
  return refuseApproval(refusal('approval_denied', `The request was denied (approval ${approvalId}).`), approvalId);
}

/** Too many approvals are pending for a person to look through, so the control plane did not create this one. */
function notAskedRefusal(error: ChannelFailure): Refusal {
  if (error.code !== 'too_many_approvals') return unavailableRefusal(error);
  return refusal('approval_required', `The request needs an approval, but asking for one failed. ${error.message}`);
}

function refuseUnapproved(approvalId: string): Result<never, NotApproved> {
  const message = `The request needs an approval, and nobody has decided yet. Decide with: svc approvals approve ${approvalId} (or deny). Then send the same request again within 15 minutes of that.`;
  return refuseApproval(refusal('approval_required', message), approvalId);
}

function refuseApproval(why: Refusal, approvalId: string | null): Result<never, NotApproved> {
  return err({ refusal: why, approvalId });
}

function holdOff(gone: AbortSignal): Promise<void> {
  return pause(PAUSE_MS, gone);
}
