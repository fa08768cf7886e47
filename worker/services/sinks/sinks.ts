import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { parseSyslogUrl } from '../../../shared/net/syslog_url.ts';
import {
  type AuditSinkInput,
  type AuditSinkRecord,
  type AuditSinksReply,
  type CreatedAuditSink,
  type DeadLetter,
  MAX_SINKS,
  type ReplayReply,
  ROTATION_HOURS,
  type RotatedSinkSecret,
} from '../../../shared/wire/audit_sinks.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { arrivalStart } from '../../store/audit/audit_events.ts';
import {
  type AuditSinkRow,
  changeSink,
  countDeadLetters,
  deleteSink,
  findSink,
  insertSink,
  listBehind,
  listDeadLetters,
  listSinks,
  replayDeadLetters,
  type SinkChange,
} from '../../store/audit/audit_sinks.ts';
import { findGroup } from '../../store/people/groups.ts';
import type { Statement } from '../../store/database.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { streamProblem, targetProblem } from '../../kernel/outbound.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { toFilter } from '../audit/audit_log.ts';
import { SINK_KIND_TABLE } from './sink_kinds.ts';
import { typesOf } from './sink_types.ts';
import { openTarget, sealTarget, type SinkTarget } from './sink_target.ts';
import { newSigningSecret } from './webhook_sink.ts';

/** Adds a receiver of the enterprise's events. Refuses with `admin_required`, `not_found` for its group, `invalid_input`, `too_many_sinks`. */
export async function addSink(
  context: ServiceContext,
  caller: Caller,
  input: AuditSinkInput,
): Promise<Result<CreatedAuditSink, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const problem = (await groupProblem(context, caller, input)) ?? inputProblem(context, caller, input);
  if (problem !== null) return err(problem);
  const { enterpriseId } = caller;
  const target = targetOf(input);
  const id = freshId(context, 'snk');
  const cursor = input.from === 'now' ? await arrivalStart(context.database, { enterpriseId }, 0) : 0;
  const row = {
    id,
    enterpriseId,
    kind: input.kind,
    name: input.name,
    cursor,
    createdAt: nowText(context),
    host: hostOf(input),
    types: input.types?.join(',') ?? null,
    sealed: await sealTarget(context.vault, { enterpriseId, id }, target),
  };
  const added = await commit(context, controlChain(caller), async () => {
    if ((await listSinks(context.database, enterpriseId)).length >= MAX_SINKS) return err(tooMany());
    const statements = insertSink(context.database, row, MAX_SINKS);
    return ok({ statements, events: [sinkEvent('created', caller, id)], value: null });
  });
  if (!added.ok) return added;
  const stored = await findSink(context.database, id);
  if (stored === null) return err(unknownSink(id));
  return ok({ ...(await toRecord(context, stored, new Set())), signing_secret: target.signing ?? null });
}

function targetOf(input: AuditSinkInput): SinkTarget {
  const header = 'header' in input && input.header !== undefined ? { header: input.header } : {};
  const signing = SINK_KIND_TABLE[input.kind].isSigned ? { signing: newSigningSecret() } : {};
  const aws = input.kind === 's3' ? { aws: awsOf(input) } : {};
  const plain = input.kind === 'syslog' && input.accepts_plain_close ? { acceptsPlainClose: true } : {};
  if (input.kind === 'mail') return { url: '', to: { role: input.role, groupId: input.group_id } };
  return { url: input.url, ...header, ...signing, ...aws, ...plain };
}

function awsOf({
  region,
  access_key_id: accessKeyId,
  secret_access_key: key,
}: Extract<AuditSinkInput, { kind: 's3' }>) {
  return { region, accessKeyId, secretAccessKey: key };
}

type UrlSinkInput = Exclude<AuditSinkInput, { kind: 'mail' }>;

function hostOf(input: AuditSinkInput): string {
  if (input.kind === 'mail') return 'mail';
  const { kind, url } = input;
  const receiver = kind === 'syslog' ? parseSyslogUrl(url) : null;
  return receiver?.ok === true ? receiver.value.host : new URL(url).hostname;
}

async function groupProblem(
  context: ServiceContext,
  { enterpriseId }: Caller,
  input: AuditSinkInput,
): Promise<ApiError | null> {
  if (input.kind !== 'mail' || input.group_id === undefined) return null;
  const { group_id: id } = input;
  const group = await findGroup(context.database, enterpriseId, { id, now: nowText(context) });
  return group === null ? apiError('not_found', `there is no group ${id}: list them with GET /v1/groups`) : null;
}

/** Mail goes to members only, and whoever runs the control plane chose the service that sends it. */
function mailProblem({ mail }: ServiceContext): ApiError | null {
  const message = 'cannot be mail: this control plane has no service that sends it (SVC_MAIL_URL)';
  return mail === null ? apiError('invalid_input', `kind ${message}`, { fields: [{ field: 'kind', message }] }) : null;
}

function urlProblem({ local, outbound }: ServiceContext, { kind, url }: UrlSinkInput): string | null {
  if (kind !== 'syslog') return targetProblem(new URL(url), local !== null)?.message ?? null;
  if (outbound.stream === undefined)
    return 'cannot be used: this control plane runs where no such connection can be made';
  const receiver = parseSyslogUrl(url);
  return receiver.ok ? (streamProblem(receiver.value, local !== null)?.message ?? null) : receiver.error;
}

function inputProblem(context: ServiceContext, caller: Caller, input: AuditSinkInput): ApiError | null {
  const { types } = input;
  if (input.kind === 'mail') return mailProblem(context);
  const message = urlProblem(context, input);
  if (message !== null) return apiError('invalid_input', `url: ${message}`, { fields: [{ field: 'url', message }] });
  const filter = toFilter(caller, types === undefined ? {} : { type: types.join(',') });
  return filter.ok ? null : apiError('invalid_input', filter.error.message.replace(/^type/, 'types'));
}

/** The sinks of the caller's enterprise. Refuses with `admin_required`. */
export async function describeSinks(
  context: ServiceContext,
  caller: Caller,
): Promise<Result<AuditSinksReply, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const rows = await listSinks(context.database, caller.enterpriseId);
  const behind = await listBehind(context.database, caller.enterpriseId);
  return ok({ items: await Promise.all(rows.map((row) => toRecord(context, row, behind))) });
}

/** Ends a sink, with its dead letters. Refuses with `admin_required`, `not_found`. */
export function removeSink(context: ServiceContext, caller: Caller, id: string): Promise<Result<null, ApiError>> {
  return changeOwn(context, caller, id, async () => ({
    statements: deleteSink(context.database, id),
    event: sinkEvent('deleted', caller, id),
    value: null,
  }));
}

/** Makes a new signing secret. Refuses with `admin_required`, `not_found`, `invalid_input` if the kind has none. */
export async function rotateSinkSecret(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<RotatedSinkSecret, ApiError>> {
  const own = await findOwn(context, caller, id);
  if (!own.ok) return own;
  if (!SINK_KIND_TABLE[own.value.kind].isSigned) return err(noSecret(own.value));
  return changeOwn(context, caller, id, async (row) => {
    const target = await openTarget(context.vault, row);
    if (target?.signing === undefined)
      throw Object.assign(new Error('a sink cannot be opened'), { code: 'vault_entry_damaged' });
    const signing = newSigningSecret();
    const untilMs = context.clock.now() + ROTATION_HOURS * 3_600_000;
    const anew = { ...target, signing, previous: { signing: target.signing, untilMs } };
    const sealed = await sealTarget(context.vault, row, anew);
    return {
      statements: changeSink(context.database, row, { sealed }),
      event: sinkEvent('secret_rotated', caller, id),
      value: { signing_secret: signing, previous_until: new Date(untilMs).toISOString() },
    };
  });
}

const TRY_NOW: SinkChange = { disabledAt: null, disabledReason: null, failures: 0, failingSince: null, nextTryAt: '' };

/** Goes on where a sink stopped, at once. Refuses with `admin_required`, `not_found`. */
export function enableSink(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<AuditSinkRecord, ApiError>> {
  return changeOwn(context, caller, id, async (row) => ({
    statements: changeSink(context.database, row, TRY_NOW),
    event: sinkEvent('enabled', caller, id),
    value: await toRecord(context, { ...row, disabledAt: null, disabledReason: null, failures: 0 }, new Set([id])),
  }));
}

/** Has every dead letter of a sink sent again. Refuses with `admin_required`, `not_found`. */
export function replaySink(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ReplayReply, ApiError>> {
  return changeOwn(context, caller, id, async () => ({
    statements: [replayDeadLetters(context.database, id)],
    event: sinkEvent('replayed', caller, id),
    value: { waiting: await countDeadLetters(context.database, id) },
  }));
}

/** The events that a sink's receiver refused, oldest first. Refuses with `admin_required`, `not_found`, `invalid_cursor`. */
export async function listDeadLetterPage(
  context: ServiceContext,
  caller: Caller,
  id: string,
  query: PageQuery,
): Promise<Result<Page<DeadLetter>, ApiError>> {
  const own = await findOwn(context, caller, id);
  if (!own.ok) return own;
  return readPage(query, {
    position: z.number().int(),
    read: ({ after, limit }) => listDeadLetters(context.database, id, { after: after ?? 0, limit }),
    toItem: ({ eventId, problem, failedAt, attempts, replay, recipients }) => ({
      event_id: eventId,
      problem,
      failed_at: failedAt,
      attempts,
      waiting: replay === 1,
      recipients: recipients?.split(',') ?? null,
    }),
    positionOf: ({ position }) => position,
  });
}

/** A sink of the caller's enterprise, for an admin. */
async function findOwn(
  { database }: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<AuditSinkRow, ApiError>> {
  const row = await findSink(database, id);
  if (row === null || row.enterpriseId !== caller.enterpriseId) return err(unknownSink(id));
  return mayActAs(caller, 'admin') ? ok(row) : err(adminsOnly());
}

interface OwnChange<T> {
  readonly statements: readonly Statement[];
  readonly event: AuditDraft;
  readonly value: T;
}

function changeOwn<T>(
  context: ServiceContext,
  caller: Caller,
  id: string,
  decide: (row: AuditSinkRow) => Promise<OwnChange<T>>,
): Promise<Result<T, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const own = await findOwn(context, caller, id);
    if (!own.ok) return own;
    const { statements, event, value } = await decide(own.value);
    return ok({ statements, events: [event], value });
  });
}

type SinkEvent = 'created' | 'deleted' | 'secret_rotated' | 'enabled' | 'replayed';

function sinkEvent(what: SinkEvent, { userId }: Caller, id: string): AuditDraft {
  return { type: `control.audit_sink.${what}`, actor: userId, data: { 'svc.control.resource': id } };
}

async function toRecord(
  { database }: ServiceContext,
  row: AuditSinkRow,
  behind: ReadonlySet<string>,
): Promise<AuditSinkRecord> {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    host: row.host,
    types: typesOf(row),
    created_at: row.createdAt,
    delivered_at: row.deliveredAt,
    failures: row.failures,
    failing_since: row.failingSince,
    next_try_at: row.failures === 0 || row.nextTryAt === '' ? null : row.nextTryAt,
    problem: row.problem,
    behind: behind.has(row.id),
    dead_letters: await countDeadLetters(database, row.id),
    rejected: row.rejected,
    disabled_at: row.disabledAt,
    disabled_reason: row.disabledReason,
  };
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'sinks of audit events need the role admin or owner: ask an admin');
}

function tooMany(): ApiError {
  return apiError('too_many_sinks', `an enterprise has at most ${MAX_SINKS} sinks: remove one first`);
}

function unknownSink(id: string): ApiError {
  return apiError('not_found', `there is no audit sink ${id}: list them with GET /v1/audit-sinks`);
}

function noSecret({ id, kind }: AuditSinkRow): ApiError {
  return apiError(
    'invalid_input',
    `the sink ${id} is of the kind ${kind}, whose deliveries are not signed: remove it and add it anew to change its header`,
  );
}
