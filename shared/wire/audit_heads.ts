import { z } from 'zod';
import { id, time } from './primitives.ts';

/** Where a chain of the audit log ended at some time. */
export const auditHead = z.strictObject({
  writer: z.string().regex(/^(?:ent|sdc)_[0-9a-z]{1,64}$/, 'is no writer: an id of a sidecar or an enterprise'),
  sequence: z.number().int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'is no hash: 64 hex digits'),
});
export type AuditHead = z.output<typeof auditHead>;

/**
 * How a head that somebody remembers stands to the chain that is there. `kept`: the chain goes through it; `pruned`: the events
 * up to it were removed, with a sealed note; `behind`: the chain ends before it; `differs`: another event is in its place;
 * `missing`: there is no such chain.
 */
export const HEAD_STANDINGS = ['kept', 'pruned', 'behind', 'differs', 'missing'] as const;
export type HeadStanding = (typeof HEAD_STANDINGS)[number];

/** Whether a chain still holds what a head was of. */
export function isGoodStanding(standing: HeadStanding): boolean {
  return standing === 'kept' || standing === 'pruned';
}

export const stoodHead = auditHead.extend({ standing: z.enum(HEAD_STANDINGS) });
export type StoodHead = z.output<typeof stoodHead>;

/** See `channel.ts`: the type of the JWS that answers `GET /v1/sidecar/audit-heads`. */
export const AUDIT_HEADS_TYP = 'svc-audit-heads+jws';
export const MAX_KNOWN_HEADS = 16;

/** `GET /v1/sidecar/audit-heads?known=WRITER.SEQUENCE.HASH,...`. */
export const auditHeadsQuery = z.strictObject({ known: z.string().max(4_096).default('') });

export function writeKnownHeads(heads: readonly AuditHead[]): string {
  return heads.map(({ writer, sequence, hash }) => `${writer}.${sequence}.${hash}`).join(',');
}

/** Null for what {@link writeKnownHeads} does not write. */
export function readKnownHeads(text: string): readonly AuditHead[] | null {
  const parts = text === '' ? [] : text.split(',');
  const heads = parts.map((part) => {
    const [, writer, sequence, hash] = /^(\w+)[.](\d{1,15})[.](\w+)$/.exec(part) ?? [];
    return auditHead.safeParse({ writer, sequence: Number(sequence), hash });
  });
  if (heads.length > MAX_KNOWN_HEADS) return null;
  const read = heads.flatMap((head) => (head.success ? [head.data] : []));
  return read.length === heads.length ? read : null;
}

/** The payload of the JWS: where the chains end that this sidecar is a witness of, and how what it remembers stands. */
export const auditHeadsPayload = z.object({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  /** The sidecar's own chain, and the control plane's of its enterprise. */
  heads: z.array(auditHead),
  known: z.array(stoodHead),
});
export type AuditHeadsPayload = z.output<typeof auditHeadsPayload>;

/** Of an events reply: where the sidecar's chain ended before the call and after it. */
export const acknowledgedHead = auditHead.extend({ previous: auditHead.omit({ writer: true }) });
export type AcknowledgedHead = z.output<typeof acknowledgedHead>;

/** The type of an exported head's JWS. */
export const AUDIT_HEAD_TYP = 'svc-audit-head+jws';
/** What the control plane signs of a head that it exports. */
export const exportedHead = auditHead.extend({
  control_plane_id: id('cpl'),
  enterprise_id: id('ent'),
  /** When it was exported. */
  taken_at: time,
});
export type ExportedHead = z.output<typeof exportedHead>;

const signedHead = auditHead.extend({ signed: z.string() });

/** `GET /v1/audit-events/heads`. */
export const auditHeadsReply = z
  .object({
    control_plane_id: id('cpl'),
    /** The public key that every `signed` verifies with (RFC 8037). */
    control_plane_key: z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
    enterprise_id: id('ent'),
    taken_at: time,
    heads: z.array(signedHead),
  })
  .meta({ id: 'AuditHeads' });
export type AuditHeadsReply = z.infer<typeof auditHeadsReply>;

export const MAX_CHECKED_HEADS = 1_000;

/** `POST /v1/audit-events/heads/check`: how heads stand that were exported before. */
export const auditHeadsCheck = z
  .strictObject({ heads: z.array(auditHead).min(1).max(MAX_CHECKED_HEADS) })
  .meta({ id: 'AuditHeadsCheck' });
export const auditHeadsChecked = z
  .object({ ok: z.boolean(), heads: z.array(stoodHead) })
  .meta({ id: 'AuditHeadsChecked' });
export type AuditHeadsChecked = z.infer<typeof auditHeadsChecked>;

/** The ways by which the control plane sends heads out by itself. */
export const ANCHOR_WAYS = ['webhook', 'log'] as const;
export type AnchorWay = (typeof ANCHOR_WAYS)[number];

/** `GET /v1/audit-events/heads/anchors`: how the sending of the heads stands. */
export const auditAnchors = z
  .object({
    /** One for each way that is set up; empty where heads are sent nowhere. */
    anchors: z.array(
      z.object({
        way: z.enum(ANCHOR_WAYS),
        /** Hours from one sending to the next. */
        hours: z.number().int(),
        /** When heads were taken last; null: never. */
        sent_at: time.nullable(),
        /** Whether more than two intervals went by without: then nobody sends, or nobody takes them. */
        late: z.boolean(),
        /** Tries since then that failed, the last of them, and why: `upstream_unreachable`, `status_500`. */
        failures: z.number().int(),
        failed_at: time.nullable(),
        problem: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'AuditAnchors' });
export type AuditAnchors = z.infer<typeof auditAnchors>;
