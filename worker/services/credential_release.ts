import type { AuditEventData } from '../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import {
  CREDENTIALS_REPLY_SECONDS,
  CREDENTIALS_TYP,
  type CredentialsPayload,
  type CredentialsRequest,
  type UnsealedRequest,
} from '../../shared/wire/channel.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { findSealedSecret, referredSecret, type SecretRow } from '../store/secrets.ts';
import { ownerId, ownerName } from './caller.ts';
import { type AuditDraft, commit } from './commit.ts';
import { controlChain } from './policy_change.ts';
import type { ServiceContext } from './service_context.ts';
import type { SidecarCaller } from './sidecar_calls.ts';
import { importReceivingKey, sealTo } from './sidecar_keys.ts';
import { opened } from './secrets.ts';
import { credentialVersion } from './snapshot.ts';

type Released = CredentialsPayload['credentials'][number];
type CredentialRef = CredentialsRequest['credentials'][number];

/** A reference with what is stored there: nothing, or a row and its value, sealed to the sidecar. */
interface Found {
  readonly ref: CredentialRef;
  readonly stored: { readonly row: SecretRow; readonly sealed: string } | null;
}

/**
 * Releases credentials to a sidecar, sealed to its key, and answers with a signed reply. Only what a binding of the
 * sidecar's own snapshot refers to; each release is in the audit log before it is answered.
 */
export async function releaseCredentials(
  context: ServiceContext,
  caller: SidecarCaller,
  request: CredentialsRequest,
): Promise<Result<string, ApiError>> {
  const find = async (ref: CredentialRef): Promise<Found> => {
    const row = await referredSecret(context.database, { ownerId: ownerId(caller, ref.owner), path: ref.path });
    return { ref, stored: row && { row, sealed: await reseal(caller, await opened(context, row)) } };
  };
  const found = await Promise.all(distinct(request.credentials).map((ref) => find(ref)));
  return answer(context, caller, { requestId: request.request_id, found, about: {} });
}

/**
 * Releases one credential of the sidecar's own user that a program is to get as it is. The log says for which host and why.
 * Refuses with `invalid_input` a host or reason that holds the credential itself.
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
  const secret = await opened(context, row);
  if (holds(secret, host) || holds(secret, reason)) return err(credentialInText());
  const stored = { row, sealed: await reseal(caller, secret) };
  return answer(context, caller, { requestId, found: [{ ref, stored }], about });
}

interface Release {
  readonly requestId: string;
  readonly found: readonly Found[];
  /** What the log says of the release, besides the credential. */
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
    credentials: released.map(({ row, sealed }) => toReleased(row, sealed)),
    missing: found.filter(({ stored }) => stored === null).map(({ ref }) => ref),
    unavailable: [],
  };
  return ok(await context.controlPlane.sign(CREDENTIALS_TYP, payload));
}

function distinct(refs: readonly CredentialRef[]): CredentialRef[] {
  return [...new Map(refs.map((ref) => [`${ref.owner} ${ref.path}`, ref])).values()];
}

/** What is shorter stands in a text by chance. */
const SHORTEST_RECOGNISED_CHARACTERS = 8;

function holds(secret: Secret, text: string): boolean {
  const value = secret.reveal().trim();
  return value.length >= SHORTEST_RECOGNISED_CHARACTERS && text.includes(value);
}

function credentialInText(): ApiError {
  const message = 'holds the credential itself, and would be in the audit log: say it in other words';
  return apiError('invalid_input', `the host or the reason ${message}`, { fields: [{ field: 'reason', message }] });
}

/** From the vault's seal to the sidecar's; the value is in memory only in between. */
async function reseal(caller: SidecarCaller, secret: Secret): Promise<string> {
  const key = await importReceivingKey(caller.receivingKey);
  return sealTo(key, JSON.stringify({ value: secret.reveal() }));
}

function toReleased(row: SecretRow, sealed: string): Released {
  return { owner: ownerName(row.ownerId), path: row.path, version: credentialVersion(row), sealed };
}

function releaseEvent(caller: SidecarCaller, row: SecretRow, about: AuditEventData): AuditDraft {
  return {
    type: 'control.credential.released',
    actor: caller.sidecarId,
    data: {
      'svc.control.resource': row.id,
      'svc.control.credential_ref': formatVaultReference(row.path),
      'svc.control.owner': ownerName(row.ownerId),
      ...about,
    },
  };
}
