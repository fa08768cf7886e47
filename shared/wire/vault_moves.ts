import { z } from 'zod';
import { mcpCredentialName } from './mcp/mcp_server_fields.ts';
import { id, line, time } from './primitives.ts';
import { secretSource } from './sources/source_table.ts';
import { secretValue, sourcePath, vaultPath } from './secrets.ts';
import { signingKey } from './sidecars.ts';

/** A move that is not finished after this time gets another key. */
export const VAULT_MOVE_SECONDS = 3_600;

/** The types of the JWS with a move's key, and of the JWE with one value. */
export const VAULT_MOVE_KEY_TYP = 'svc-vault-move-key+jws';
export const VAULT_MOVE_TYP = 'svc-vault-move+jwe';

/** The public key of one move. P-256, because every runtime has it. */
export const moveKey = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string().max(64),
  y: z.string().max(64),
});
export type MoveKey = z.output<typeof moveKey>;

/** The payload of the JWS: whose values the key is for. */
export const moveKeyPayload = z.object({
  control_plane_id: z.string(),
  user_id: id('usr'),
  email: z.string().nullable(),
  enterprise_id: id('ent'),
  enterprise_name: z.string(),
  key: moveKey,
  expires_at: time,
  /** The end of a value may be sent with it. Absent: an earlier version, which refuses one that has it. */
  takes_ends: z.boolean().optional(),
});
export type MoveKeyPayload = z.output<typeof moveKeyPayload>;

/** `POST /v1/vault-moves`: the ticket has the private key, sealed; only this control plane opens it, for this user. */
export const vaultMove = z
  .object({ ticket: z.string(), control_plane_id: z.string(), control_plane_key: signingKey, signed: z.string() })
  .meta({ id: 'VaultMove' });
export type VaultMove = z.output<typeof vaultMove>;

/** Where a value belongs: at a path, as the key of a source, or with a connector or a server that the user owns. */
export const moveTarget = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('secret'),
    path: vaultPath,
    description: line(500).optional(),
    /** When the value ends, if whoever stored it said so. */
    expires_at: time.optional(),
  }),
  z.strictObject({
    kind: z.literal('source'),
    path: sourcePath,
    description: line(500).optional(),
    source: secretSource,
  }),
  z.strictObject({ kind: z.literal('connector'), connector_id: id('con') }),
  z.strictObject({ kind: z.literal('mcp_server'), server_id: id('mcp'), name: mcpCredentialName }),
]);
export type MoveTarget = z.output<typeof moveTarget>;

/** The plaintext of a JWE. A comparison has a digest of the value under a key of its own, a store has the value. */
export const movedValue = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.literal('compare'),
    target: moveTarget,
    digest_key: z.string().length(43),
    digest: z.string().length(43),
  }),
  z.strictObject({
    action: z.literal('store'),
    target: moveTarget,
    digest_key: z.string().length(43),
    value: secretValue,
  }),
]);
export type MovedValue = z.output<typeof movedValue>;

const MAX_SEALED_CHARACTERS = 640_000;

/** `POST /v1/vault-moves/values`: a compact JWE (ECDH-ES, A256GCM) to the key of the ticket. */
export const moveRequest = z
  .strictObject({ ticket: z.string().max(4_096), sealed: z.string().max(MAX_SEALED_CHARACTERS) })
  .meta({ id: 'VaultMoveValue' });

/**
 * What is at the target now. `different`: another value, which was not replaced. `proof`: a digest, under the key of the
 * JWE, of the value that was read back; null unless it is the one that was sent.
 */
export const moveReply = z
  .object({ state: z.enum(['absent', 'different', 'same', 'stored']), proof: z.string().nullable() })
  .meta({ id: 'VaultMoveReply' });
export type MoveReply = z.output<typeof moveReply>;
