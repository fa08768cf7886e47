import { html } from 'hono/html';
import type { AuditPruneReply } from '../../../shared/wire/audit_events.ts';
import type { RetentionDetails } from '../../services/audit/retention_details.ts';
import { codeBlock } from '../components/code_block.ts';
import { flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { definitionList } from '../components/definition_list.ts';
import { dateField, type FormState, formRefusal } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { PROOF_PATH } from './audit.ts';
import { counted } from '../../../shared/model/sentence.ts';

export const RETENTION_PATH = '/audit/retention';

/** What would be removed: the events received before this day (UTC) began. */
export interface Removal {
  readonly day: string;
  readonly counted: AuditPruneReply;
}

interface RetentionView {
  readonly details: RetentionDetails;
  readonly isAdmin: boolean;
  /** The control plane is on the person's own machine. */
  readonly isLocal: boolean;
  readonly form: FormState;
  /** Null if none was asked about. */
  readonly removal: Removal | null;
  readonly done: string | undefined;
}

/** How long events are kept, how many there are, and for admins the removal of old ones. */
export function retentionPage({ details, isAdmin, isLocal, form, removal, done }: RetentionView): Page {
  const { days, events, removed, oldest } = details;
  const content = html`${pageHeader({
      title: 'Retention',
      lead: 'How long audit events are kept. Only the oldest can be removed, and the rest still verifies.',
    })}
    ${flash(done)} ${formRefusal(form, ['before'])}
    <section class="panel">
      ${definitionList([
        ['Kept', days === null ? 'For ever' : `For ${counted(days, 'day')} after they were received, then removed`],
        ['Events', String(events)],
        ['Oldest', oldest === null ? 'None' : writtenTime(oldest)],
        ['Removed so far', String(removed)],
      ])}
      ${
        isLocal
          ? html`<p class="quiet small">To remove older events automatically, start svc with a number of days:</p>
              ${codeBlock('SVC_AUDIT_RETENTION_DAYS=365 svc up --detach')}`
          : html`<p class="quiet small">
              The operator of this control plane sets the time for all enterprises:
              <code>SVC_AUDIT_RETENTION_DAYS</code>.
            </p>`
      }
    </section>
    ${isAdmin ? removalPanel(form, removal) : html`<p class="quiet">An admin or an owner can remove old events here.</p>`}`;
  return layout('Retention', content, 'narrow');
}

function removalPanel(form: FormState, removal: Removal | null): Html {
  return html`<section class="panel stack" aria-labelledby="removal-title">
    <h2 id="removal-title">Remove old events</h2>
    <p>
      They cannot be restored. To keep a copy, first download
      <a href="${PROOF_PATH}" download>everything with proof</a>. Events of the last day always stay.
    </p>
    <form method="get" action="${RETENTION_PATH}" class="stack">
      ${dateField(form, { name: 'before', label: 'Received before (UTC)', isRequired: true })}
      <div class="actions"><button>Count them</button></div>
    </form>
    ${removal === null ? '' : countedEvents(removal)}
  </section>`;
}

function countedEvents({ day, counted: { removed } }: Removal): Html {
  const path = pathWith(`${RETENTION_PATH}/remove`, { before: day });
  return html`<p role="status">
      ${removed === 0 ? `No event was received before ${day}.` : `${eventsOf(removed)} received before ${day}.`}
    </p>
    ${removed === 0 ? '' : html`<div class="actions"><a class="button danger" href="${path}">Remove them</a></div>`}`;
}

function eventsOf(count: number): string {
  return count === 1 ? '1 event was' : `${count} events were`;
}

/** Asks before events are removed. */
export function eventRemovalPage({ day, counted: { removed } }: Removal, form: FormState): Page {
  return confirmPage({
    title: 'Remove old audit events?',
    consequence:
      removed === 0
        ? `No event was received before ${day} (UTC), so there is nothing to remove.`
        : html`${eventsOf(removed)} received before ${day} (UTC) and will be removed from the audit log. They cannot be
          restored. The log records who removed them.`,
    name: day,
    action: `${RETENTION_PATH}/remove`,
    button: 'Remove them',
    keep: 'Keep them',
    hidden: { before: day },
    above: { path: RETENTION_PATH, title: 'Retention' },
    form,
    isNeedless: removed === 0,
  });
}
