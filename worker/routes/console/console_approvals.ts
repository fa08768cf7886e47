import { decisionInput } from '../../../shared/wire/approvals.ts';
import { approvalsPage, pendingApprovalsPage } from '../../pages/bindings/approvals.ts';
import { decideApproval, listApprovalPage } from '../../services/approvals/approvals.ts';
import { listPendingApprovals } from '../../services/approvals/pending_approvals.ts';
import { redirectDone, forChange, forReader, problem } from './console.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

const SHOWN = 50;
/** More than anybody looks through; the newest come first. */
const MOST_PENDING = 100;

/** `GET /approvals`: pending approvals; with `state=all` a list of all. */
export const getApprovalsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const nowMs = context.clock.now();
  if (c.req.query('state') !== 'all') {
    const pending = await listPendingApprovals(context, caller, MOST_PENDING);
    return consolePage(c, caller, pendingApprovalsPage({ pending, done: c.req.query('done'), nowMs }));
  }
  const cursor = c.req.query('cursor');
  const approvals = await listApprovalPage(context, caller, { limit: SHOWN, cursor });
  if (!approvals.ok) return problem(c, caller, approvals.error);
  return consolePage(c, caller, approvalsPage({ approvals: approvals.value, cursor, nowMs }));
});

/** `POST /approvals/{id}`: the decision. */
export const submitDecision = forChange(async (c, caller, fields) => {
  const parsed = decisionInput.safeParse({ decision: fields['decision'] });
  if (!parsed.success) return problem(c, caller, invalidInput('json', parsed.error));
  const { decision } = parsed.data;
  const decided = await decideApproval(c.get('context'), caller, c.req.param('id') ?? '', decision);
  // Somebody else, or another tab, was faster: nothing went wrong, and the list says what holds.
  if (!decided.ok && decided.error.code === 'approval_not_pending') return redirectDone(c, '/approvals', 'was_decided');
  if (!decided.ok) return problem(c, caller, decided.error);
  return redirectDone(c, '/approvals', decision === 'approve' ? 'approved' : 'denied');
});
