import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { connectorOfVaultPath } from '../../../shared/model/connector.ts';
import { mcpServerOfToken } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference, isReservedVaultPath, parseSharedPath } from '../../../shared/model/vault_path.ts';
import {
  CREDENTIALS_REPLY_SECONDS,
  CREDENTIALS_TYP,
  type CredentialsPayload,
  type CredentialsRequest,
  type SealedCredential,
  type UnsealedRequest,
} from '../../../shared/wire/channel.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { listConnectorsAt } from '../../store/connectors.ts';
import { findMcpServer } from '../../store/mcp/mcp_servers.ts';
import { findSealedSecret, findReferredSecret, type SecretRow, type VaultPlace } from '../../store/secrets.ts';
import { ownerId, ownerName } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type ConnectorAccess, connectorAccess, ofColleague } from '../connectors/connector_access.ts';
import { isWorthRetrying } from '../../kernel/is_worth_retrying.ts';
import { accessToken } from '../oauth/oauth_access_token.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { SidecarCaller } from './sidecar_calls.ts';
import { importReceivingKey, sealTo } from './sidecar_keys.ts';
import { findLentCredential } from '../sharing/lent_secrets.ts';
import { findSharedSecret } from '../sharing/shared_bindings.ts';
import { type CurrentValue, currentCredential, currentValue } from '../sources/minted_value.ts';
import { narrowedCredential } from '../sources/narrowed_value.ts';
import { credentialVersion } from './snapshot.ts';
import { errorCode } from '../../../shared/model/error_code.ts';

type Released = CredentialsPayload['credentials'][number];
type AskedCredential = CredentialsRequest['credentials'][number];
type CredentialRef = Pick<AskedCredential, 'owner' | 'path'>;

/** A reference with its result: a value encrypted to the sidecar, nothing, or an error. */
interface Found {
  readonly ref: CredentialRef;
  readonly stored: {
    readonly row: Place;
    readonly sealed: string;
    readonly expiresAt: string | null;
    readonly narrowed?: true;
  } | null;
  readonly unavailable?: Unavailable;
}
/** Where a value is to the sidecar. A shared one is another person's. */
type Place = Pick<SecretRow, 'id' | 'version' | 'ownerId' | 'path'> & { readonly sharedBy?: string };
type Unavailable = CredentialsPayload['unavailable'][number];

/**
 * Releases credentials to a sidecar, encrypted to its key, in a signed reply. Only those that a binding of the
 * sidecar's own snapshot refers to are released. Each release is in the audit log before the reply is sent.
 */
export async function releaseCredentials(
  context: ServiceContext,
  caller: SidecarCaller,
  request: CredentialsRequest,
): Promise<Result<string, ApiError>> {
  const refs = withoutRepeats(request.credentials);
  const found = await Promise.all(refs.map((ref) => isolateFailure(context, ref, find(context, caller, ref))));
  return answer(context, caller, { requestId: request.request_id, found, about: {} });
}

async function find(context: ServiceContext, caller: SidecarCaller, asked: AskedCredential): Promise<Found> {
  const ref: CredentialRef = { owner: asked.owner, path: asked.path };
  if (isOutOfReach(caller, ref)) return { ref, stored: null };
  if (asked.narrowing !== undefined && isNeverNarrowed(ref))
    return { ref, stored: null, unavailable: notNarrowed(ref) };
  const place = { ownerId: ownerId(caller, ref.owner), path: ref.path };
  if (parseSharedPath(ref.path) !== null) return findOfShare(context, caller, place, ref);
  const connector = isReservedVaultPath(ref.path) ? (await listConnectorsAt(context.database, place))[0] : undefined;
  if (connector !== undefined) return encryptAccess(caller, place, ref, await connectorAccess(context, connector));
  const serverId = mcpServerOfToken(ref.path);
  if (serverId !== null) return findTokenOfMcpServer(context, caller, place, ref, serverId);
  // What is stored there is the connector's whole bundle, with its refresh token.
  const row = connectorOfVaultPath(ref.path) !== null ? null : await findReferredSecret(context.database, place);
  if (row === null) return findLent(context, caller, place, ref);
  const { narrowing } = asked;
  if (narrowing === undefined) return encryptValue(caller, row, ref, await currentCredential(context, row));
  const found = await encryptValue(caller, row, ref, await narrowedCredential(context, row, narrowing));
  return found.stored === null ? found : { ...found, stored: { ...found.stored, narrowed: true } };
}

/** The credential of a binding that a colleague shares. A failure names neither the colleague's path nor the provider. */
async function findOfShare(
  context: ServiceContext,
  caller: SidecarCaller,
  place: VaultPlace,
  ref: CredentialRef,
): Promise<Found> {
  const row = ref.owner === 'enterprise' ? await findSharedSecret(context, caller, ref.path) : null;
  if (row === null) return { ref, stored: null };
  const current = await currentCredential(context, row);
  const message = 'the credential of this shared binding is not available: ask whoever shares it';
  const told = current.ok ? current : err({ ...current.error, message });
  return encryptValue(caller, { ...row, ...place, sharedBy: row.ownerId }, ref, told);
}

/** The credential of a connector or an MCP server that a colleague shares, which is the enterprise's to a sidecar. */
async function findLent(
  context: ServiceContext,
  caller: SidecarCaller,
  place: VaultPlace,
  ref: CredentialRef,
): Promise<Found> {
  const isLent = ref.owner === 'enterprise' && isReservedVaultPath(ref.path);
  const lent = isLent ? await findLentCredential(context, caller, ref.path) : null;
  if (lent === null) return { ref, stored: null };
  const { sharedBy } = lent;
  if (lent.kind === 'access') return encryptAccess(caller, { ...place, sharedBy }, ref, lent.access);
  const current = await currentCredential(context, lent.row);
  const told = current.ok ? current : err(ofColleague(current.error));
  return encryptValue(caller, { ...lent.row, ...place, sharedBy }, ref, told);
}

/** What no source mints: the credential of a connector or a server, and what a colleague shares. */
function isNeverNarrowed({ path }: CredentialRef): boolean {
  return parseSharedPath(path) !== null || isReservedVaultPath(path);
}

function notNarrowed(ref: CredentialRef): Unavailable {
  const message = `${formatVaultReference(ref.path)} cannot be narrowed: no source of yours mints it`;
  return { ...ref, reason: 'credential_unavailable', message };
}

/** The sidecar of a service account may be given nothing of the enterprise's. */
function isOutOfReach({ ownOnly }: SidecarCaller, { owner }: CredentialRef): boolean {
  return ownOnly && owner === 'enterprise';
}

/**
 * A problem with one credential does not block the others. A database failure concerns no single one and fails the
 * call.
 */
async function isolateFailure(
  context: ServiceContext,
  { owner, path }: AskedCredential,
  finding: Promise<Found>,
): Promise<Found> {
  const ref: CredentialRef = { owner, path };
  try {
    return await finding;
  } catch (error) {
    if (isWorthRetrying(error)) throw error;
    const code = errorCode(error) || 'unknown';
    const what = `the release of the ${ref.owner} ${formatVaultReference(ref.path)} (${code})`;
    context.defer(what, () => Promise.reject(error));
    const message = `the control plane failed to release ${formatVaultReference(ref.path)}: see its log`;
    return { ref, stored: null, unavailable: { ...ref, reason: 'credential_unavailable', message } };
  }
}

/**
 * Releases one credential of the sidecar's own user, for a program that needs it in plaintext. The log records the host
 * and the reason. Refuses with `invalid_input` a host or reason that contains the credential.
 */
export async function releaseUnsealed(
  context: ServiceContext,
  caller: SidecarCaller,
  request: UnsealedRequest,
): Promise<Result<string, ApiError>> {
  const { request_id: requestId, reference: ref, host, reason } = request;
  const about = { 'svc.proxy.upstream.host': host, 'svc.proxy.reason': reason };
  const row = await findSealedSecret(context.database, { ownerId: ownerId(caller, ref.owner), path: ref.path });
  if (row === null) return answer(context, caller, { requestId, found: [{ ref, stored: null }], about });
  const current = await currentValue(context, row);
  if (!current.ok) return err(current.error);
  const { secret } = current.value;
  if (isContaining(secret, host) || isContaining(secret, reason)) return err(credentialInText());
  const found = [await encryptValue(caller, row, ref, current)];
  return answer(context, caller, { requestId, found, about });
}

/** The access token of this owner's remote MCP server; `stored` is null while it is not authorised. */
async function findTokenOfMcpServer(
  context: ServiceContext,
  caller: SidecarCaller,
  place: VaultPlace,
  ref: CredentialRef,
  serverId: string,
): Promise<Found> {
  const server = await findMcpServer(context.database, [place.ownerId], serverId);
  if (server === null) return findLent(context, caller, place, ref);
  const access = await accessToken(context, server.id);
  if (!access.ok && access.error.code === 'binding_required') return { ref, stored: null };
  return encryptAccess(caller, place, ref, access);
}

/** A stored value, or a minted one with its end. */
async function encryptValue(
  caller: SidecarCaller,
  row: Place,
  ref: CredentialRef,
  current: Result<CurrentValue, ApiError>,
): Promise<Found> {
  if (current.ok) {
    const { expiresAt } = current.value;
    return { ref, stored: { row, sealed: await reseal(caller, current.value), expiresAt } };
  }
  const { message } = current.error;
  return { ref, stored: null, unavailable: { ...ref, reason: 'credential_unavailable', message } };
}

/** An API key or an access token; a refresh token never leaves the control plane. */
async function encryptAccess(
  caller: SidecarCaller,
  place: Pick<Place, 'ownerId' | 'path' | 'sharedBy'>,
  ref: CredentialRef,
  access: Result<ConnectorAccess, ApiError>,
): Promise<Found> {
  if (access.ok) {
    const { token, expiresAt, secret } = access.value;
    const row = { ...secret, ...place };
    return { ref, stored: { row, sealed: await reseal(caller, { secret: token }), expiresAt } };
  }
  const isRevoked = access.error.code === 'reauthorisation_required';
  const reason = isRevoked ? ('reauthorisation_required' as const) : ('credential_unavailable' as const);
  return { ref, stored: null, unavailable: { ...ref, reason, message: access.error.message } };
}

interface Release {
  readonly requestId: string;
  readonly found: readonly Found[];
  /** The audit data of the release, apart from the credential. */
  readonly about: AuditEventData;
}

async function answer(
  context: ServiceContext,
  caller: SidecarCaller,
  { requestId, found, about }: Release,
): Promise<Result<string, ApiError>> {
  const released = found.flatMap(({ stored }) => stored ?? []);
  const events = released.map(({ row }) => releaseEvent(caller, row, about));
  const audited = await commit(context, controlChain(caller), async () => ok({ statements: [], events, value: null }));
  if (!audited.ok) return audited;
  const payload: CredentialsPayload = {
    sidecar_id: caller.sidecarId,
    request_id: requestId,
    expires_at: new Date(context.clock.now() + CREDENTIALS_REPLY_SECONDS * 1000).toISOString(),
    credentials: released.map(({ row, sealed, expiresAt, narrowed }) => ({
      ...toReleased(row, sealed, expiresAt),
      ...(narrowed && { narrowed }),
    })),
    missing: found
      .filter(({ stored, unavailable }) => stored === null && unavailable === undefined)
      .map(({ ref }) => ref),
    unavailable: found.flatMap(({ unavailable }) => unavailable ?? []),
  };
  return ok(await context.controlPlane.sign(CREDENTIALS_TYP, payload));
}

/** One value for each reference in a reply: the last one that was asked for. */
function withoutRepeats(refs: readonly AskedCredential[]): AskedCredential[] {
  return [...new Map(refs.map((ref) => [`${ref.owner} ${ref.path}`, ref])).values()];
}

/** Shorter values match a text by chance. */
const SHORTEST_RECOGNISED_CHARACTERS = 8;

function isContaining(secret: Secret, text: string): boolean {
  const value = secret.reveal().trim();
  return value.length >= SHORTEST_RECOGNISED_CHARACTERS && text.includes(value);
}

function credentialInText(): ApiError {
  const message = 'contains the credential itself, and would be in the audit log: use other words';
  return apiError('invalid_input', `the host or the reason ${message}`, { fields: [{ field: 'reason', message }] });
}

/** Decrypts with the vault and encrypts to the sidecar; the plaintext exists only in memory in between. */
async function reseal(
  caller: SidecarCaller,
  { secret, signedAs }: Pick<CurrentValue, 'secret' | 'signedAs'>,
): Promise<string> {
  const key = await importReceivingKey(caller.receivingKey);
  const sealed: SealedCredential = { value: secret.reveal() };
  if (signedAs === undefined) return sealTo(key, JSON.stringify(sealed));
  const { accessKeyId, sessionToken } = signedAs;
  const named = { access_key_id: accessKeyId, session_token: sessionToken.reveal() };
  return sealTo(key, JSON.stringify({ ...sealed, signed_as: named }));
}

function toReleased(row: Place, sealed: string, expiresAt: string | null): Released {
  const released = { owner: ownerName(row.ownerId), path: row.path, version: credentialVersion(row), sealed };
  return expiresAt === null ? released : { ...released, expires_at: expiresAt };
}

function releaseEvent(caller: SidecarCaller, row: Place, about: AuditEventData): AuditDraft {
  return {
    type: 'control.credential.released',
    actor: caller.sidecarId,
    data: {
      'svc.control.resource': row.id,
      'svc.control.credential_ref': formatVaultReference(row.path),
      'svc.control.owner': ownerName(row.ownerId),
      ...(row.sharedBy !== undefined && { 'svc.control.shared_by': row.sharedBy }),
      ...about,
    },
  };
}
