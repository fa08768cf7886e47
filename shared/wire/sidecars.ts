import { z } from 'zod';
import { id, line, page, pageQuery, time } from './primitives.ts';

const base64url32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is not 32 bytes as base64url');

/** The Ed25519 public key that verifies a sidecar's calls or a control plane's replies (RFC 8037). */
export const signingKey = z.strictObject({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: base64url32,
  kid: z.string().max(100).optional(),
  alg: z.enum(['EdDSA', 'Ed25519']).optional(),
  use: z.literal('sig').optional(),
});
export type SigningKey = z.infer<typeof signingKey>;

const receivingKeyNames = {
  kid: z.string().max(100).optional(),
  alg: z.literal('ECDH-ES').optional(),
  use: z.literal('enc').optional(),
};

/** The public key for sealing credentials: X25519, or P-256 if a runtime lacks it. */
const receivingKey = z.discriminatedUnion('kty', [
  z.strictObject({ kty: z.literal('OKP'), crv: z.literal('X25519'), x: base64url32, ...receivingKeyNames }),
  z.strictObject({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: base64url32,
    y: base64url32,
    ...receivingKeyNames,
  }),
]);
export type ReceivingKey = z.infer<typeof receivingKey>;

/** The name and the two public keys of a new sidecar. */
export const enrolFields = {
  name: line(100).trim().min(1, 'is empty: name the machine, such as laptop'),
  signing_key: signingKey,
  receiving_key: receivingKey,
};

/** `POST /v1/sidecars`, as the user: enrols a sidecar with its two public keys. */
export const enrolInput = z.strictObject(enrolFields).meta({ id: 'EnrolSidecar' });
export type EnrolInput = z.infer<typeof enrolInput>;

/** 201: the keys and ids that the sidecar pins. */
export const enrolReply = z
  .object({ sidecar_id: id('sdc'), control_plane_id: id('cpl'), control_plane_key: signingKey })
  .meta({ id: 'EnrolledSidecar' });
export type EnrolReply = z.infer<typeof enrolReply>;

const sidecarRecord = z
  .object({
    id: id('sdc'),
    name: z.string(),
    created_at: time,
    /** The last verified call, to the minute; null before the first. */
    last_seen_at: time.nullable(),
    revoked_at: time.nullable(),
  })
  .meta({ id: 'Sidecar' });
export type SidecarRecord = z.infer<typeof sidecarRecord>;

export const sidecarsQuery = z.strictObject({ ...pageQuery });
export const sidecarsPage = page(sidecarRecord).meta({ id: 'SidecarsPage' });
export const sidecarParams = z.strictObject({ id: id('sdc') });
