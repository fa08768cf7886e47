import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { EnrolInput, EnrolReply, SidecarRecord } from '../../../shared/wire/sidecars.ts';
import { findSidecar, insertSidecar, listSidecars, revokeSidecar, type SidecarRow } from '../../store/sidecars.ts';
import { findAccount } from '../../store/accounts.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import type { SidecarCaller } from './sidecar_calls.ts';
import { isUsableReceivingKey, isUsableSigningKey } from './sidecar_keys.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';

/** Enrols a sidecar for a user. Refuses with `invalid_input` when a key is not a point of its curve, `limit_reached`. */
export async function enrolSidecar(
  context: ServiceContext,
  caller: Caller,
  input: EnrolInput,
): Promise<Result<EnrolReply, ApiError>> {
  const problem = await keyProblem(input);
  if (problem !== null) return err(problem);
  const row = newSidecar(context, caller, input);
  return commit(context, controlChain(caller), async () => {
    // Suspending a user revokes its sidecars in the same chain, so no sidecar can be enrolled after that.
    const account = await findAccount(context.database, caller.userId);
    if (account === null || account.user.suspendedAt !== null) {
      return err(apiError('unauthenticated', 'no valid credentials: sign in again'));
    }
    return ok({
      statements: insertSidecar(context.database, row),
      events: [sidecarEvent('control.sidecar.enrolled', caller, row)],
      begins: [row.id],
      adds: [{ kind: 'sidecars', holder: caller.userId }],
      value: enrolled(context, row),
    });
  });
}

/** The row of a new sidecar, of a person unless it says when it ends. */
export function newSidecar(
  context: ServiceContext,
  { enterpriseId, userId }: Pick<Caller, 'enterpriseId' | 'userId'>,
  input: EnrolInput,
): SidecarRow {
  return {
    id: freshId(context, 'sdc'),
    enterpriseId,
    userId,
    name: input.name,
    signingKey: JSON.stringify(input.signing_key),
    receivingKey: JSON.stringify(input.receiving_key),
    createdAt: nowText(context),
    lastSeenAt: null,
    revokedAt: null,
    expiresAt: null,
    ownOnly: false,
  };
}

/** What a new sidecar pins. */
export function enrolled({ controlPlane }: ServiceContext, row: SidecarRow): EnrolReply {
  return { sidecar_id: row.id, control_plane_id: controlPlane.id, control_plane_key: controlPlane.publicKey };
}

/** Why a sidecar's keys cannot be used; null if they can. */
export async function keyProblem(input: Pick<EnrolInput, 'signing_key' | 'receiving_key'>): Promise<ApiError | null> {
  const usable = {
    signing_key: await isUsableSigningKey(input.signing_key),
    receiving_key: await isUsableReceivingKey(input.receiving_key),
  };
  const fields = Object.entries(usable)
    .filter(([, isUsable]) => !isUsable)
    .map(([field]) => ({ field, message: 'is not a public key of its curve: create a new key pair' }));
  if (fields.length === 0) return null;
  return apiError('invalid_input', fields.map(({ field, message }) => `${field} ${message}`).join('; '), { fields });
}

/** The caller's sidecars, oldest first, including revoked ones. Refuses with `invalid_cursor`. */
export async function listSidecarPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<SidecarRecord>, ApiError>> {
  return readPageById(query, 'sdc', {
    read: (from) => listSidecars(context.database, { userId: caller.userId, ...from }),
    toItem: toRecord,
  });
}

/** Revokes a sidecar permanently: its next call, or the poll it waits in, is refused. Refuses with `not_found`. */
export async function removeSidecar(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findSidecar(context.database, id);
    if (row === null || row.userId !== caller.userId || row.revokedAt !== null) {
      return err(apiError('not_found', `there is no active sidecar ${id}: list them with GET /v1/sidecars`));
    }
    return ok({
      statements: revokeSidecar(context.database, id, nowText(context)),
      events: [sidecarEvent('control.sidecar.revoked', caller, row)],
      value: null,
    });
  });
}

/** Ends the calling sidecar: what it holds is of no use from now on. */
export async function leaveAsSidecar(context: ServiceContext, caller: SidecarCaller): Promise<Result<null, ApiError>> {
  const { sidecarId: id } = caller;
  return commit(context, controlChain(caller), async () => {
    const row = await findSidecar(context.database, id);
    if (row === null || row.revokedAt !== null) return ok({ statements: [], events: [], value: null });
    const event = { type: 'control.sidecar.left' as const, actor: id, data: { 'svc.control.resource': id } };
    return ok({ statements: revokeSidecar(context.database, id, nowText(context)), events: [event], value: null });
  });
}

function sidecarEvent(type: AuditDraft['type'], caller: Caller, row: SidecarRow): AuditDraft {
  return { type, actor: caller.userId, data: { 'svc.control.resource': row.id } };
}

function toRecord(row: SidecarRow): SidecarRecord {
  return {
    id: row.id,
    name: row.name,
    created_at: row.createdAt,
    last_seen_at: row.lastSeenAt,
    revoked_at: row.revokedAt,
  };
}
