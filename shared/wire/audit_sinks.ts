import { z } from 'zod';
import { ROLES } from '../model/role.ts';
import { accessKeyIdText, regionText } from './host_binding_fields.ts';
import { id, line, page, pageQuery, time } from './primitives.ts';
import { secretValue } from './secrets.ts';
import { parseSyslogUrl } from '../net/syslog_url.ts';

/**
 * How events are sent. `webhook`: Standard Webhooks. `otlp`, `otlp_metrics`, `otlp_traces`: OpenTelemetry logs, metrics and traces as JSON over HTTP. `slack`: messages about
 * requests that wait for an approval, to an incoming webhook as Slack has it. `mail`: the same messages to members. `syslog`: RFC 5424 over TLS (RFC 5425). `s3`:
 * objects of JSON lines in a bucket.
 */
export const SINK_KINDS = ['webhook', 'otlp', 'otlp_metrics', 'otlp_traces', 'slack', 'mail', 'syslog', 's3'] as const;
export type SinkKindName = (typeof SINK_KINDS)[number];

/**
 * Why nothing is sent any more. `failing`: every try of three days failed; `gone`: the receiver answered 410;
 * `dead_letters`: it refused too many events.
 */
export const SINK_STOPS = ['failing', 'gone', 'dead_letters'] as const;
export type SinkStop = (typeof SINK_STOPS)[number];

/**
 * The only events of a sink that tells people: somebody begins to wait for an approval, waits for it again, or one person has
 * approved where more are needed.
 */
export const ALERT_TYPES = [
  'connector.approval.requested',
  'connector.approval.waits_again',
  'connector.approval.partly_approved',
] as const;

/** How many sinks an enterprise may have. */
export const MAX_SINKS = 10;
/** With so many events refused, a sink is disabled: the receiver does not understand them. */
export const MAX_DEAD_LETTERS = 100;
/** How long the signing secret before a rotation still signs too. */
export const ROTATION_HOURS = 24;

/** Headers that belong to the call, not to the sink. */
const FRAMING = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'accept-encoding',
]);

const url = z.url({ protocol: /^https?$/ }).max(2_000);
const common = {
  name: line(100).trim().min(1, 'is empty: say what receives the events, such as siem'),
  url,
  /** Event types, or prefixes that end in `.`; default: all events. */
  types: z.array(z.string().max(100)).min(1).max(20).optional(),
  /** The first event: the next one, or the oldest that is stored. */
  from: z.enum(['now', 'beginning']).default('now'),
};

/** A bucket, and a folder in it, in the form of the path or of the host. */
const bucketUrl = url.superRefine((text, context) => {
  const parsed = URL.canParse(text) ? new URL(text) : null;
  if (parsed === null || (parsed.search === '' && parsed.hash === '' && /^\/[\w./-]{0,900}$/.test(parsed.pathname)))
    return;
  const message = 'may have letters, digits and _./- in its path, and no query: name the bucket and a folder in it';
  context.addIssue({ code: 'custom', message });
});

const syslogUrl = z
  .string()
  .max(300)
  .superRefine((text, context) => {
    const parsed = parseSyslogUrl(text);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error });
  });

/** All of them are sent, also if one is named. */
const alertTypes = z
  .array(z.enum(ALERT_TYPES))
  .min(1)
  .max(ALERT_TYPES.length)
  .default([...ALERT_TYPES]);

/** `POST /v1/audit-sinks`. */
export const auditSinkInput = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('webhook'), ...common }),
    z.strictObject({
      kind: z.literal('slack'),
      ...common,
      types: alertTypes,
      from: z.literal('now').default('now'),
    }),
    z
      .strictObject({
        kind: z.literal('mail'),
        name: common.name,
        /** Who gets it: the members with this role or one with more rights. */
        role: z.enum(ROLES).optional(),
        /** Or those in this group. */
        group_id: id('grp').optional(),
        types: alertTypes,
        from: z.literal('now').default('now'),
      })
      .refine(({ role, group_id: group }) => (role === undefined) !== (group === undefined), {
        path: ['role'],
        message: 'or a group has to be given, and not both',
      }),
    z.strictObject({
      kind: z.enum(['otlp', 'otlp_metrics', 'otlp_traces']),
      ...common,
      /** A header that authenticates, such as `authorization` with `Bearer ...`. No reply shows its value. */
      header: z
        .strictObject({
          name: z
            .string()
            .regex(/^[a-z0-9-]{1,64}$/, 'must be lower-case letters, digits and -, such as authorization')
            .refine((name) => !FRAMING.has(name), 'is a header that svc writes itself: use authorization or x-api-key'),
          value: z
            .string()
            .min(1)
            .max(8_192)
            .regex(/^[\x20-\x7E]+$/, 'must be printable ASCII'),
        })
        .optional(),
    }),
    z.strictObject({
      kind: z.literal('syslog'),
      ...common,
      url: syslogUrl,
      /** Whether a batch counts if the receiver closes the connection without a `close_notify` of TLS. */
      accepts_plain_close: z.boolean().default(false),
    }),
    z.strictObject({
      kind: z.literal('s3'),
      ...common,
      url: bucketUrl,
      region: regionText,
      access_key_id: accessKeyIdText,
      /** No reply shows it. */
      secret_access_key: secretValue,
    }),
  ])
  .meta({ id: 'CreateAuditSink' });
export type AuditSinkInput = z.infer<typeof auditSinkInput>;

const sinkFields = {
  id: id('snk'),
  kind: z.enum(SINK_KINDS),
  name: z.string(),
  /** The receiver's host; `mail` for mail. No reply contains the URL, because it may contain a password. */
  host: z.string(),
  types: z.array(z.string()).nullable(),
  created_at: time,
  /** When the receiver last accepted events. */
  delivered_at: time.nullable(),
  /** How many tries failed since then, and since when. */
  failures: z.number().int(),
  failing_since: time.nullable(),
  next_try_at: time.nullable(),
  problem: z.string().nullable(),
  /** Whether events wait to be sent. */
  behind: z.boolean(),
  dead_letters: z.number().int(),
  /** Events that the receiver left out of a batch that it accepted. */
  rejected: z.number().int(),
  disabled_at: time.nullable(),
  disabled_reason: z.enum(SINK_STOPS).nullable(),
};

/** A receiver of the enterprise's audit events. */
export const auditSinkRecord = z.object(sinkFields).meta({ id: 'AuditSink' });
export type AuditSinkRecord = z.infer<typeof auditSinkRecord>;

/** 201: the only reply with the signing secret; null for a kind without one. */
export const createdAuditSink = z
  .object({ ...sinkFields, signing_secret: z.string().nullable() })
  .meta({ id: 'CreatedAuditSink' });
export type CreatedAuditSink = z.infer<typeof createdAuditSink>;

export const auditSinkParams = z.strictObject({ id: id('snk') });
export const auditSinksReply = z.object({ items: z.array(auditSinkRecord) }).meta({ id: 'AuditSinks' });
export type AuditSinksReply = z.infer<typeof auditSinksReply>;

/** The only reply with the new secret. Until `previous_until` deliveries have a signature by the secret before, too. */
export const rotatedSinkSecret = z
  .object({ signing_secret: z.string(), previous_until: time })
  .meta({ id: 'RotatedAuditSinkSecret' });
export type RotatedSinkSecret = z.infer<typeof rotatedSinkSecret>;

/** An event that the receiver refused. */
export const deadLetter = z
  .object({
    event_id: z.string(),
    problem: z.string(),
    failed_at: time,
    attempts: z.number().int(),
    /** It is sent again, after what is new. */
    waiting: z.boolean(),
    /** Of mail: the members who did not get it. */
    recipients: z.array(z.string()).nullable(),
  })
  .meta({ id: 'AuditDeadLetter' });
export type DeadLetter = z.infer<typeof deadLetter>;
export const deadLettersQuery = z.strictObject({ ...pageQuery });
export const deadLettersPage = page(deadLetter).meta({ id: 'AuditDeadLetters' });

export const replayReply = z.object({ waiting: z.number().int() }).meta({ id: 'AuditReplay' });
export type ReplayReply = z.infer<typeof replayReply>;
