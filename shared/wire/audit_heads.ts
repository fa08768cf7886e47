import { z } from 'zod';
import { id, time } from './primitives.ts';

/** The end of a chain of the audit log at some time. */
export const auditHead = z.strictObject({
  writer: z.string().regex(/^(?:ent|sdc)_[0-9a-z]{1,64}$/, 'is no writer: an id of a sidecar or an enterprise'),
  sequence: z.number().int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'is no hash: 64 hex digits'),
});
export type AuditHead = z.output<typeof auditHead>;

/**
 * How a remembered head relates to the stored chain. `kept`: the chain contains it; `pruned`: the events up to it were
 * removed, with a sealed note; `behind`: the chain ends before it; `differs`: another event is in its place; `missing`:
 * there is no such chain.
 */
export const HEAD_STANDINGS = ['kept', 'pruned', 'behind', 'differs', 'missing'] as const;
export type HeadStanding = (typeof HEAD_STANDINGS)[number];

/** Whether a chain still contains a head, or pruned it properly. */
export function isGoodStanding(standing: HeadStanding): boolean {
  return standing === 'kept' || standing === 'pruned';
}

const stoodHead = auditHead.extend({ standing: z.enum(HEAD_STANDINGS) });
export type StoodHead = z.output<typeof stoodHead>;

/** The type of the JWS that answers `GET /v1/sidecar/audit-heads`; see `channel.ts`. */
export const AUDIT_HEADS_TYP = 'svc-audit-heads+jws';
export const MAX_KNOWN_HEADS = 16;

/** `GET /v1/sidecar/audit-heads?known=WRITER.SEQUENCE.HASH,...`. */
export const auditHeadsQuery = z.strictObject({ known: z.string().max(4_096).default('') });

export function writeKnownHeads(heads: readonly AuditHead[]): string {
  return heads.map(({ writer, sequence, hash }) => `${writer}.${sequence}.${hash}`).join(',');
}

/** Null for text in another form than {@link writeKnownHeads} writes. */
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

/** The payload of the JWS: the ends of the chains that this sidecar witnesses, and the standing of the heads that it remembers. */
export const auditHeadsPayload = z.object({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  /** The sidecar's own chain, and the control plane's chain of the enterprise. */
  heads: z.array(auditHead),
  known: z.array(stoodHead),
});
export type AuditHeadsPayload = z.output<typeof auditHeadsPayload>;

/** For an events reply: where the sidecar's chain ended before the call and after it. */
export const acknowledgedHead = auditHead.extend({ previous: auditHead.omit({ writer: true }) });
export type AcknowledgedHead = z.output<typeof acknowledgedHead>;

/** The type of an exported head's JWS. */
export const AUDIT_HEAD_TYP = 'svc-audit-head+jws';
/** The signed content of an exported head. */
export const exportedHead = auditHead.extend({
  control_plane_id: id('cpl'),
  enterprise_id: id('ent'),
  /** When it was exported. */
  taken_at: time,
});
export type ExportedHead = z.output<typeof exportedHead>;

const signedHead = auditHead.extend({ signed: z.string() });

/** An Ed25519 public key (RFC 8037). */
const verifyingKey = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() });

/** `GET /v1/audit-events/heads`. */
export const auditHeadsReply = z
  .object({
    control_plane_id: id('cpl'),
    /** The public key that verifies every `signed` (RFC 8037). */
    control_plane_key: verifyingKey,
    enterprise_id: id('ent'),
    taken_at: time,
    heads: z.array(signedHead),
  })
  .meta({ id: 'AuditHeads' });
export type AuditHeadsReply = z.infer<typeof auditHeadsReply>;

/** The type of a statement's JWS. */
export const AUDIT_STATEMENT_TYP = 'svc-audit-statement+jws';

/** A chain as it is at some time: the events after its beginning, up to its head. */
const statedChain = auditHead.extend({
  /** The last removed event; number 0 and 64 zeros if none was removed. */
  beginning: auditHead.omit({ writer: true }),
});

/** The signed content of a statement: every chain of an enterprise. */
export const auditStatement = z.object({
  control_plane_id: id('cpl'),
  enterprise_id: id('ent'),
  taken_at: time,
  chains: z.array(statedChain),
});
export type AuditStatement = z.output<typeof auditStatement>;

/** `GET /v1/audit-events/statement`. */
export const auditStatementReply = z
  .object({
    /** The public key that verifies `signed` (RFC 8037). */
    control_plane_key: verifyingKey,
    /** A JWS (RFC 7515, compact) of {@link auditStatement}. */
    signed: z.string(),
  })
  .meta({ id: 'AuditStatement' });
export type AuditStatementReply = z.infer<typeof auditStatementReply>;

export const MAX_CHECKED_HEADS = 1_000;

/** `POST /v1/audit-events/heads/check`: the standing of heads that were exported earlier. */
export const auditHeadsCheck = z
  .strictObject({ heads: z.array(auditHead).min(1).max(MAX_CHECKED_HEADS) })
  .meta({ id: 'AuditHeadsCheck' });
export const auditHeadsChecked = z
  .object({ ok: z.boolean(), heads: z.array(stoodHead) })
  .meta({ id: 'AuditHeadsChecked' });
export type AuditHeadsChecked = z.infer<typeof auditHeadsChecked>;

/** The ways in which the control plane sends heads by itself. */
export const ANCHOR_WAYS = ['webhook', 'log'] as const;
export type AnchorWay = (typeof ANCHOR_WAYS)[number];

/** `GET /v1/audit-events/heads/anchors`: the status of sending the heads. */
export const auditAnchors = z
  .object({
    /** One per configured way; empty if heads are sent nowhere. */
    anchors: z.array(
      z.object({
        way: z.enum(ANCHOR_WAYS),
        /** Hours from one sending to the next. */
        hours: z.number().int(),
        /** When heads were last accepted; null: never. */
        sent_at: time.nullable(),
        /** Whether more than two intervals passed without success: then sending or receiving is broken. */
        late: z.boolean(),
        /** Failed attempts since then, the time of the last one, and its reason: `upstream_unreachable`, `status_500`. */
        failures: z.number().int(),
        failed_at: time.nullable(),
        problem: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'AuditAnchors' });
export type AuditAnchors = z.infer<typeof auditAnchors>;
