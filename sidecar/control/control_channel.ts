import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import type { ApprovalState } from '../../shared/wire/approvals.ts';
import type { AcknowledgedHead, AuditHead, StoodHead } from '../../shared/wire/audit_heads.ts';
import type { McpHealthReport, SnapshotMcpServer, UnreadableMcpServer } from '../../shared/wire/mcp_servers.ts';
import type { ReleasedCredential } from '../ports.ts';
import type { ChannelError } from './channel_error.ts';

/** A stored value's version, as the snapshot lists it. */
export interface CredentialVersion extends CredentialRef {
  readonly version: string;
}

/** A snapshot whose signature, addressee and content were checked. */
export interface VerifiedSnapshot {
  /** Grows with every change of the bindings and secrets it is made from. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly hostBindings: readonly HostBinding[];
  /** A sentence when one of them cannot be read: then none may be acted on, and no request may go another way. */
  readonly connectors: Result<readonly InstalledConnector[], string>;
  readonly mcpServers: readonly SnapshotMcpServer[];
  /** Servers that this version cannot act on: they are left out of `mcpServers`. */
  readonly unreadableMcpServers: readonly UnreadableMcpServer[];
  readonly credentials: readonly CredentialVersion[];
}

/** The control plane's signed word that a version is still the newest. */
export interface SnapshotConfirmation {
  readonly version: number;
  readonly issuedAt: number;
}

export type SnapshotReply =
  | { readonly kind: 'snapshot'; readonly snapshot: VerifiedSnapshot; readonly jws: string }
  | { readonly kind: 'unchanged'; readonly confirmation: SnapshotConfirmation; readonly jws: string };

export interface SnapshotRequest {
  /** How long the control plane may hold the call until there is something newer; 0 to answer at once. */
  readonly waitSeconds: number;
  readonly heldVersion: number | null;
  readonly signal: AbortSignal;
}

export interface CredentialsReply {
  readonly released: readonly { readonly ref: CredentialRef; readonly credential: ReleasedCredential }[];
  readonly missing: readonly CredentialRef[];
  /** Without an access token that may be used, and why. */
  readonly unavailable: readonly { readonly ref: CredentialRef; readonly refusal: Refusal }[];
}

/** What is asked for: a request of an operation, or a call of a tool. */
export type ApprovalSubject =
  | { readonly connectorId: string; readonly operation: string }
  | { readonly mcpServerId: string; readonly tool: string };

/** Asks whether one request may be sent. Asking again with the same `requestId` is harmless. */
export interface ApprovalCall {
  readonly requestId: string;
  readonly subject: ApprovalSubject;
  readonly fingerprint: string;
  readonly summary: string;
  readonly sessionId: string | null;
}

export interface ApprovalWait {
  readonly requestId: string;
  readonly approvalId: string;
  /** How long the control plane may hold the call until it is decided. */
  readonly waitSeconds: number;
  readonly signal: AbortSignal;
}

/** The control plane's signed answer: `approved` is for the request of this very call. */
export interface ApprovalAnswer {
  readonly approvalId: string;
  readonly state: ApprovalState;
}

/** The control plane's signed answer to one call with events. */
export interface EventsOutcome {
  /** The ids that are in the control plane's log now. */
  readonly accepted: readonly string[];
  /** Events that can never be accepted, by their place in the call. */
  readonly rejected: readonly { readonly index: number; readonly message: string }[];
  /** Where this sidecar's chain ended before the call and ends now; absent from a control plane of an earlier version. */
  readonly head?: AcknowledgedHead;
}

/** Where chains of the audit log end, and how those stand that were asked about. */
export interface AuditHeads {
  readonly heads: readonly AuditHead[];
  readonly known: readonly StoodHead[];
}

/** A credential that a program is to get as it is: where it goes, and why it cannot be sealed, are for the audit log. */
export interface UnsealedRequest {
  /** Of the user's own secrets. */
  readonly path: string;
  readonly host: string;
  readonly reason: string;
}

/** The authenticated calls of a sidecar to its control plane. Nothing unverified comes out of it. */
export interface ControlChannel {
  snapshot(request: SnapshotRequest): Promise<Result<SnapshotReply, ChannelError>>;
  credentials(refs: readonly CredentialRef[]): Promise<Result<CredentialsReply, ChannelError>>;
  unsealed(request: UnsealedRequest): Promise<Result<CredentialsReply, ChannelError>>;
  requestApproval(call: ApprovalCall): Promise<Result<ApprovalAnswer, ChannelError>>;
  awaitApproval(wait: ApprovalWait): Promise<Result<ApprovalAnswer, ChannelError>>;
  /** Tells what the MCP servers of this machine do; nothing is decided on the answer. */
  reportMcpHealth(report: McpHealthReport): Promise<Result<void, ChannelError>>;
  /** Sends events, each one the JSON text of an `AuditEvent`. */
  sendEvents(events: readonly string[]): Promise<Result<EventsOutcome, ChannelError>>;
  /** Asks where the chains of the audit log end, and whether they go through heads that are remembered. */
  auditHeads(known: readonly AuditHead[]): Promise<Result<AuditHeads, ChannelError>>;
  /** Checks what an earlier {@link snapshot} call gave, when it is read back from a file. */
  verifyStored(jws: string): Promise<Result<VerifiedSnapshot, ChannelError>>;
  verifyStoredConfirmation(jws: string): Promise<Result<SnapshotConfirmation, ChannelError>>;
}
