import { decisionInput } from '../../../shared/wire/approvals.ts';
import { approvalsPage } from '../../pages/bindings/approvals.ts';
import { decideApproval, listApprovalPage } from '../../services/approvals/approvals.ts';
import { redirectDone, forChange, forReader, problem } from './console.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

const SHOWN = 50;

/** `GET /approvals`: pending approvals; with `state=all` also decided and expired ones. */
export const getApprovalsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const state = c.req.query('state') === 'all' ? ('all' as const) : ('pending' as const);
  const cursor = c.req.query('cursor');
  const query = { limit: SHOWN, cursor, ...(state === 'pending' && { state }) };
  const approvals = await listApprovalPage(context, caller, query);
  if (!approvals.ok) return problem(c, caller, approvals.error);
  const nowMs = context.clock.now();
  const view = { state, approvals: approvals.value, cursor, done: c.req.query('done'), nowMs };
  return consolePage(c, caller, approvalsPage(view));
});

/** `POST /approvals/{id}`: the decision. */
export const submitDecision = forChange(async (c, caller, fields) => {
  const parsed = decisionInput.safeParse({ decision: fields['decision'] });
  if (!parsed.success) return problem(c, caller, invalidInput('json', parsed.error));
  const { decision } = parsed.data;
  const decided = await decideApproval(c.get('context'), caller, c.req.param('id') ?? '', decision);
  if (!decided.ok) return problem(c, caller, decided.error);
  return redirectDone(c, '/approvals', decision === 'approve' ? 'approved' : 'denied');
});
