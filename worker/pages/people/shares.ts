import { html } from 'hono/html';
import { sharedThing, type ShareRecord } from '../../../shared/wire/sharing/shares.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { type Column, dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import {
  type Choice,
  type FormState,
  formRefusal,
  revisionField,
  selectField,
  textField,
} from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { tag } from '../components/tag.ts';

interface SharesView {
  readonly given: readonly ShareRecord[];
  readonly received: readonly ShareRecord[];
  /** The caller's own bindings, connectors and MCP servers that can be shared. */
  readonly bindings: readonly Choice[];
  readonly connectors: readonly Choice[];
  readonly servers: readonly Choice[];
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
      lead: 'Colleagues use the credential of what is shared, for its hosts and operations. They neither see it nor change what is shared.',
    })}
    ${flash(done)}
    <section class="stack" aria-labelledby="received-title">
      <h2 id="received-title">With you</h2>
      <div class="panel flush">
        ${received.length === 0 ? emptyState({ title: 'Nothing is shared with you', next: 'What an admin shares is used at once; what a colleague shares, once you accept it.' }) : receivedTable(received)}
      </div>
    </section>
    <section class="stack" aria-labelledby="given-title">
      <h2 id="given-title">By you</h2>
      <div class="panel flush">
        ${given.length === 0 ? emptyState({ title: 'You share nothing', next: 'Colleagues can use what you share, but never see its credential.' }) : givenTable(given)}
      </div>
    </section>
    ${shareForm(view)}`;
  return layout('Shared', content);
}

const WHAT: Column<ShareRecord> = {
  title: 'What',
  cell: (share) => {
    const { name, how } = sharedThing(share);
    return html`<strong class="mono">${foreignText(name)}</strong><span class="sub">${foreignText(how)}</span>`;
  },
};

const STATES = {
  in_force: ['good', 'in use'],
  to_accept: ['warn', 'to accept'],
  overridden: ['plain', 'another one comes first'],
  paused: ['plain', 'paused: its owner is suspended or changed it'],
} as const;

function receivedTable(rows: readonly ShareRecord[]): Html {
  return dataTable<ShareRecord>({
    caption: 'Shared with you',
    rows,
    columns: [
      WHAT,
      { title: 'By', cell: ({ shared_by: by }) => foreignText(by.display_name) },
      { title: 'State', cell: ({ state }) => (state === null ? '' : badge(STATES[state][0], STATES[state][1])) },
      { title: 'Change', isActions: true, cell: receivedActions },
    ],
  });
}

function receivedActions(share: ShareRecord): Html {
  const { id, state, shared_by: by } = share;
  const { name, revision } = sharedThing(share);
  const of = html`<span class="hidden-but-read"> ${foreignText(name)} of ${foreignText(by.display_name)}</span>`;
  if (state !== 'to_accept') {
    return html`<form method="post" action="/shares/${id}/decline">
      <button class="compact">Decline${of}</button>
    </form>`;
  }
  return html`<form method="post" action="/shares/${id}/accept">
    ${revisionField(revision)}
    <button class="compact primary">Accept${of}</button>
  </form>`;
}

function givenTable(rows: readonly ShareRecord[]): Html {
  return dataTable<ShareRecord>({
    caption: 'Shared by you',
    rows,
    columns: [
      WHAT,
      {
        title: 'With',
        cell: ({ shared_with: receiver }) =>
          html`${foreignText(receiver.display_name)} ${receiver.kind === 'group' ? tag('group') : ''}`,
      },
      {
        title: 'Change',
        isActions: true,
        cell: (share) =>
          html`<form method="post" action="/shares/${share.id}/end">
            <button class="compact danger">
              End<span class="hidden-but-read"> the share of ${foreignText(sharedThing(share).name)}</span>
            </button>
          </form>`,
      },
    ],
  });
}

const NONE: Choice = { value: '', title: 'None' };

function shareForm({ bindings, connectors, servers, groups, form, needsAcceptance }: SharesView): Html {
  const kinds = [
    { name: 'binding_id', label: 'Binding', choices: bindings },
    { name: 'connector_id', label: 'Connector', choices: connectors },
    { name: 'mcp_server_id', label: 'MCP server', choices: servers },
  ].filter(({ choices }) => choices.length > 0);
  if (kinds.length === 0) {
    return alert(
      'info',
      'To share something, create one of your own first: a binding with an effect and with hosts that are named, a connector with a credential, or an MCP server.',
    );
  }
  const hint = needsAcceptance ? 'Each of them accepts it first.' : 'They use it at once.';
  const isOne = kinds.length === 1;
  return html`<form class="panel stack" method="post" action="/shares" aria-label="Share something of yours">
    <h2>Share something of yours</h2>
    ${formRefusal(form, ['binding_id', 'connector_id', 'mcp_server_id', 'group_id', 'email'])}
    ${isOne ? '' : html`<p class="hint">Choose one.</p>`}
    ${kinds.map(({ choices, ...field }) => selectField(form, { ...field, choices: isOne ? choices : [NONE, ...choices] }))}
    ${groups.length === 0 ? '' : selectField(form, { name: 'group_id', label: 'Group', choices: [{ value: '', title: 'None: one colleague' }, ...groups] })}
    ${textField(form, { name: 'email', label: 'Email of a colleague', hint, maxLength: 254 })}
    <div class="actions"><button class="primary">Share</button></div>
  </form>`;
}
