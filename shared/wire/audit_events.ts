import { z } from 'zod';
import {
  AUDIT_EVENT_TYPES,
  CHAIN_BREAKS,
  MCP_OUTCOMES,
  PROXY_SOURCES,
  type AuditEvent,
  type AuditEventData,
  type AuditEventType,
} from '../model/audit_event.ts';
import { auditHead } from './audit_heads.ts';
import { id, page, pageQuery, time } from './primitives.ts';

/** The longest text in an event is a request's path, and a head has at most 64 KiB. */
const text = storableText(70_000);
const short = storableText(1_024);

/** Text that a database returns unchanged: a changed event would break its hash chain. */
function storableText(maxCharacters: number) {
  return z
    .string()
    .max(maxCharacters)
    .refine((value) => !/[\0\p{Cs}]/u.test(value), 'contains a NUL or half of a surrogate pair');
}

/**
 * An event's `data`: a closed set of keys, none of which can contain a secret, a header, a body or a query string. A key of
 * {@link AuditEventData} without a schema here does not compile.
 */
export const auditEventData = z.strictObject({
  'svc.proxy.source': z.enum(PROXY_SOURCES).optional(),
  'svc.proxy.mediation': z.enum(['connector', 'binding', 'passthrough', 'refused']).optional(),
  'svc.proxy.method': short.optional(),
  'svc.proxy.upstream.host': short.optional(),
  'svc.proxy.upstream.path': text.refine((path) => !path.includes('?'), 'contains a query string').optional(),
  'svc.proxy.upstream.status': z.number().int().min(100).max(999).optional(),
  'svc.proxy.reason': short.optional(),
  'svc.proxy.count': z.number().int().min(1).optional(),
  'svc.proxy.bytes.sent': z.number().int().min(0).optional(),
  'svc.proxy.bytes.received': z.number().int().min(0).optional(),
  'svc.proxy.binding.host': short.optional(),
  'svc.proxy.binding.scheme': short.optional(),
  'svc.proxy.emit': short.optional(),
  'svc.proxy.binding.keep_cookies': z.boolean().optional(),
  'svc.proxy.reply.withheld': z.array(short).max(16).optional(),
  'svc.proxy.reply.may_hold': short.optional(),
  'svc.proxy.reply.kept': z.array(short).max(16).optional(),
  'svc.proxy.client_certificate.ref': short.optional(),
  'svc.proxy.client_certificate.version': short.optional(),
  'svc.proxy.credential_ref': short.optional(),
  'svc.borrow.program': short.optional(),
  'svc.borrow.until': short.optional(),
  'svc.sandbox.mode': short.optional(),
  'svc.sandbox.image': short.optional(),
  'svc.step.id': short.optional(),
  'svc.reach.effect': short.optional(),
  'svc.reach.hosts': z.array(short).max(1_000).optional(),
  'svc.reach.enforced': z.boolean().optional(),
  'svc.reach.egress': z.enum(['open', 'sealed']).optional(),
  'svc.connector.fqn': short.optional(),
  'svc.connector.version': short.optional(),
  'svc.connector.operation': short.optional(),
  'svc.connector.tool': short.optional(),
  'svc.connector.credential_ref': short.optional(),
  'svc.connector.fields': z.record(short, z.union([short, z.number(), z.boolean()])).optional(),
  'svc.approval.id': short.optional(),
  'svc.approval.decision': z.enum(['approve', 'deny']).optional(),
  'svc.approval.rules': z.array(short).max(1_000).optional(),
  'svc.approval.missing': z.number().int().optional(),
  'svc.approval.approvers': z.array(short).max(1_000).optional(),
  'svc.approval.rule': z.string().max(2_000).optional(),
  'svc.approval.grant': short.optional(),
  'svc.approval.grant_ends': short.optional(),
  'svc.approval.grant_times': z.number().int().optional(),
  'svc.approval.grant_use': z.number().int().optional(),
  'svc.control.resource': short.optional(),
  'svc.control.credential_ref': short.optional(),
  'svc.control.host': short.optional(),
  'svc.control.owner': short.optional(),
  'svc.control.user': short.optional(),
  'svc.control.group': short.optional(),
  'svc.control.shared': short.optional(),
  'svc.control.shared_by': short.optional(),
  'svc.control.source': short.optional(),
  'svc.control.minted_for': short.optional(),
  'svc.control.until': short.optional(),
  'svc.control.provider': short.optional(),
  'svc.control.issuer': short.optional(),
  'svc.control.subject': short.optional(),
  'svc.control.reason': short.optional(),
  'svc.control.service_account': short.optional(),
  'svc.control.scim_token': short.optional(),
  'svc.control.changed': short.optional(),
  'svc.audit.before': time.optional(),
  'svc.audit.removed': z.number().int().min(0).optional(),
  'svc.audit.writer': short.optional(),
  'svc.audit.found_sequence': z.number().int().min(0).optional(),
  'svc.audit.found_hash': short.optional(),
  'svc.audit.remembered_sequence': z.number().int().min(0).optional(),
  'svc.audit.remembered_hash': short.optional(),
  'svc.mcp.server': short.optional(),
  'svc.mcp.server_id': short.optional(),
  'svc.mcp.registry_id': short.optional(),
  'svc.mcp.version': short.optional(),
  'svc.mcp.unchecked': z.boolean().optional(),
  'svc.mcp.tool': short.optional(),
  'svc.mcp.outcome': z.enum(MCP_OUTCOMES).optional(),
  'svc.mcp.duration_ms': z.number().int().min(0).optional(),
  'svc.mcp.reason': short.optional(),
  'svc.mcp.rules': short.optional(),
  'svc.mcp.client': short.optional(),
} satisfies { readonly [Key in keyof AuditEventData]-?: z.ZodType });

/** An audit event on the wire: {@link AuditEvent}. */
export const auditEvent = z
  .strictObject({
    id: id('evt'),
    type: z.enum(AUDIT_EVENT_TYPES),
    time,
    sidecar_id: id('sdc').nullable(),
    session_id: short.nullable(),
    actor: short.nullable(),
    data: auditEventData,
  })
  .meta({ id: 'AuditEvent' });

/** The types that a sidecar may send; only the control plane writes its own types. */
export function isSidecarEventType(type: AuditEventType): boolean {
  return !type.startsWith('control.') && !type.startsWith('connector.approval.');
}

/** An event with its position in its writer's hash chain. */
const storedAuditEvent = auditEvent
  .extend({
    /** The writer: a sidecar's id, or for the control plane the enterprise's. Each has its own chain. */
    writer: z.string(),
    sequence: z.number().int().min(1),
    /** SHA-256, in hex; 64 zeros for the first event of a chain. */
    previous_hash: z.string(),
    hash: z.string(),
    received_at: time,
  })
  .meta({ id: 'StoredAuditEvent' });
export type StoredAuditEvent = AuditEvent & {
  readonly writer: string;
  readonly sequence: number;
  readonly previous_hash: string;
  readonly hash: string;
  readonly received_at: string;
};

/** The filters of list and stream. */
const auditFilter = {
  /** An event type, or a prefix that ends in `.`: `sandbox.proxy.`. Comma-separated for several. */
  type: z.string().max(1_000).optional(),
  session: short.optional(),
  /** The connector's fully qualified name. */
  connector: short.optional(),
  /** The upstream host. `*` stands for any characters: `*github*`. */
  host: short.refine((host) => host.split('*').length <= 5, 'has more than four "*": use at most four').optional(),
  method: z
    .string()
    .regex(/^[A-Za-z]{1,20}$/, 'is not an HTTP method, such as GET')
    .optional(),
  /** The upstream's status: one, or a class of them. */
  status: z
    .string()
    .regex(/^(?:[1-9]\d\d|[1-5][Xx]{2})$/, 'is not an HTTP status: use one such as 404, or a class such as 4xx')
    .optional(),
  /** A part of the path, in any letter case. */
  path: short.optional(),
  /** The person who acted, or whose machine reported the event. */
  person: id('usr').optional(),
  /** Text anywhere in the event, in any letter case. */
  q: z.string().max(200).optional(),
};

/**
 * `GET /v1/audit-events`: newest first. `since` is inclusive, `until` exclusive. Without `since`, filters that read each event (a
 * part of the host, `method`, `status`, `path`, `person`, `q`) look at the last week.
 */
export const auditEventsQuery = z.strictObject({
  ...pageQuery,
  ...auditFilter,
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
});
export type AuditEventsQuery = z.output<typeof auditEventsQuery>;
export const auditEventsPage = page(storedAuditEvent).meta({ id: 'AuditEventsPage' });

/** An event as a client reads it: a newer control plane may have types of events and keys that the client does not know. */
export const readAuditEvent = storedAuditEvent.extend({
  type: z.string().max(100),
  data: z.looseObject(auditEventData.shape),
});
export const readAuditEventsPage = page(readAuditEvent);

/**
 * `GET /v1/audit-events/stream`: server-sent events, `event: audit`, `data:` a {@link StoredAuditEvent}, `id:` a position to
 * resume after with `Last-Event-ID`. It starts with events that arrive after the call; `backlog` adds that many earlier
 * ones. The stream ends by itself now and then; the client resumes with its last id.
 */
export const auditStreamQuery = z.strictObject({
  ...auditFilter,
  backlog: z.coerce.number().int().min(0).max(1_000).default(0),
});
export type AuditStreamQuery = z.output<typeof auditStreamQuery>;

/** `GET /v1/audit-events/chains/{id}`: the events of one chain, by its writer, oldest first. */
export const auditChainParams = z.strictObject({ id: auditHead.shape.writer });
export const auditChainQuery = z.strictObject({
  limit: pageQuery.limit,
  /** Only events after this number. */
  after: z.coerce.number().int().min(0).default(0),
});
export type AuditChainQuery = z.output<typeof auditChainQuery>;
export const auditChainPage = z.object({ items: z.array(storedAuditEvent) }).meta({ id: 'AuditChainPage' });

/** Where a chain is broken. */
const brokenChain = z.object({
  writer: z.string(),
  sequence: z.number().int(),
  event_id: z.string().nullable(),
  reason: z.enum(CHAIN_BREAKS),
});
export type BrokenChain = z.infer<typeof brokenChain>;

/** A chain as stored: the events after the removed ones, up to the head. */
const verifiedChain = z.object({
  writer: z.string(),
  /** The number of stored events. */
  events: z.number().int(),
  /** The number of events removed from its start; the first stored event has the next sequence. */
  removed: z.number().int(),
  /** The hash of the last removed event; 64 zeros if none was removed. */
  beginning_hash: z.string(),
  /** When the first stored event was received; null if there is none. */
  begins_at: time.nullable(),
  head_hash: z.string(),
});

/** `GET /v1/audit-events/verify`: every chain, checked from its start. */
export const auditVerification = z
  .object({
    ok: z.boolean(),
    events: z.number().int(),
    removed: z.number().int(),
    /** The number of chains in the sealed set of writers: the control plane's own, and one per sidecar. */
    writers: z.number().int().optional(),
    chains: z.array(verifiedChain),
    first_break: brokenChain.nullable(),
  })
  .meta({ id: 'AuditVerification' });
export type AuditVerification = z.infer<typeof auditVerification>;

/** `POST /v1/audit-events/prune`: removes events received before a time that is at least a day ago. */
export const auditPruneInput = z
  .strictObject({
    before: z.iso.datetime({ offset: true }),
    /** Dry run: only counts. */
    dry_run: z.boolean().default(false),
  })
  .meta({ id: 'AuditPruneInput' });
export type AuditPruneInput = z.output<typeof auditPruneInput>;

export const auditPruneReply = z
  .object({
    before: time,
    dry_run: z.boolean(),
    /** How many events this call removed, or would have removed. */
    removed: z.number().int(),
    /** False if there are more: repeat the same call. */
    finished: z.boolean(),
    /** Chains that do not verify at the cut: nothing of them is removed. */
    broken: z.array(brokenChain),
  })
  .meta({ id: 'AuditPruneReply' });
export type AuditPruneReply = z.infer<typeof auditPruneReply>;
