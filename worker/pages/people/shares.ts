import { html } from 'hono/html';
import type { ShareRecord } from '../../../shared/wire/sharing/shares.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { type Column, dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type Choice, type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

interface SharesView {
  readonly given: readonly ShareRecord[];
  readonly received: readonly ShareRecord[];
  /** The caller's own bindings that can be shared. */
  readonly bindings: readonly Choice[];
  readonly groups: readonly Choice[];
  /** Whether what the caller shares has to be accepted. */
  readonly needsAcceptance: boolean;
  readonly form: FormState;
  readonly done: string | undefined;
}

/** What others share with the caller, what the caller shares, and the form that shares. */
export function sharesPage(view: SharesView): Page {
  const { given, received, done } = view;
  const content = html`${pageHeader({
      title: 'Shared',
      lead: 'A shared binding lets colleagues use its secret at its hosts. They neither see the secret nor change the binding.',
    })}
    ${flash(done)}
    <section aria-labelledby="received-title">
      <h2 id="received-title">With you</h2>
      <div class="panel flush">
        ${received.length === 0 ? nothing('Nothing is shared with you') : receivedTable(received)}
      </div>
    </section>
    <section aria-labelledby="given-title">
      <h2 id="given-title">By you</h2>
      <div class="panel flush">${given.length === 0 ? nothing('You share nothing') : givenTable(given)}</div>
    </section>
    ${shareForm(view)}`;
  return layout('Shared', content);
}

function nothing(title: string): Html {
  return emptyState({
    title,
    next: 'What an admin shares is used at once; what a colleague shares, once it is accepted.',
  });
}

const HOST: Column<ShareRecord> = {
  title: 'Host',
  cell: ({ binding }) =>
    html`<strong class="mono">${binding.host}</strong
      ><span class="sub">${binding.scheme}, ${binding.effect ?? 'every effect'}</span>`,
};

const STATES = {
  in_force: ['good', 'in use'],
  to_accept: ['warn', 'to accept'],
  overridden: ['plain', 'another binding comes first'],
  paused: ['plain', 'paused: its owner is suspended or changed the binding'],
} as const;

function receivedTable(rows: readonly ShareRecord[]): Html {
  return dataTable<ShareRecord>({
    caption: 'Shared with you',
    rows,
    columns: [
      HOST,
      { title: 'By', cell: ({ shared_by: by }) => foreignText(by.display_name) },
      { title: 'State', cell: ({ state }) => (state === null ? '' : badge(STATES[state][0], STATES[state][1])) },
      { title: 'Change', isActions: true, cell: receivedActions },
    ],
  });
}

function receivedActions({ id, state, binding, shared_by: by }: ShareRecord): Html {
  const of = html`<span class="hidden-but-read"> ${binding.host} of ${by.display_name}</span>`;
  if (state !== 'to_accept') {
    return html`<form method="post" action="/shares/${id}/decline">
      <button class="compact">Decline${of}</button>
    </form>`;
  }
  return html`<form method="post" action="/shares/${id}/accept">
    <input type="hidden" name="revision" value="${binding.revision}" />
    <button class="compact primary">Accept${of}</button>
  </form>`;
}

function givenTable(rows: readonly ShareRecord[]): Html {
  return dataTable<ShareRecord>({
    caption: 'Shared by you',
    rows,
    columns: [
      HOST,
      {
        title: 'With',
        cell: ({ shared_with: receiver }) =>
          html`${foreignText(receiver.display_name)}
          ${receiver.kind === 'group' ? html`<span class="tag">group</span>` : ''}`,
      },
      {
        title: 'Change',
        isActions: true,
        cell: ({ id, binding }) =>
          html`<form method="post" action="/shares/${id}/end">
            <button class="compact danger">
              End<span class="hidden-but-read"> the share of ${binding.host}</span>
            </button>
          </form>`,
      },
    ],
  });
}

function shareForm({ bindings, groups, form, needsAcceptance }: SharesView): Html {
  if (bindings.length === 0) {
    return alert(
      'info',
      'To share a binding, create one of your own first, with an effect and with hosts that are named.',
    );
  }
  const hint = needsAcceptance ? 'Each of them accepts it first.' : 'They use it at once.';
  return html`<form class="panel stack" method="post" action="/shares" aria-label="Share a binding">
    <h2>Share a binding</h2>
    ${formRefusal(form, ['binding_id', 'group_id', 'email'])}
    ${selectField(form, { name: 'binding_id', label: 'Binding', choices: bindings })}
    ${groups.length === 0 ? '' : selectField(form, { name: 'group_id', label: 'Group', choices: [{ value: '', title: 'None: one colleague' }, ...groups] })}
    ${textField(form, { name: 'email', label: 'Email of a colleague', hint, maxLength: 254 })}
    <div class="actions"><button class="primary">Share</button></div>
  </form>`;
}
