import { ok } from '../../../shared/model/result.ts';
import { auditEventsQuery, type StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { fieldProblems } from '../../../shared/wire/errors.ts';
import { z } from 'zod';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import { exportEvents } from '../../services/audit/audit_file.ts';
import { exportProof } from '../../services/audit/audit_proof.ts';
import { utcTime } from '../../pages/components/form_field.ts';
import { AUDIT_FILTERS, auditPage, hostFilter, verificationPage, viewQuery } from '../../pages/audit/audit.ts';
import { auditEventPage } from '../../pages/audit/audit_event.ts';
import type { FormState } from '../../pages/components/form_field.ts';
import { getAuditEvent, listAuditPage, readsEachEvent } from '../../services/audit/audit_log.ts';
import { forgetView, listViews, saveView } from '../../services/audit/saved_views.ts';
import { describeNames, idsIn, listPeople } from '../../services/audit/names.ts';
import { describeSession } from '../../services/audit/session_details.ts';
import { sessionPage } from '../../pages/audit/session.ts';
import { verifyAudit } from '../../services/audit/audit_verification.ts';
import type { Caller } from '../../kernel/caller.ts';
import { eventStanding } from '../../services/audit/event_standing.ts';
import { countRequests } from '../../services/audit/request_counts.ts';
import type { AppContext } from '../http/app_env.ts';
import { dropEmpty, type Fields, forChange, forReader, problem, redirectDone, toRefusedForm } from './console.ts';
import { consolePage } from './pages.ts';
import { overviewPage } from '../../pages/audit/overview.ts';
import { describeOverview } from '../../services/audit/overview.ts';
import { sinksPage } from '../../pages/audit/sinks.ts';
import { describeSinks } from '../../services/sinks/sinks.ts';
import { reportPage } from '../../pages/audit/report.ts';
import { reportSealability } from '../../services/audit/sealability_report.ts';

const SHOWN = 50;

/** The filters of the page as the API's query. */
function parseFilters(values: Fields, more: { readonly limit: number; readonly cursor?: string }) {
  const { host, since, until, ...others } = dropEmpty(values);
  return auditEventsQuery.safeParse({
    ...others,
    ...(host !== undefined && { host: hostFilter(host) }),
    ...(since !== undefined && { since: utcTime(since) }),
    ...(until !== undefined && { until: utcTime(until) }),
    ...more,
  });
}

/** `GET /audit`: the events that match the query. */
export const getAudit = forReader(async (c, caller) => {
  const values = queryOf(c, AUDIT_FILTERS);
  const cursor = c.req.query('cursor');
  const parsed = parseFilters(values, { ...(cursor !== undefined && { cursor }), limit: SHOWN });
  if (!parsed.success) return badFilter(c, caller, { values, problems: fieldProblems(parsed.error), refusal: null });
  const context = c.get('context');
  const events = await listAuditPage(context, caller, parsed.data);
  if (!events.ok) return badFilter(c, caller, toRefusedForm(values, events.error));
  const { limit: _, cursor: __, type: ___, ...filters } = parsed.data;
  const counts = await countRequests(context, caller, filters);
  const form = { values, problems: [], refusal: null };
  const nowMs = context.clock.now();
  const readsAll = readsEachEvent(parsed.data);
  const { items } = events.value;
  const nameOf = await describeNames(context, caller, [...items.flatMap(idsIn), values['person'] ?? ''], items);
  const found = { events: events.value, counts: counts.ok ? counts.value : null, cursor, readsAll };
  const view = {
    form,
    ...found,
    ...(await describeChoices(c, caller, items)),
    done: c.req.query('done'),
    nowMs,
    nameOf,
  };
  return consolePage(c, caller, auditPage(view));
});

/** The person's views, and the people whose events can be chosen; on one's own machine there is nobody else. */
async function describeChoices(c: AppContext, caller: Caller, events: readonly StoredAuditEvent[]) {
  const context = c.get('context');
  const views = await listViews(context, caller);
  const people = context.local === null ? await listPeople(context, caller, events) : [];
  return { views, people: people.map(({ id, name }) => ({ value: id, title: name })) };
}

async function badFilter(c: AppContext, caller: Caller, form: FormState): Promise<Response> {
  const none = { events: null, counts: null, cursor: undefined, readsAll: false, nameOf: () => null };
  const choices = await describeChoices(c, caller, []);
  const view = { form, ...none, ...choices, done: undefined, nowMs: c.get('context').clock.now() };
  return consolePage(c, caller, auditPage(view), 400);
}

/** `POST /audit/views`: keeps the filters as a view. */
export const submitView = forChange(async (c, caller, fields) => {
  const values = Object.fromEntries(AUDIT_FILTERS.map((name) => [name, fields[name]?.trim() ?? '']));
  const parsed = parseFilters(values, { limit: SHOWN });
  if (!parsed.success) return badFilter(c, caller, { values, problems: fieldProblems(parsed.error), refusal: null });
  const query = viewQuery(values);
  const saved = await saveView(c.get('context'), caller, { name: fields['name'] ?? '', query });
  return saved.ok ? c.redirect(`/audit?${query}&done=view_saved`, 303) : problem(c, caller, saved.error);
});

/** `POST /audit/views/forget` */
export const submitForgottenView = forChange(async (c, caller, { name = '' }) => {
  await forgetView(c.get('context'), caller, name);
  return redirectDone(c, '/audit', 'view_forgotten');
});

const formatQuery = z.enum(['csv', 'jsonl']);
const JSON_LINES = 'application/x-ndjson';

/** `GET /audit/export`: the events that match the query, as a file; with `format=proof` the whole log. */
export const getAuditExport = forReader(async (c, caller) => {
  if (c.req.query('format') === 'proof') return sendProof(c, caller);
  const parsed = parseFilters(queryOf(c, AUDIT_FILTERS), { limit: MAX_PAGE });
  const format = formatQuery.safeParse(c.req.query('format'));
  if (!parsed.success || !format.success) return c.redirect('/audit', 303);
  const file = await exportEvents(c.get('context'), caller, parsed.data, format.data);
  if (!file.ok) return problem(c, caller, file.error);
  const type = format.data === 'csv' ? 'text/csv; charset=utf-8' : JSON_LINES;
  return c.body(file.value, 200, downloadAs(`audit.${format.data}`, type));
});

async function sendProof(c: AppContext, caller: Caller): Promise<Response> {
  const headers = downloadAs('audit-with-proof.ndjson', JSON_LINES);
  if (c.req.method === 'HEAD') return c.body(null, 200, headers);
  const file = await exportProof(c.get('context'), caller);
  return file.ok ? c.body(file.value, 200, headers) : problem(c, caller, file.error);
}

function downloadAs(name: string, type: string): Record<string, string> {
  return { 'content-type': type, 'content-disposition': `attachment; filename="${name}"` };
}

/** `GET /audit/verify`: verifies every chain. */
export const getVerification = forReader(async (c, caller) => {
  const context = c.get('context');
  const verify = async () => ok(await verifyAudit(context, caller));
  const verified = await context.openCalls.holdWhile('audit verification', caller.enterpriseId, verify);
  return verified.ok ? consolePage(c, caller, verificationPage(verified.value)) : problem(c, caller, verified.error);
});

/** `GET /audit/{id}`: one event, and why it happened. */
export const getAuditEventPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const event = await getAuditEvent(context, caller, c.req.param('id') ?? '');
  if (!event.ok) return problem(c, caller, event.error);
  const [standing, nameOf] = await Promise.all([
    eventStanding(context, event.value),
    describeNames(context, caller, idsIn(event.value), [event.value]),
  ]);
  return consolePage(c, caller, auditEventPage(event.value, { standing, nameOf, nowMs: context.clock.now() }));
});

/** `GET /audit/sessions/{id}`: what a session did. */
export const getSessionPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const session = await describeSession(context, caller, c.req.param('id') ?? '');
  if (!session.ok) return problem(c, caller, session.error);
  return consolePage(c, caller, sessionPage(session.value, context.clock.now()));
});

function queryOf(c: AppContext, names: readonly string[]): Fields {
  return Object.fromEntries(names.map((name) => [name, c.req.query(name)?.trim() ?? '']));
}

/** `GET /` */
export const getOverview = forReader(async (c, caller) => {
  const context = c.get('context');
  return consolePage(c, caller, overviewPage(await describeOverview(context, caller), context.clock.now()));
});

/** `GET /report` */
export const getReport = forReader(async (c, caller) => {
  const context = c.get('context');
  const report = await reportSealability(context, caller, c.get('templates')());
  const exposures = await listAuditPage(context, caller, {
    type: 'sandbox.proxy.credential_unsealed',
    limit: MAX_PAGE,
  });
  const nameOf = await describeNames(context, caller, [], exposures.ok ? exposures.value.items : []);
  return consolePage(c, caller, reportPage({ report, nameOf, nowMs: context.clock.now() }));
});

/** `GET /audit/sinks` */
export const getSinksPage = forReader(async (c, caller) => {
  const described = await describeSinks(c.get('context'), caller);
  return described.ok ? consolePage(c, caller, sinksPage(described.value.items)) : problem(c, caller, described.error);
});
