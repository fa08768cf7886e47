import { html } from 'hono/html';
import { APPROVAL_HOLD_SECONDS, type ApprovalRecord, approvalTarget } from '../../../shared/wire/approvals.ts';
import type { EarlierDecision, PendingApproval } from '../../services/approvals/pending_approvals.ts';
import { needText } from '../../../shared/wire/people/approval_rules.ts';
import { sessionPath } from '../audit/event_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { counted } from '../../../shared/model/sentence.ts';

/** One request that waits for a decision: who asks, what for, what was decided before, and how long its agent still waits. */
export function approvalCard(pending: PendingApproval, nowMs: number): Html {
  const { record } = pending;
  const target = approvalTarget(record);
  const { folder, session_id: session } = record;
  const facts: readonly (readonly [string, Html | null])[] = [
    ['Operation', html`<code>${foreignText(target)}</code>`],
    ['Folder', folder === null ? null : html`<code>${foreignText(folder)}</code>`],
    [
      'Session',
      session === null ? null : html`<a class="mono" href="${sessionPath(session)}">${foreignText(session)}</a>`,
    ],
    ['Asked', timeAgo(record.requested_at, nowMs)],
    ['Before', earlierWords(pending.earlier, nowMs)],
    ['Approved by', record.votes.length === 0 ? null : votesWords(pending, nowMs)],
    ['Needs', record.needs.length === 0 ? null : needsWords(record)],
  ];
  return html`<article
    class="panel card ${isHeld(record, nowMs) ? 'held' : ''}"
    data-island="decide"
    data-key="${record.id}"
    tabindex="0"
    aria-labelledby="asks-${record.id}"
  >
    <div class="panel-head">
      <h3 id="asks-${record.id}">${whoAsks(pending)}</h3>
      ${ring(record.held_until, nowMs)}
    </div>
    <p class="mono asked" data-asks>${foreignText(record.summary)}</p>
    ${definitionList(facts)} ${pending.mayView && record.held_until !== null ? viewButton(record, target) : ''}
    ${decisionForm(record, `${target}, ${record.summary}`)}
    ${pending.mayGrant ? grantForm(record, `${target}, ${record.summary}`) : ''}
  </article>`;
}

/**
 * With scripts only: the request is sealed to a key that the page makes. Only a held request has the button, but what was shown
 * stays after its agent gave up.
 */
function viewButton({ id, fingerprint }: ApprovalRecord, target: string): Html {
  return html`<div
    class="view"
    data-island="view-request"
    data-own="${fingerprint}"
    data-approval="${id}"
    data-fingerprint="${fingerprint}"
    hidden
  >
    <button type="button" class="compact" data-press="s" aria-keyshortcuts="s">
      Show what is sent <kbd aria-hidden="true">S</kbd><span class="hidden-but-read"> ${target}</span>
    </button>
    <div data-shown role="status"></div>
  </div>`;
}

export function isHeld({ held_until: until }: ApprovalRecord, nowMs: number): boolean {
  return until !== null && Date.parse(until) > nowMs;
}

function whoAsks({ record, person, sidecar }: PendingApproval): Html {
  const name = record.session_name;
  const agent = name === null ? html`A program` : html`<strong>${foreignText(name)}</strong>`;
  const at = sidecar === null ? '' : html` on ${foreignText(sidecar)}`;
  return html`${agent}${at} asks for ${foreignText(person)}`;
}

/** Counts down while the agent waits, with scripts; without them it says until when. */
function ring(until: string | null, nowMs: number): Html | string {
  if (until === null || Date.parse(until) <= nowMs) return '';
  return html`<span
    class="ring"
    data-own="${until}"
    data-until="${until}"
    data-seconds="${APPROVAL_HOLD_SECONDS}"
    data-over="no longer waits"
    >waits: ends ${timeAgo(until, nowMs)}</span
  >`;
}

function earlierWords(earlier: readonly EarlierDecision[], nowMs: number): Html {
  const [latest] = earlier;
  if (latest === undefined) return html`nothing of this kind was decided`;
  const approved = earlier.filter(({ decision }) => decision === 'approved').length;
  const at = html`${latest.decision} ${timeAgo(latest.at, nowMs)}`;
  if (earlier.length === 1) return html`one of this kind, ${at}`;
  const counts = `${approved} approved, ${earlier.length - approved} denied`;
  return html`of the last ${earlier.length} of this kind: ${counts}; the latest ${at}`;
}

/** What each rule still needs, or has. */
function needsWords({ needs }: ApprovalRecord): Html {
  return html`${needs.map((need, at) => html`${at === 0 ? '' : html`<br />`}${foreignText(needText(need))}`)}`;
}

/** Who has approved, and what they would also allow. */
function votesWords({ record, names }: PendingApproval, nowMs: number): Html {
  return html`${record.votes.map(({ user_id: user, voted_at: at, grant }, index) => {
    const who = foreignText(names.get(user) ?? user);
    const times = typeof grant?.times === 'number' ? `, ${counted(grant.times, 'request')} at most` : '';
    const more = grant === null ? '' : `, and more like it for ${counted(Math.ceil(grant.seconds / 60), 'minute')}`;
    return html`${index === 0 ? '' : html`<br />`}${who} ${timeAgo(at, nowMs)}${more}${times}`;
  })}`;
}

function decisionForm({ id, may_approve: mayApprove }: ApprovalRecord, what: string): Html {
  const approve = html`<button class="primary" name="decision" value="approve" data-press="a" aria-keyshortcuts="a">
    Approve <kbd aria-hidden="true">A</kbd><span class="hidden-but-read"> ${what}</span>
  </button>`;
  return html`<form method="post" action="/approvals/${id}" class="actions">
    ${mayApprove ? approve : html`<span class="quiet small">Others approve it; you can deny it.</span>`}
    <button class="danger" name="decision" value="deny" data-press="d" aria-keyshortcuts="d">
      Deny <kbd aria-hidden="true">D</kbd><span class="hidden-but-read"> ${what}</span>
    </button>
  </form>`;
}

const TIMES = [2, 3, 5, 10, 25];

/** Approves the request, and further ones for a while. */
function grantForm({ id, session_id: session, grant_covers: covers }: ApprovalRecord, what: string): Html {
  const from = session === null ? 'this machine' : 'this session';
  const further =
    covers === 'operation'
      ? html`requests of this operation with the same path, <strong>whatever their query and body are</strong>`
      : html`identical requests`;
  return html`<details class="more">
    <summary>Allow more like this<span class="hidden-but-read">: ${what}</span></summary>
    <form method="post" action="/approvals/${id}" class="stack">
      <input type="hidden" name="decision" value="approve" />
      <p class="quiet small">
        Approves this request and, without asking again, ${further} from ${from}. Each use is in the audit log, and the
        grant can be revoked under <a href="/approvals?state=grants">Grants</a>.
      </p>
      <div class="actions">
        <button class="compact" name="grant" value="session">Allow for ${from}, 8 h at most</button>
        <button class="compact" name="grant" value="hour">Allow for an hour</button>
        <label for="times-${id}">or for</label>
        <select id="times-${id}" name="times">
          ${TIMES.map((times) => html`<option value="${times}">${times} requests</option>`)}
        </select>
        <button class="compact" name="grant" value="times">Allow that many</button>
      </div>
    </form>
  </details>`;
}
