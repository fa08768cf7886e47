import { ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import {
  CREDENTIALS_REPLY_SECONDS,
  CREDENTIALS_TYP,
  type CredentialsPayload,
  type CredentialsRequest,
} from '../../shared/wire/channel.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { referredSecret, type SecretRow } from '../store/secrets.ts';
import { ownerId, ownerName } from './caller.ts';
import { type AuditDraft, commit } from './commit.ts';
import { controlChain } from './policy_change.ts';
import type { ServiceContext } from './service_context.ts';
import type { SidecarCaller } from './sidecar_calls.ts';
import { importReceivingKey, sealTo } from './sidecar_keys.ts';
import { credentialVersion } from './snapshot.ts';

type Released = CredentialsPayload['credentials'][number];
type CredentialRef = CredentialsRequest['credentials'][number];

/**
 * Releases credentials to a sidecar, sealed to its key, and answers with a signed reply. Only what a binding of the
 * sidecar's own snapshot refers to; each release is in the audit log before it is answered.
 */
export async function releaseCredentials(
  context: ServiceContext,
  caller: SidecarCaller,
  request: CredentialsRequest,
): Promise<Result<string, ApiError>> {
  const found = await Promise.all(distinct(request.credentials).map((ref) => find(context, caller, ref)));
  const released = found.flatMap(({ row, sealed }) => (row === null || sealed === null ? [] : [{ row, sealed }]));
  const audited = await commit(context, controlChain(caller), async () =>
    ok({ statements: [], events: released.map(({ row }) => releaseEvent(caller, row)), value: null }),
  );
  if (!audited.ok) return audited;
  const payload: CredentialsPayload = {
    sidecar_id: caller.sidecarId,
    request_id: request.request_id,
    expires_at: new Date(context.clock.now() + CREDENTIALS_REPLY_SECONDS * 1000).toISOString(),
    credentials: released.map(({ row, sealed }) => toReleased(row, sealed)),
    missing: found.filter(({ sealed }) => sealed === null).map(({ ref }) => ref),
  };
  return ok(await context.controlPlane.sign(CREDENTIALS_TYP, payload));
}

function distinct(refs: readonly CredentialRef[]): CredentialRef[] {
  return [...new Map(refs.map((ref) => [`${ref.owner} ${ref.path}`, ref])).values()];
}

async function find(context: ServiceContext, caller: SidecarCaller, ref: CredentialRef) {
  const row = await referredSecret(context.database, { ownerId: ownerId(caller, ref.owner), path: ref.path });
  return { ref, row, sealed: row === null ? null : await reseal(context, caller, row) };
}

/** From the vault's seal to the sidecar's; the value is in memory only in between. */
async function reseal(context: ServiceContext, caller: SidecarCaller, row: SecretRow): Promise<string> {
  const secret = await context.vault.open({ owner: row.ownerId, path: row.path, version: row.version }, row.sealed);
  if (secret === null)
    throw Object.assign(new Error(`the vault cannot open ${row.id}`), { code: 'vault_entry_damaged' });
  const key = await importReceivingKey(caller.receivingKey);
  return sealTo(key, JSON.stringify({ value: secret.reveal() }));
}

function toReleased(row: SecretRow, sealed: string): Released {
  return { owner: ownerName(row.ownerId), path: row.path, version: credentialVersion(row), sealed };
}

function releaseEvent(caller: SidecarCaller, row: SecretRow): AuditDraft {
  return {
    type: 'control.credential.released',
    actor: caller.sidecarId,
    data: {
      'svc.control.resource': row.id,
      'svc.control.credential_ref': formatVaultReference(row.path),
      'svc.control.owner': ownerName(row.ownerId),
    },
  };
}
