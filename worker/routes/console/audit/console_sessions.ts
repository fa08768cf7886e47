import { PLANS_PATH, plansPage, SESSIONS_PATH, sessionsPage } from '../../../pages/audit/sessions.ts';
import { listPlanRuns, listSessions } from '../../../services/audit/session_list.ts';
import { forReader, type PageEntry, problem } from '../console.ts';
import { consolePage } from '../pages.ts';

/** `GET /audit/sessions?cursor=`: what agents ran. */
const getSessions = forReader(async (c, caller) => {
  const context = c.get('context');
  const cursor = c.req.query('cursor');
  const list = await listSessions(context, caller, cursor);
  if (!list.ok) return problem(c, caller, list.error);
  return consolePage(c, caller, sessionsPage({ list: list.value, cursor, nowMs: context.clock.now() }));
});

/** `GET /plans?cursor=`: the runs of plans. */
const getPlans = forReader(async (c, caller) => {
  const context = c.get('context');
  const cursor = c.req.query('cursor');
  const list = await listPlanRuns(context, caller, cursor);
  if (!list.ok) return problem(c, caller, list.error);
  return consolePage(c, caller, plansPage({ list: list.value, cursor, nowMs: context.clock.now() }));
});

export const SESSION_PAGES: readonly PageEntry[] = [
  ['get', SESSIONS_PATH, getSessions],
  ['get', PLANS_PATH, getPlans],
];
