import { type ApprovalRecord, type DecisionInput, decisionInput } from '../../../shared/wire/approvals.ts';
import { approvalPage, approvalsPage, grantsPage, pendingApprovalsPage } from '../../pages/bindings/approvals.ts';
import { decideApproval, getApproval, listApprovalPage } from '../../services/approvals/approvals.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { describePending, listPendingApprovals } from '../../services/approvals/pending_approvals.ts';
import { MOST_GRANT_SECONDS } from '../../../shared/wire/approval_grants.ts';
import { describeNames } from '../../services/audit/names.ts';
import { listGrantPage, revokeGrant } from '../../services/approvals/grants.ts';
import { type Fields, redirectDone, forChange, forReader, problem } from './console.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppContext } from '../http/app_env.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

const SHOWN = 50;
/** More than anybody looks through: the newest. */
const MOST_PENDING = 100;

/** `GET /approvals`: pending approvals; with `state=all` a list of all, with `state=grants` what is allowed in advance. */
export const getApprovalsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const nowMs = context.clock.now();
  const cursor = c.req.query('cursor');
  const state = c.req.query('state');
  const done = c.req.query('done');
  if (state === 'grants') {
    const grants = await listGrantPage(context, caller, { limit: SHOWN, cursor });
    if (!grants.ok) return problem(c, caller, grants.error);
    const named = grants.value.items.flatMap(({ sidecar_id: sidecar, given_by: givers }) => [...givers, sidecar ?? []]);
    const nameOf = await describeNames(context, caller, named.flat());
    return consolePage(c, caller, grantsPage({ grants: grants.value, nameOf, cursor, done, nowMs }));
  }
  if (state !== 'all') {
    const pending = await listPendingApprovals(context, caller, MOST_PENDING);
    return consolePage(c, caller, pendingApprovalsPage({ pending, done, nowMs }));
  }
  const approvals = await listApprovalPage(context, caller, { limit: SHOWN, cursor });
  if (!approvals.ok) return problem(c, caller, approvals.error);
  return consolePage(c, caller, approvalsPage({ approvals: approvals.value, cursor, nowMs }));
});

/** `GET /approvals/{id}`: where messages link to. The address gives no right: whoever may not see it gets what a stranger gets. */
export const getApprovalPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const found = await getApproval(context, caller, c.req.param('id') ?? '');
  if (!found.ok) return problem(c, caller, found.error);
  const record = found.value;
  const pending = record.state === 'pending' ? await describePending(context, caller, record.id) : null;
  const nameOf = await describeNames(context, caller, record.decided_by === null ? [] : [record.decided_by]);
  const nowMs = context.clock.now();
  return consolePage(c, caller, approvalPage({ record, pending, nameOf, done: c.req.query('done'), nowMs }));
});

const SECONDS: Readonly<Record<string, number>> = {
  session: MOST_GRANT_SECONDS,
  hour: 3600,
  times: MOST_GRANT_SECONDS,
};

/** What a button of the card gives besides the approval. */
function grantOf({ grant, times }: Fields): object | undefined {
  if (grant === undefined || !Object.hasOwn(SECONDS, grant)) return undefined;
  return { seconds: SECONDS[grant], times: grant === 'times' ? Number(times) : null };
}

/** `POST /approvals/{id}`: the decision. */
export const submitDecision = forChange(async (c, caller, fields) => {
  const parsed = decisionInput.safeParse({ decision: fields['decision'], grant: grantOf(fields) });
  if (!parsed.success) return problem(c, caller, invalidInput('json', parsed.error));
  const id = c.req.param('id') ?? '';
  const decided = await decideApproval(c.get('context'), caller, id, parsed.data);
  if (decided.ok) return redirectDone(c, '/approvals', doneOf(decided.value, parsed.data));
  if (decided.error.code !== 'approval_not_pending') return problem(c, caller, decided.error);
  // Somebody else, or another tab, was faster: nothing went wrong, and the list says what holds.
  const before = await justDecided(c, caller, id);
  const isRepeated = before !== null && (before.state === 'denied') === (parsed.data.decision === 'deny');
  return redirectDone(c, '/approvals', isRepeated ? doneOf(before, parsed.data) : 'was_decided');
});

/** What a decision has come to. */
function doneOf({ state, grant_id: granted }: ApprovalRecord, { grant }: DecisionInput): string {
  if (state === 'denied') return 'denied';
  if (state === 'pending') return 'partly_approved';
  if (granted !== null) return 'granted';
  return grant === undefined ? 'approved' : 'approved_once';
}

/** The second press of a double click, which the browser sends too. */
const REPEATED_MS = 5_000;

/** What the caller decided a moment ago; null if that was somebody else, or earlier. */
async function justDecided(c: AppContext, caller: Caller, id: string): Promise<ApprovalRecord | null> {
  const context = c.get('context');
  const found = await getApproval(context, caller, id);
  if (!found.ok) return null;
  const { decided_by: by, decided_at: at } = found.value;
  if (by !== caller.userId || at === null || context.clock.now() - Date.parse(at) > REPEATED_MS) return null;
  return found.value;
}

/** `POST /approval-grants/{id}/revoke`. */
export const submitRevocation = forChange(async (c, caller) => {
  const revoked = await revokeGrant(c.get('context'), caller, c.req.param('id') ?? '');
  return revoked.ok
    ? c.redirect(pathWith('/approvals', { state: 'grants', done: 'grant_revoked' }), 303)
    : problem(c, caller, revoked.error);
});
