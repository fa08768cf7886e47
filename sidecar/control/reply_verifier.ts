import { compactDecrypt, compactVerify } from 'jose';
import type { z } from 'zod';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { AUDIT_HEADS_TYP, auditHeadsPayload } from '../../shared/wire/audit_heads.ts';
import { approvalPayload } from '../../shared/wire/approvals.ts';
import {
  APPROVAL_TYP,
  CREDENTIALS_REPLY_SECONDS,
  CREDENTIALS_TYP,
  credentialsPayload,
  type CredentialsPayload,
  EVENTS_TYP,
  eventsPayload,
  MAX_CALL_SECONDS,
  REVOCATION_TYP,
  revocationProof,
  sealedCredential,
  SNAPSHOT_PROOF_TYP,
  SNAPSHOT_TYP,
  snapshotPayload,
  type SnapshotPayload,
  snapshotProof,
} from '../../shared/wire/channel.ts';
import { toClientCertificate } from '../../shared/wire/hosts/client_certificates.ts';
import { readSnapshotConnectors } from '../../shared/wire/connectors/connectors.ts';
import {
  HELD_LOGIN_TYP,
  heldLoginPayload,
  PENDING_LOGIN_TYP,
  pendingLoginPayload,
} from '../../shared/wire/pending_logins.ts';
import { readSnapshotMcpServers } from '../../shared/wire/mcp/mcp_servers.ts';
import { hostBindingRecord, toHostBinding } from '../../shared/wire/host_binding.ts';
import { channelFailure, type ChannelFailure } from './channel_failure.ts';
import type { ReleasedCredential } from '../ports.ts';
import type {
  ApprovalAnswer,
  AuditHeads,
  CredentialsReply,
  EventsOutcome,
  OpenLogin,
  SnapshotConfirmation,
  VerifiedSnapshot,
} from './control_channel.ts';
import type { Identity } from '../../machine/sidecar_identity.ts';

type Checked<T> = Promise<Result<T, ChannelFailure>>;

/** The largest allowed clock difference. The request's id already proves that the reply is not an older one. */
const MAX_CLOCK_SKEW_MS = MAX_CALL_SECONDS * 1000;

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Verifies a snapshot's JWS. `nonce` is the call's, or null for a snapshot read from a file. */
export async function verifySnapshot(identity: Identity, jws: string, nonce: string | null): Checked<VerifiedSnapshot> {
  const payload = await openReply(identity, jws, SNAPSHOT_TYP, snapshotPayload);
  if (!payload.ok) return payload;
  if (!isMine(identity, payload.value, nonce)) return refuseReply('snapshot');
  const bindings = hostBindingsOf(payload.value);
  if (!bindings.ok) return bindings;
  const { mcp_tools: tools } = payload.value;
  const mcp = readSnapshotMcpServers(payload.value.mcp_servers);
  return ok({
    version: payload.value.version,
    issuedAt: Date.parse(payload.value.issued_at),
    expiresAt: Date.parse(payload.value.expires_at),
    hostBindings: bindings.value,
    connectors: connectorsOf(payload.value),
    tunnelHosts: payload.value.tunnel_hosts ?? [],
    certificates: (payload.value.client_certificates ?? []).map(toClientCertificate),
    mcpServers: mcp.servers,
    reviewedTools:
      tools === undefined ? null : new Map(tools.map(({ server_id: serverId, hashes }) => [serverId, hashes])),
    // Every entry names the same kinds.
    reviewedKinds: tools?.[0]?.kinds ?? ['tool'],
    unreadableMcpServers: mcp.problems,
    credentials: payload.value.credentials,
  });
}

/** Verifies the proof that comes with a 304. */
export async function verifyConfirmation(
  identity: Identity,
  jws: string,
  nonce: string | null,
): Checked<SnapshotConfirmation> {
  const payload = await openReply(identity, jws, SNAPSHOT_PROOF_TYP, snapshotProof);
  if (!payload.ok) return payload;
  if (!isMine(identity, payload.value, nonce)) return refuseReply('snapshot confirmation');
  return ok({ version: payload.value.version, issuedAt: Date.parse(payload.value.issued_at) });
}

/** Whether the control plane itself says that this sidecar is revoked. False for anything that another party could have written. */
export async function isRevocation(identity: Identity, jws: string, nonce: string): Promise<boolean> {
  const payload = await openReply(identity, jws, REVOCATION_TYP, revocationProof);
  return payload.ok && isMine(identity, payload.value, nonce);
}

/** Verifies the control plane's reply to the events of one call. The sidecar deletes events from its spool only after this. */
export async function verifyEventsOutcome(identity: Identity, jws: string, nonce: string): Checked<EventsOutcome> {
  const payload = await openReply(identity, jws, EVENTS_TYP, eventsPayload);
  if (!payload.ok) return payload;
  if (!isMine(identity, payload.value, nonce)) return refuseReply('reply to the events');
  const { accepted, rejected, head } = payload.value;
  if (head !== undefined && head.writer !== identity.sidecarId) return refuseReply('reply to the events');
  return ok({ accepted, rejected, ...(head && { head }) });
}

/** Verifies the reply about the ends of the audit log. Each reply is bound to one call, so an older one is refused. */
export async function verifyAuditHeads(identity: Identity, jws: string, nonce: string): Checked<AuditHeads> {
  const payload = await openReply(identity, jws, AUDIT_HEADS_TYP, auditHeadsPayload);
  if (!payload.ok) return payload;
  if (!isMine(identity, payload.value, nonce)) return refuseReply('reply about the audit log');
  const { heads, known } = payload.value;
  return ok({ heads, known });
}

/** A call that a credential reply answers. Times in milliseconds since the epoch. */
interface AnsweredCall {
  readonly requestId: string;
  readonly sentAt: number;
  readonly now: number;
}

/** Verifies a credential reply's JWS and opens its credentials. */
export async function openCredentials(
  identity: Identity,
  jws: string,
  { requestId, sentAt, now }: AnsweredCall,
): Checked<CredentialsReply> {
  const payload = await openReply(identity, jws, CREDENTIALS_TYP, credentialsPayload);
  if (!payload.ok) return payload;
  const { sidecar_id: sidecarId, request_id: answered, credentials, missing, unavailable } = payload.value;
  if (sidecarId !== identity.sidecarId || answered !== requestId) return refuseReply('credential reply');
  if (now - MAX_CLOCK_SKEW_MS >= Date.parse(payload.value.expires_at))
    return invalidReply('the credential reply has expired');
  try {
    const released = await Promise.all(
      credentials.map(async (sealed) => ({
        ref: { owner: sealed.owner, path: sealed.path },
        credential: await openReleased(identity, sealed, payload.value, Math.min(sentAt, now)),
      })),
    );
    return ok({
      released,
      missing,
      unavailable: unavailable.map(({ owner, path, reason, message }) => ({
        ref: { owner, path },
        refusal: refusal(reason, message),
      })),
    });
  } catch {
    return invalidReply('a credential in it is not sealed to this sidecar');
  }
}

/** Verifies the control plane's answer on one approval, for the request of one call. */
export async function openApproval(
  identity: Identity,
  jws: string,
  asked: { readonly nonce: string; readonly requestId: string; readonly approvalId?: string },
): Checked<ApprovalAnswer> {
  const payload = await openReply(identity, jws, APPROVAL_TYP, approvalPayload);
  if (!payload.ok) return payload;
  const { request_id: answered, approval_id: approvalId, state } = payload.value;
  const isAsked = answered === asked.requestId && (asked.approvalId ?? approvalId) === approvalId;
  if (!isAsked || !isMine(identity, payload.value, asked.nonce)) return refuseReply('reply to the approval');
  const { views } = payload.value;
  return ok({ approvalId, state, ...(views && { views }) });
}

/** Verifies the control plane's answer about a login that is open. */
export async function verifyOpenLogin(identity: Identity, jws: string, nonce: string, id: string): Checked<OpenLogin> {
  const payload = await openReply(identity, jws, PENDING_LOGIN_TYP, pendingLoginPayload);
  if (!payload.ok) return payload;
  const { login } = payload.value;
  if (!isMine(identity, payload.value, nonce) || login.id !== id) return refuseReply('reply about the login');
  const { program, token_url: tokenUrl, client_id: clientId, grants, key } = login;
  return ok({ id, program, tokenUrl, clientId, grants, key, expiresAt: Date.parse(login.expires_at) });
}

/** Verifies the control plane's word that it has stored the tokens of a login. Without it the program gets no reply. */
export async function verifyHeldLogin(identity: Identity, jws: string, nonce: string, id: string): Checked<void> {
  const payload = await openReply(identity, jws, HELD_LOGIN_TYP, heldLoginPayload);
  if (!payload.ok) return payload;
  const isThis = isMine(identity, payload.value, nonce) && payload.value.login_id === id;
  return isThis ? ok(undefined) : refuseReply('reply to the tokens of a login');
}

async function openReply<T extends z.ZodType>(
  identity: Identity,
  jws: string,
  typ: string,
  schema: T,
): Checked<z.output<T>> {
  try {
    const { payload, protectedHeader } = await compactVerify(jws, identity.controlPlaneKey, { algorithms: ['EdDSA'] });
    if (protectedHeader.typ !== typ) return invalidReply(`it has another type than ${typ}`);
    const parsed = schema.safeParse(JSON.parse(decoder.decode(payload)));
    if (parsed.success) return ok(parsed.data);
    return invalidReply(`its field ${parsed.error.issues[0]?.path.join('.') ?? ''} breaks the contract`);
  } catch {
    return invalidReply(
      'it is not signed by the control plane that this sidecar enrolled with. If the control plane was reinstalled, move identity.json away and start again',
    );
  }
}

/**
 * A credential with its expiry by this machine's clock: `from` plus the lifetime that was left on the control plane's clock,
 * but never later than the stated time. `from` is when the call was sent: what the answer took on its way is lost, so that an
 * end is early rather than late.
 */
async function openReleased(
  identity: Identity,
  { version, sealed, expires_at: end, narrowed }: CredentialsPayload['credentials'][number],
  reply: Pick<CredentialsPayload, 'expires_at'>,
  from: number,
): Promise<ReleasedCredential> {
  const opened = { ...(await unseal(identity, sealed)), version, ...(narrowed && { narrowed }) };
  if (end === undefined) return opened;
  const answeredAt = Date.parse(reply.expires_at) - CREDENTIALS_REPLY_SECONDS * 1000;
  return { ...opened, expiresAt: Math.min(Date.parse(end), from + Date.parse(end) - answeredAt) };
}

async function unseal(identity: Identity, sealed: string): Promise<Pick<ReleasedCredential, 'secret' | 'signedAs'>> {
  const { plaintext } = await compactDecrypt(sealed, identity.receivingKey, {
    keyManagementAlgorithms: ['ECDH-ES'],
    contentEncryptionAlgorithms: ['A256GCM'],
  });
  const { value, signed_as: signedAs } = sealedCredential.parse(JSON.parse(decoder.decode(plaintext)));
  if (signedAs === undefined) return { secret: new Secret(value) };
  const { access_key_id: accessKeyId, session_token: token } = signedAs;
  return { secret: new Secret(value), signedAs: { accessKeyId, sessionToken: new Secret(token) } };
}

function isMine(
  identity: Identity,
  payload: { readonly sidecar_id: string; readonly nonce: string },
  nonce: string | null,
): boolean {
  return payload.sidecar_id === identity.sidecarId && (nonce === null || payload.nonce === nonce);
}

function hostBindingsOf(payload: SnapshotPayload): Result<readonly HostBinding[], ChannelFailure> {
  const bindings: HostBinding[] = [];
  for (const [index, record] of payload.host_bindings.entries()) {
    const parsed = hostBindingRecord.safeParse(record);
    if (!parsed.success) return invalidReply(`this version does not understand its host binding ${index}: update svc`);
    bindings.push(toHostBinding(parsed.data));
  }
  return ok(bindings);
}

function connectorsOf({ connectors, inactive_connectors: inactive }: SnapshotPayload): VerifiedSnapshot['connectors'] {
  const read = readSnapshotConnectors(connectors, inactive);
  return read.ok ? ok(read.value.map(({ connector }) => connector)) : read;
}

function refuseReply(what: string): Result<never, ChannelFailure> {
  return invalidReply(`the ${what} answers a call of another sidecar`);
}

/** The reply is discarded. */
function invalidReply(problem: string): Result<never, ChannelFailure> {
  return err(channelFailure('invalid_reply', `The control plane's reply was refused: ${problem}.`));
}
