import type { ShownRequest } from '../shared/wire/approval_views.ts';
import type { SecureContext } from 'node:tls';

import type { ConnectorOperation } from '../shared/connect/connector_index.ts';
import type { AccountQuery } from '../shared/connect/account_query.ts';
import type { LoginReply } from '../shared/connect/login_reply.ts';
import type { LoginGrant } from '../shared/model/new_login.ts';
import type { AuditEvent } from '../shared/model/audit_event.ts';
import type { CredentialUse } from '../shared/borrow/borrow_grant.ts';
import type { CredentialRef } from '../shared/model/host_binding.ts';
import type { Refusal } from '../shared/model/refusal.ts';
import type { Result } from '../shared/model/result.ts';
import type { Secret } from '../shared/model/secret.ts';
import type { AccountChoice } from '../shared/model/account_choice.ts';
import type { AllowedHosts } from '../shared/resolve/admitted_host.ts';
import type { RequestHead } from '../shared/net/http/http1_head.ts';
import type { FieldList } from '../shared/net/http/http2_head.ts';
import type { Policy } from '../shared/resolve/resolve.ts';
import type { Connection } from '../machine/connection/connection.ts';

/** The current policy. Refuses (`control_plane_unavailable`, `snapshot_expired`) if no policy may be used. */
export interface PolicySource {
  current(): Result<Policy, Refusal>;
  /** Calls the listener after each change of {@link current}, until the returned function is called. */
  onChanged(listener: () => void): () => void;
}

/** A credential as the control plane released it. */
export interface ReleasedCredential {
  readonly secret: Secret;
  /** Changes with every stored value, so that data derived from the value can be cached under it. */
  readonly version: string;
  /** For an access token: it must not be used from this time on. Milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** Whether that time has come, by each clock of this machine. Absent: it has no end, or only {@link expiresAt} is known. */
  readonly hasEnded?: () => boolean;
  /** The rest of a key set of AWS, of which `secret` is the secret access key. All three are of one mint. */
  readonly signedAs?: { readonly accessKeyId: string; readonly sessionToken: Secret };
  /** It was minted for the narrowing that was asked for. */
  readonly narrowed?: boolean;
}

/**
 * Credentials by reference, cached in memory only. A hit returns synchronously; a miss asks the control plane, or the program of
 * this machine that gives the value. Refuses with `credential_unavailable`, `reauthorisation_required`,
 * `control_plane_unavailable` or `borrow_not_consented`.
 */
export interface CredentialSource {
  /** `use`: the request that needs it. Without one, nothing is borrowed. */
  resolve(
    ref: CredentialRef,
    use?: CredentialUse | null,
  ): Result<ReleasedCredential, Refusal> | Promise<Result<ReleasedCredential, Refusal>>;
  /** Whether the current policy lists a stored value for it. */
  isStored(ref: CredentialRef): boolean;
  /** The version of the stored value in the current policy; null if there is none. */
  findStoredVersion(ref: CredentialRef): string | null;
}

/** Where the requests of a session or a step get their credentials, by its id; null: a call of the host token. */
export interface SessionScopes {
  of(id: string | null): CredentialSource;
}

/** A request that waits, with its credential masked. */
export type HeldContent = Pick<ShownRequest, 'line' | 'content_type' | 'text' | 'bytes'>;

/** One request that a person has to approve before it is sent. */
export interface ApprovalRequest {
  readonly match: ConnectorOperation;
  /** Equal for identical requests only. */
  readonly fingerprint: string;
  /** Equal for the requests that a grant covers; null: only for identical ones. */
  readonly scope: string | null;
  /** What a person is shown of it. */
  readonly summary: string;
  /** What a page of the person is shown besides; null if it cannot be masked. */
  readonly show: () => Promise<HeldContent | null>;
  readonly sessionId: string | null;
}

/** Why a request is not approved, with the approval that is pending or was denied; null if it could not be requested. */
export interface NotApproved {
  readonly refusal: Refusal;
  readonly approvalId: string | null;
}

/** Asks for approvals. An approval covers one request: the one whose call resolves with its id. */
export interface ApprovalSource {
  /**
   * Waits until a person has decided, the time is over, or `gone` is aborted. Refuses with `approval_required`,
   * `approval_denied` or `control_plane_unavailable`.
   */
  approve(request: ApprovalRequest, gone: AbortSignal): Promise<Result<string, NotApproved>>;
}

/** Records decisions. An event is in the spool before anybody sees the answer. Throws only on a bug. */
export interface AuditSink {
  /** False if the spool is full or cannot be written: then credentialed requests are refused (503 `audit_unavailable`). */
  readonly accepting: boolean;
  /** True if even the reserve for other requests' events is used up: then every request is refused, so that none goes unrecorded. */
  readonly exhausted: boolean;
  /** Writes the event to the spool before it returns; returns its id. */
  record(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): string;
  /** Writes the event together with all others of this event-loop turn, and resolves then. No answer may be sent before. */
  recordInTurn(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): Promise<void>;
  /** Resolves with true when the control plane has accepted every event recorded so far, or with false after `timeoutMs`. */
  flush(timeoutMs: number): Promise<boolean>;
}

/** A client certificate, for the upstream connections of one request that was decided and approved. */
export interface PresentedCertificate {
  /** Names the record and the version of its secret. A connection is used with one only. */
  readonly id: string;
  readonly reference: string;
  readonly version: string;
  /** PEM, the certificate of the key first. */
  readonly chain: string;
  /** PEM. */
  readonly key: Secret;
  /** Null while the record and the secret are what they were. A connection ends when they are not. */
  readonly inForce: {
    (): Refusal | null;
    readonly onChanged: PolicySource['onChanged'];
  };
}

/** An upstream connection for one exchange, or an HTTP/2 session that opens a stream for it. */
export type Leased = (LeasedConnection | LeasedSession) & {
  /** It has been open for a while, so the upstream may have closed it in the meantime. */
  readonly reused: boolean;
};

export interface LeasedConnection {
  readonly connection: Connection;
}

export interface LeasedSession {
  readonly session: UpstreamStreams;
}

/** Opens streams to an upstream. */
export interface UpstreamStreams {
  /** False while as many streams are open as the upstream takes at once. True once it takes no more at all. */
  readonly hasRoom: boolean;
  /** How long a request may wait for a stream. */
  readonly mostWaitMs: number;
  /** Whether it takes WebSockets (RFC 8441 section 3); null until it has told its settings. */
  readonly takesWebSockets: boolean | null;
  /** Waits until {@link hasRoom} or {@link takesWebSockets} may have changed, the client has left, or the time is over. */
  waitForRoom(ms: number, client: Connection | null): Promise<void>;
  /** Sends a request's head; `isWhole` if it has no body. Null if the session has ended. */
  open(head: RequestHead, isWhole: boolean): UpstreamStream | null;
}

/** The upstream's side of one stream. */
export interface UpstreamStream extends Connection {
  /** The next head, interim or final; null if the stream is lost before it. */
  nextHead(): Promise<ReceivedFields | null>;
  /** False while the request's head is still held here. */
  readonly isSent: boolean;
  /** Of a lost stream: the upstream has said that it did nothing with it (RFC 9113 section 8.7). */
  readonly isUntouched: boolean;
  /** Of a lost stream: its connection was lost, and the upstream said no reason. */
  readonly lostWithSession: boolean;
  /** Of a lost stream: the code with which its connection was lost, if that is known. */
  readonly lostCode?: string | null;
  /** Finishes the request with trailers: header lines, each with its CRLF, and the names of those that are never indexed. */
  end(trailers?: string, unindexed?: readonly string[]): void;
  /** Resets the stream with a code; by default that of a request that is no longer wanted. */
  destroy(code?: number): void;
}

/** The fields of a head of HTTP/2. */
export interface ReceivedFields {
  readonly list: FieldList;
  /** The names that the upstream marked as never indexed. */
  readonly neverIndexed: readonly string[];
  /** Nothing follows it. */
  readonly isLast: boolean;
}

/**
 * The verified upstream connections of one tunnel's host. Refuses with `upstream_unreachable`, `upstream_tls_failed` or
 * `egress_address_not_allowed`.
 */
export interface UpstreamLanes {
  /**
   * The idle connection or the session of a lane, synchronously, or a new one. A lane is a binding's id, or passthrough; lanes
   * never share a socket. A connection or session is used with one released credential only. `isRepeatable`: the request may be
   * sent twice, so it may have one that an earlier tunnel left, which the upstream may be closing. With a client certificate, only
   * one that this tunnel opened with the same certificate for the same lane is used again, and none is kept for a later tunnel.
   */
  take(
    lane: string,
    credential: object | null,
    isRepeatable: boolean,
    certificate?: PresentedCertificate | null,
  ): Result<Leased, Refusal> | Promise<Result<Leased, Refusal>>;
  /** Another connection, even if the lane has one; of a lane with a session, the session that takes requests now. */
  dial(
    lane: string,
    credential: object | null,
    certificate?: PresentedCertificate | null,
  ): Promise<Result<Leased, Refusal>>;
  /** Returns a connection after an exchange that left it reusable. */
  give(lane: string, connection: Connection): void;
  /** No later tunnel gets the connections or sessions of a lane: its upstream may have tied what it allows to them. */
  keepToTunnel(lane: string): void;
  /** Calls back once when an upstream session is known to take WebSockets. Lanes of HTTP/1.1 never do. */
  onWebSockets(listener: () => void): void;
}

/** What a new tunnel asks of its upstream. */
export interface WantedUpstream {
  readonly session: UpstreamOwner;
  readonly host: string;
  /** Called before each dial. */
  readonly isPublicOnly: () => boolean;
  /** The versions that the client offers and that are spoken here, in its order. */
  readonly offered: readonly string[];
  /** False if every request would be refused at the moment. */
  readonly mayDial: boolean;
  /** A client that offers HTTP/2 speaks it if the upstream is not asked first; by default only one that offers nothing else. */
  readonly prefersHttp2?: boolean;
  /** Calls back if the client leaves; returns the function to stop. */
  readonly onGone: (listener: () => void) => () => void;
}

/** The version that a tunnel speaks on both sides, by its name in TLS, and its upstream connections. */
export interface AgreedUpstream {
  readonly protocol: string;
  /** Whether the upstream was dialled before the first request. */
  readonly isDialled: boolean;
  readonly lanes: UpstreamLanes & { close(): void };
}

/** The hosts that a plan's step may reach, as its verified lock names them (specification section 1, Tool-step egress). */
export interface SealedReach {
  readonly stepId: string;
  /** Takes a host in canonical form. */
  includes(host: string): boolean;
}

/**
 * `held`: the control plane has the tokens. `not_stored`: they were issued, and could not be stored. `withheld`: a reply that
 * may have had tokens reached nobody. `contested`: a second login was asked for, so it is not certain whose
 * tokens these are.
 */
export type LoginState = 'waiting' | 'held' | 'not_stored' | 'withheld' | 'contested';

/** The one login that a session was started for. */
export interface SessionLogin {
  /** Where its tokens are requested, with POST. */
  readonly host: string;
  readonly path: string;
  readonly clientId: string;
  readonly grants: readonly LoginGrant[];
  /** What the program gets in place of the access token. */
  readonly placeholder: string;
  readonly state: LoginState;
  /**
   * Begins a request for the tokens with this code. Refuses with `login_not_accepted` while another one runs, and after one that
   * had tokens.
   */
  begin(code: string): Result<void, Refusal>;
  /** Ends a request that {@link begin} let through. */
  end(): void;
  /** How its provider is asked whose it is; null if the token reply says so. */
  readonly account: AccountQuery | null;
  /** The new token, for that question alone. Refuses with `login_not_accepted` before it is held, and when it was asked often enough. */
  takeForAccount(): Result<Secret, Refusal>;
  /** What the provider answered. The token is not needed any more. */
  nameAccount(name: string): void;
  /** Notes that a reply, which may have had tokens, reached nobody. */
  withhold(): void;
  /** Stores the tokens; refuses with `login_not_stored`. */
  hold(tokens: Omit<LoginReply, 'reply'>): Promise<Result<void, Refusal>>;
}

/** The hosts to which a session may send requests over plain HTTP (decision 0076). */
export interface PlainHttp {
  readonly allowed: AllowedHosts;
  /** Exact hosts that the person who started the session typed. Only these may lead to private addresses in a sealed session. */
  readonly named: ReadonlySet<string>;
}

/** The MCP server that a session's container runs. */
export interface ServedServer {
  readonly id: string;
  readonly name: string;
  /** Remembers a host that it may not reach, for the person who decides about it. */
  noteRefused(host: string): void;
}

/** Whose tunnels may share upstream connections. */
export interface UpstreamOwner {
  /**
   * Calls `close` when the open tunnels are closed: at the end, immediately if it was, and when this sidecar is revoked. It
   * counts as no tunnel. Returns the function to stop. Absent: nothing is kept between tunnels.
   */
  onTunnelsClosed?(close: () => void): () => void;
}

/** What a proxy password gives access to: a live session, or the scope of one of its plan's steps. */
export interface LiveSession extends UpstreamOwner {
  /** The session's id. */
  readonly id: string;
  /** The scope's reach; absent for a session. */
  readonly reach?: SealedReach;
  /** Besides bound hosts and those of active connectors, the session reaches only these; null or absent: every host. */
  readonly allowed?: AllowedHosts | null;
  /** Hosts at other ports than 443 that it may reach too; null or absent: none. */
  readonly otherPorts?: AllowedHosts | null;
  /** Exact hosts that the person who started the session typed. Only these may lead to private addresses. */
  readonly named?: ReadonlySet<string>;
  /** The hosts that it may send plain `http://` requests to; null or absent: none. */
  readonly plainHttp?: PlainHttp | null;
  /** Which account it uses where a host has several; null or absent: the request alone decides. */
  readonly choice?: AccountChoice | null;
  /** The id by which it gets its credentials, if that is not its own: a step that narrows some has values of its own. */
  readonly credentialsId?: string;
  /** True for a container whose only way out is the proxy (`--egress=sealed` and `--egress=sealed,public`). */
  readonly sealed?: boolean;
  /** True for a session of `svc doctor`: it reaches nothing but the sidecar's own answer to the probe. */
  readonly selfTest?: boolean;
  /** Set for the session of `svc login`. */
  readonly login?: SessionLogin | null;
  /** Set for the container of an MCP server: it reaches the hosts of its own list and nothing else. */
  readonly mcpServer?: ServedServer | null;
  readonly ca: { secureContextFor(host: string): Promise<SecureContext> };
  /**
   * Counts a tunnel and calls `close` when the session ends. Returns the function to call when the tunnel ends, or null if
   * the session has reached its limit. `close` resolves when the tunnel's events are recorded.
   */
  openTunnel(close: () => void | Promise<void>): (() => void) | null;
}

/** Finds the live session for the credentials of proxy authentication (specification section 5); compares in constant time. */
export interface SessionDirectory {
  authenticate(sessionId: string, token: string): LiveSession | null;
  /** Set on a listener that belongs to one session: the session of a client that sends no credentials. */
  findVouchedSession?(): LiveSession | null;
}
