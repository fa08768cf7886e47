import type { ApprovalView } from '../../shared/wire/approval_views.ts';
import type { LoginReply } from '../../shared/connect/login_reply.ts';
import type { LoginGrant } from '../../shared/model/new_login.ts';
import type { LoginKey } from '../../shared/wire/pending_logins.ts';
import type { ClientCertificate } from '../../shared/model/host_binding.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import type { ApprovalState } from '../../shared/wire/approvals.ts';
import type { Narrowing } from '../../shared/wire/sources/narrowing.ts';
import type { AcknowledgedHead, AuditHead, StoodHead } from '../../shared/wire/audit_heads.ts';
import type { McpHealthReport, SnapshotMcpServer, UnreadableMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { McpToolsReport } from '../../shared/wire/mcp/mcp_tools.ts';
import type { ReleasedCredential } from '../ports.ts';
import type { ChannelFailure } from './channel_failure.ts';

/** A stored value's version, as the snapshot lists it. */
export interface CredentialVersion extends CredentialRef {
  readonly version: string;
  /** A provider mints the value. */
  readonly minted?: boolean | undefined;
  /** A program of this machine gives it. */
  readonly borrowed?: boolean | undefined;
}

/** A snapshot whose signature, recipient and content were checked. */
export interface VerifiedSnapshot {
  /** Grows with every change to the bindings and secrets in it. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly hostBindings: readonly HostBinding[];
  /** Set if a connector cannot be read. Then no connector may be used, and no request may fall through to a binding or to passthrough. */
  readonly connectors: Result<readonly InstalledConnector[], string>;
  /** The hosts and patterns that are not intercepted. */
  readonly tunnelHosts: readonly string[];
  readonly certificates: readonly ClientCertificate[];
  readonly mcpServers: readonly SnapshotMcpServer[];
  /** The hashes of reviewed tools, by server; null if the control plane does not keep them. */
  readonly reviewedTools: ReadonlyMap<string, readonly string[]> | null;
  /** What `reviewedTools` has hashes of. It may have kinds that this version does not know. */
  readonly reviewedKinds: readonly string[];
  /** Servers that this version cannot use; they are not in `mcpServers`. */
  readonly unreadableMcpServers: readonly UnreadableMcpServer[];
  readonly credentials: readonly CredentialVersion[];
}

/** The control plane's signed statement that a version is still the newest. */
export interface SnapshotConfirmation {
  readonly version: number;
  readonly issuedAt: number;
}

export type SnapshotReply =
  | { readonly kind: 'snapshot'; readonly snapshot: VerifiedSnapshot; readonly jws: string }
  | { readonly kind: 'unchanged'; readonly confirmation: SnapshotConfirmation; readonly jws: string };

export interface SnapshotRequest {
  /** How long the control plane may hold the call until something is newer; 0 to answer at once. */
  readonly waitSeconds: number;
  readonly heldVersion: number | null;
  readonly signal: AbortSignal;
}

/** A reference. With a narrowing, its value is to be minted for less than its source allows, for this call alone. */
export interface AskedCredential extends CredentialRef {
  readonly narrowing?: Narrowing | undefined;
  /** As in {@link CredentialVersion}; not sent. */
  readonly minted?: true | undefined;
}

export interface CredentialsReply {
  readonly released: readonly { readonly ref: CredentialRef; readonly credential: ReleasedCredential }[];
  readonly missing: readonly CredentialRef[];
  /** Without a usable access token; says why. */
  readonly unavailable: readonly { readonly ref: CredentialRef; readonly refusal: Refusal }[];
}

/** The approval's subject: a request of an operation, or a tool call. */
type ApprovalSubject =
  | { readonly connectorId: string; readonly operation: string }
  | { readonly mcpServerId: string; readonly tool: string };

/** Asks whether one request may be sent. Repeating it with the same `requestId` is harmless. */
export interface ApprovalCall {
  readonly requestId: string;
  readonly subject: ApprovalSubject;
  readonly fingerprint: string;
  /** What a grant would cover besides identical requests. */
  readonly scope: string | null;
  readonly summary: string;
  readonly sessionId: string | null;
  /** For the person who decides: the session's name and where it was started. */
  readonly sessionName: string | null;
  readonly folder: string | null;
}

export interface ApprovalWait {
  readonly requestId: string;
  readonly approvalId: string;
  /** How long the control plane may hold the call until a decision is made. */
  readonly waitSeconds: number;
  readonly signal: AbortSignal;
}

/** The control plane's signed answer. `approved` holds only for the request of this call. */
export interface ApprovalAnswer {
  readonly approvalId: string;
  readonly state: ApprovalState;
  /** The pages that wait to be shown the request. */
  readonly views?: readonly ApprovalView[];
}

/** A request that waits, sealed to a page's key. */
export interface SealedView {
  readonly approvalId: string;
  readonly viewId: string;
  readonly sealed: string;
}

/** The control plane's signed answer to one call with events. */
export interface EventsOutcome {
  /** The ids of the events that are now in the control plane's log. */
  readonly accepted: readonly string[];
  /** Events that can never be accepted, by their index in the call. */
  readonly rejected: readonly { readonly index: number; readonly message: string }[];
  /** Where this sidecar's chain ended before the call and ends now; absent if the control plane is older. */
  readonly head?: AcknowledgedHead;
}

/** Where the chains of the audit log end, and the standing of the heads in the question. */
export interface AuditHeads {
  readonly heads: readonly AuditHead[];
  readonly known: readonly StoodHead[];
}

/** A credential that a program gets in plaintext. Its target, and the reason it cannot be sealed, go to the audit log. */
export interface UnsealedRequest {
  /** A path among the user's own secrets. */
  readonly path: string;
  readonly host: string;
  readonly reason: string;
}

/** A login of a program that the sidecar's user has opened, as the control plane's signed reply says. */
export interface OpenLogin {
  readonly id: string;
  readonly program: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly grants: readonly LoginGrant[];
  /** Only the control plane can open what is sealed to it. */
  readonly key: LoginKey;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** The tokens of a login, for the control plane. */
export type CapturedTokens = Omit<LoginReply, 'reply'>;

/** The authenticated calls of a sidecar to its control plane. It returns only verified data. */
export interface ControlChannel {
  snapshot(request: SnapshotRequest): Promise<Result<SnapshotReply, ChannelFailure>>;
  credentials(refs: readonly AskedCredential[]): Promise<Result<CredentialsReply, ChannelFailure>>;
  fetchUnsealed(request: UnsealedRequest): Promise<Result<CredentialsReply, ChannelFailure>>;
  requestApproval(call: ApprovalCall): Promise<Result<ApprovalAnswer, ChannelFailure>>;
  awaitApproval(wait: ApprovalWait): Promise<Result<ApprovalAnswer, ChannelFailure>>;
  sendView(view: SealedView): Promise<Result<void, ChannelFailure>>;
  /** Reports the state of this machine's MCP servers; the reply decides nothing. */
  reportMcpHealth(report: McpHealthReport): Promise<Result<void, ChannelFailure>>;
  /** Reports tools of an MCP server; returns the version of the snapshot that has the outcome. */
  reportMcpTools(report: McpToolsReport): Promise<Result<number, ChannelFailure>>;
  /** Sends events, each one the JSON text of an `AuditEvent`. */
  sendEvents(events: readonly string[]): Promise<Result<EventsOutcome, ChannelFailure>>;
  /** Asks where the chains of the audit log end, and whether they go through heads that are remembered. */
  auditHeads(known: readonly AuditHead[]): Promise<Result<AuditHeads, ChannelFailure>>;
  fetchLogin(id: string): Promise<Result<OpenLogin, ChannelFailure>>;
  /** Sends the tokens of a login, sealed to its key. The control plane has stored them when this succeeds. */
  holdLogin(login: OpenLogin, tokens: CapturedTokens): Promise<Result<void, ChannelFailure>>;
  /** Checks what an earlier {@link snapshot} call returned, after it is read back from a file. */
  verifyStored(jws: string): Promise<Result<VerifiedSnapshot, ChannelFailure>>;
  verifyStoredConfirmation(jws: string): Promise<Result<SnapshotConfirmation, ChannelFailure>>;
}
