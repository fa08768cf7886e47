import { compactDecrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { parseJson } from '../../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../../shared/model/result.ts';
import { Secret } from '../../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../../shared/wire/errors.ts';
import {
  moveKey,
  type MoveKeyPayload,
  type MoveReply,
  type MoveTarget,
  type MovedValue,
  movedValue,
  VAULT_MOVE_KEY_TYP,
  VAULT_MOVE_SECONDS,
  VAULT_MOVE_TYP,
  type VaultMove,
} from '../../../../shared/wire/vault_moves.ts';
import type { Caller } from '../../../kernel/caller.ts';
import { commit } from '../../../kernel/commit.ts';
import { controlChain } from '../../../kernel/policy_change.ts';
import { nowSeconds, type ServiceContext } from '../../../kernel/service_context.ts';
import { findAccount } from '../../../store/accounts.ts';
import { storeConnectorCredential } from '../../connectors/connector_credentials.ts';
import { storeMcpCredential } from '../../mcp/mcp_credentials.ts';
import { storeSource } from '../../sources/secret_sources.ts';
import { storeSecret } from '../secrets.ts';
import { findHeldValue, isOwnTarget } from './held_value.ts';
import { valueDigest } from './value_digest.ts';

/**
 * Makes the key to which a person's other vault seals values. Nothing is stored: the ticket has the private key, sealed for this
 * user and this hour. The public key is signed, so that nobody between the two vaults can put one of their own in its place.
 */
export async function beginMove(context: ServiceContext, caller: Caller): Promise<Result<VaultMove, ApiError>> {
  const account = await findAccount(context.database, caller.userId);
  if (account === null) return err(apiError('unauthenticated', 'the user of this call was deleted meanwhile'));
  const pair = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
  const { kty, crv, x, y } = await exportJWK(pair.publicKey);
  const until = nowSeconds(context) + VAULT_MOVE_SECONDS;
  const privateKey = new Secret(JSON.stringify(await exportJWK(pair.privateKey)));
  const payload: MoveKeyPayload = {
    control_plane_id: context.controlPlane.id,
    user_id: caller.userId,
    email: account.user.email,
    enterprise_id: caller.enterpriseId,
    enterprise_name: account.enterprise.name,
    key: moveKey.parse({ kty, crv, x, y }),
    expires_at: new Date(until * 1000).toISOString(),
    takes_ends: true,
  };
  return ok({
    ticket: `${until}.${await context.vault.seal(ticketPlace(caller, until), privateKey)}`,
    control_plane_id: context.controlPlane.id,
    control_plane_key: context.controlPlane.publicKey,
    signed: await context.controlPlane.sign(VAULT_MOVE_KEY_TYP, payload),
  });
}

/**
 * Compares a value with what the caller has at its target, or stores it there if nothing is. Refuses with `invalid_input` for a
 * ticket or a text that is not of this caller, and as the service of the target does. Nothing is ever replaced.
 */
export async function receiveMoved(
  context: ServiceContext,
  caller: Caller,
  request: { readonly ticket: string; readonly sealed: string },
): Promise<Result<MoveReply, ApiError>> {
  const privateKey = await openTicket(context, caller, request.ticket);
  if (privateKey === null) return err(unusable('ticket', 'is not a ticket of this user, or has ended: begin again'));
  const moved = await openMoved(privateKey, caller, request.sealed);
  if (moved === null) return err(unusable('sealed', 'is not a value of this user, sealed to the key of the ticket'));
  const known = await compare(context, caller, moved);
  if (known.state !== 'absent' || moved.action === 'compare') return ok(known);
  if (!(await isOwnTarget(context, caller, moved.target))) {
    return err(
      apiError('not_found', 'you own no such connector or server: list yours with GET /v1/connectors, /v1/mcp-servers'),
    );
  }
  const stored = await store(context, caller, moved);
  if (!stored.ok) return stored;
  const recorded = await recordMovedIn(context, caller, moved.target);
  if (!recorded.ok) return recorded;
  // Read back, so that the proof is about what is stored and not about what was sent.
  const held = await compare(context, caller, moved);
  return ok(held.state === 'same' ? { ...held, state: 'stored' } : held);
}

async function compare(context: ServiceContext, caller: Caller, moved: MovedValue): Promise<MoveReply> {
  const held = await findHeldValue(context, caller, moved.target);
  if (held === null) return { state: 'absent', proof: null };
  const { digest_key: digestKey, target } = moved;
  const offered =
    moved.action === 'compare'
      ? moved.digest
      : await valueDigest(digestKey, 'offered', target, new Secret(moved.value));
  if ((await valueDigest(digestKey, 'offered', held.target, held.value)) !== offered) {
    return { state: 'different', proof: null };
  }
  return { state: 'same', proof: await valueDigest(digestKey, 'held', held.target, held.value) };
}

async function store(
  context: ServiceContext,
  caller: Caller,
  { target, value }: Extract<MovedValue, { readonly action: 'store' }>,
): Promise<Result<unknown, ApiError>> {
  const secret = new Secret(value);
  const place = { owner: 'personal' as const, onlyNew: true };
  if (target.kind === 'secret') {
    const { path, description, expires_at } = target;
    return storeSecret(context, caller, { ...place, path, description, expires_at, value: secret });
  }
  if (target.kind === 'source') return storeSource(context, caller, { ...place, ...target, key: secret });
  if (target.kind === 'mcp_server') {
    return storeMcpCredential(context, caller, target.server_id, { name: target.name, value: secret, onlyNew: true });
  }
  return storeConnectorCredential(context, caller, target.connector_id, { kind: 'api_key', value }, { onlyNew: true });
}

function recordMovedIn(context: ServiceContext, caller: Caller, target: MoveTarget): Promise<Result<null, ApiError>> {
  const data = { ...movedData(target), 'svc.control.owner': 'personal' };
  const events = [{ type: 'control.vault.moved_in' as const, actor: caller.userId, data }];
  return commit(context, controlChain(caller), async () => ok({ statements: [], events, value: null }));
}

/** What an event says of a target: a path, or the id of what the value belongs to. */
function movedData(target: MoveTarget) {
  if (target.kind === 'connector') return { 'svc.control.resource': target.connector_id };
  if (target.kind === 'mcp_server') return { 'svc.control.resource': target.server_id };
  return { 'svc.control.credential_ref': formatVaultReference(target.path) };
}

/** The user and the end are part of the place: a ticket opens for no other user, and with no other end. */
function ticketPlace({ userId }: Pick<Caller, 'userId'>, until: number) {
  return { owner: userId, path: 'vault-move', version: until };
}

async function openTicket(context: ServiceContext, caller: Caller, ticket: string): Promise<Secret | null> {
  const dot = ticket.indexOf('.');
  const until = Number(ticket.slice(0, dot));
  if (!/^\d{1,12}$/.test(ticket.slice(0, dot)) || until <= nowSeconds(context)) return null;
  return context.vault.open(ticketPlace(caller, until), ticket.slice(dot + 1));
}

/** Null if the text is no value that was sealed for this user to this key. */
async function openMoved(privateKey: Secret, { userId }: Caller, jwe: string): Promise<MovedValue | null> {
  try {
    const key = await importJWK(JSON.parse(privateKey.reveal()), 'ECDH-ES');
    const options = { keyManagementAlgorithms: ['ECDH-ES'], contentEncryptionAlgorithms: ['A256GCM'] };
    const { plaintext, protectedHeader } = await compactDecrypt(jwe, key, options);
    if (protectedHeader.typ !== VAULT_MOVE_TYP || protectedHeader['user'] !== userId) return null;
    const parsed = movedValue.safeParse(parseJson(new TextDecoder('utf-8', { fatal: true }).decode(plaintext)));
    return parsed.success ? parsed.data : null;
  } catch {
    // Any error of jose means that the text is not what was asked for.
    return null;
  }
}

function unusable(field: 'ticket' | 'sealed', message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}
