import { CompactEncrypt, importJWK } from 'jose';
import { z } from 'zod';
import type { Secret } from '../../../../shared/model/secret.ts';
import { ok, type Result } from '../../../../shared/model/result.ts';
import type { ApiError } from '../../../../shared/wire/errors.ts';
import { formatVaultReference } from '../../../../shared/model/vault_path.ts';
import {
  type MovedValue,
  moveKey,
  type MoveTarget,
  moveTarget,
  VAULT_MOVE_TYP,
} from '../../../../shared/wire/vault_moves.ts';
import type { Caller } from '../../../kernel/caller.ts';
import { commit } from '../../../kernel/commit.ts';
import { controlChain } from '../../../kernel/policy_change.ts';
import type { ServiceContext } from '../../../kernel/service_context.ts';
import { findHeldValue } from './held_value.ts';
import { newDigestKey, valueDigest } from './value_digest.ts';

/** What `svc vault move` asks of the program that may open the vault. */
export const sealRequest = z.strictObject({
  action: z.enum(['compare', 'store']),
  /** Of the other vault: the host for the log, the user, and the key of the move. */
  host: z.string(),
  user_id: z.string(),
  key: moveKey,
  /** The other vault takes the end of a value with it. */
  with_ends: z.boolean(),
  /** Where each value is here, and where it goes. */
  values: z.array(z.strictObject({ from: moveTarget, to: moveTarget })),
});
export type SealRequest = z.output<typeof sealRequest>;

/** For each value, in order: the JWE, and the proof of who stores it; null if it is not here any more. */
export type SealedForMove = readonly ({ readonly sealed: string; readonly proof: string } | null)[];

/**
 * Seals values of this vault to the key of a move. What leaves this function is a ciphertext and a digest under a key that only
 * the ciphertext has. The audit log has each value that is sealed to be stored elsewhere, before it is handed out.
 */
export async function sealForMove(
  context: ServiceContext,
  caller: Pick<Caller, 'userId' | 'enterpriseId'>,
  request: SealRequest,
): Promise<Result<SealedForMove, ApiError>> {
  const sealed = await Promise.all(request.values.map((value) => sealOne(context, caller, request, value)));
  if (request.action === 'compare') return ok(sealed);
  const events = request.values.flatMap(({ from }, index) =>
    sealed[index] === null ? [] : [movedOut(caller, request, from)],
  );
  return commit(context, controlChain(caller), async () => ok({ statements: [], events, value: sealed }));
}

type Moving = SealRequest['values'][number];

async function sealOne(
  context: ServiceContext,
  caller: Pick<Caller, 'userId'>,
  request: SealRequest,
  { from, to }: Moving,
): Promise<SealedForMove[number]> {
  const held = await findHeldValue(context, caller, from);
  if (held === null || held.target.kind !== from.kind) return null;
  const digestKey = newDigestKey();
  const target = withHeld(to, held.target, request.with_ends);
  const moved = await movedOf(request.action, target, digestKey, held.value);
  const sealed = await new CompactEncrypt(new TextEncoder().encode(JSON.stringify(moved)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', typ: VAULT_MOVE_TYP, user: request.user_id })
    .encrypt(await importJWK(request.key, 'ECDH-ES'));
  return { sealed, proof: await valueDigest(digestKey, 'held', target, held.value) };
}

/** The target with what belongs to the value as it is stored now, and not as it was listed before. */
function withHeld(to: MoveTarget, held: MoveTarget, withEnds: boolean): MoveTarget {
  if (to.kind === 'source' && held.kind === 'source') return { ...to, source: held.source };
  const end = withEnds && held.kind === 'secret' ? held.expires_at : undefined;
  return to.kind === 'secret' && end !== undefined ? { ...to, expires_at: end } : to;
}

async function movedOf(
  action: SealRequest['action'],
  target: Moving['to'],
  digestKey: string,
  value: Secret,
): Promise<MovedValue> {
  const common = { target, digest_key: digestKey };
  if (action === 'store') return { action, ...common, value: value.reveal() };
  return { action, ...common, digest: await valueDigest(digestKey, 'offered', target, value) };
}

function movedOut({ userId }: Pick<Caller, 'userId'>, { host, user_id }: SealRequest, from: Moving['from']) {
  const place =
    from.kind === 'connector'
      ? { 'svc.control.resource': from.connector_id }
      : from.kind === 'mcp_server'
        ? { 'svc.control.resource': from.server_id }
        : { 'svc.control.credential_ref': formatVaultReference(from.path) };
  const data = { ...place, 'svc.control.host': host, 'svc.control.user': user_id, 'svc.control.owner': 'personal' };
  return { type: 'control.vault.moved_out' as const, actor: userId, data };
}
