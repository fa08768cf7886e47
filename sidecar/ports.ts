import type { SecureContext } from 'node:tls';

import type { ConnectorOperation } from '../shared/connect/connector_index.ts';
import type { AuditEvent } from '../shared/model/audit_event.ts';
import type { CredentialRef } from '../shared/model/host_binding.ts';
import type { Refusal } from '../shared/model/refusal.ts';
import type { Result } from '../shared/model/result.ts';
import type { Secret } from '../shared/model/secret.ts';
import type { Policy } from '../shared/resolve/resolve.ts';
import type { Connection } from '../machine/connection/connection.ts';

/** The policy in force. Refuses (`control_plane_unavailable`, `snapshot_expired`) when there is none that may be used. */
export interface PolicySource {
  current(): Result<Policy, Refusal>;
  /** Calls the listener after each change of {@link current}, until the returned function is called. */
  onChanged(listener: () => void): () => void;
}

/** A credential as the control plane released it. */
export interface ReleasedCredential {
  readonly secret: Secret;
  /** Changes with every stored value, so that whatever was derived from the value can be cached under it. */
  readonly version: string;
  /** Of an access token: it must not be used from then on. Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/**
 * Credentials by reference, cached in memory only. A hit answers at once; a miss asks the control plane.
 * Refuses with `credential_unavailable`, `reauthorisation_required` or `control_plane_unavailable`.
 */
export interface CredentialSource {
  resolve(ref: CredentialRef): Result<ReleasedCredential, Refusal> | Promise<Result<ReleasedCredential, Refusal>>;
  /** Whether there is a stored value, as far as the policy in force tells. */
  isStored(ref: CredentialRef): boolean;
}

/** One request that somebody has to allow before it is sent. */
export interface ApprovalRequest {
  readonly match: ConnectorOperation;
  /** The same for identical requests only. */
  readonly fingerprint: string;
  /** What a person is told of it. */
  readonly summary: string;
  readonly sessionId: string | null;
}

/** Why a request is not allowed, with the approval that it waits for or that was denied; null when it could not be asked for. */
export interface NotApproved {
  readonly refusal: Refusal;
  readonly approvalId: string | null;
}

/** Asks for approvals. One covers one request: the one whose call resolves with its id. */
export interface ApprovalSource {
  /**
   * Holds until it is decided, the time for that is over, or `gone` is aborted. Refuses with `approval_required`,
   * `approval_denied` or `control_plane_unavailable`.
   */
  approve(request: ApprovalRequest, gone: AbortSignal): Promise<Result<string, NotApproved>>;
}

/** Where decisions are recorded. An event is in the spool before anybody is told what it is about. Throws only on a bug. */
export interface AuditSink {
  /** False when the spool is full or cannot be written: credentialed requests are refused then (503 `audit_unavailable`). */
  readonly accepting: boolean;
  /** True when even the reserve for other requests' events is used up: every request is refused then, so that none goes unrecorded. */
  readonly exhausted: boolean;
  /** Has written the event to the spool when it returns, with its id. */
  record(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): string;
  /** Writes it with all others of this turn of the event loop, in one write, and resolves then: no answer may go out before. */
  recordInTurn(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): Promise<void>;
  /** Resolves when every event recorded so far was accepted by the control plane, or `timeoutMs` has passed (then false). */
  flush(timeoutMs: number): Promise<boolean>;
}

/** An upstream connection for one exchange. */
export interface LeasedConnection {
  readonly connection: Connection;
  /** It has carried an earlier exchange, so the upstream may have closed it in the meantime. */
  readonly reused: boolean;
}

/** The verified upstream connections of one tunnel's host. Refuses with `upstream_unreachable`, `upstream_tls_failed` or `egress_address_not_allowed`. */
export interface UpstreamLanes {
  /** The idle connection of a lane, at once, or a new one. A lane is a binding's id, or passthrough: they never share a socket. */
  take(lane: string): Result<LeasedConnection, Refusal> | Promise<Result<LeasedConnection, Refusal>>;
  /** A new connection, whatever is idle. */
  dial(): Promise<Result<LeasedConnection, Refusal>>;
  /** Hands a connection back after an exchange that left it ready for another. */
  give(lane: string, connection: Connection): void;
}

/** What a step of a plan may reach: the hosts that its verified lock names (specification section 1, Tool-step egress). */
export interface SealedReach {
  readonly stepId: string;
  /** For a host in canonical form. */
  includes(host: string): boolean;
}

/** What a password opens: a live launch session, or the scope of one of its plan's steps. */
export interface LiveSession {
  /** The session's. */
  readonly id: string;
  /** Of a step's scope; a session without one reaches every host. */
  readonly reach?: SealedReach;
  /** True for a container whose only way out is the proxy (`--egress=sealed`). */
  readonly sealed?: boolean;
  readonly ca: { secureContextFor(host: string): Promise<SecureContext> };
  /**
   * Counts a tunnel and keeps `close` for the end of the session; returns what to call when the tunnel is over, or null
   * when the session has as many tunnels as it may. `close` resolves when what the tunnel had to record is recorded.
   */
  openTunnel(close: () => void | Promise<void>): (() => void) | null;
}

/** The live sessions, by the credentials of proxy authentication (specification section 5); compares in constant time. */
export interface SessionDirectory {
  authenticate(sessionId: string, token: string): LiveSession | null;
  /** On a listener that is one session's own: whom a client speaks for that sends no credentials. */
  vouchedFor?(): LiveSession | null;
}
