import { html } from 'hono/html';
import type { Explanation } from '../../shared/explain/explain.ts';
import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import type { Page as ListPage } from '../../shared/wire/primitives.ts';
import { flash } from './components/alert.ts';
import { badge } from './components/badge.ts';
import { confirmPage } from './components/confirm_page.ts';
import { dataTable } from './components/data_table.ts';
import { definitionList } from './components/definition_list.ts';
import { emptyState } from './components/empty_state.ts';
import { EMPTY_FORM, type FormState } from './components/form_field.ts';
import { foreignText } from './components/foreign_text.ts';
import { pageHeader } from './components/page_header.ts';
import { pager } from './components/pager.ts';
import { exactTime } from './components/time.ts';
import { explainBox } from './explain_box.ts';
import type { Html } from './html.ts';
import { layout, type Page } from './layout.ts';

export const BINDINGS_PAGE = { path: '/bindings', title: 'Host bindings' };

export interface BindingsView {
  readonly bindings: ListPage<HostBindingRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly question: FormState;
  /** Null while nothing, or nothing that can be explained, is asked. */
  readonly explanation: Explanation | null;
}

/** Where credentials may go, and the question of what would happen to a request. */
export function bindingsPage(view: BindingsView): Page {
  const { bindings, cursor, done } = view;
  const content = html`${pageHeader({
      title: 'Host bindings',
      lead: 'A binding lets one credential go to one host, written onto the request outside of the sandbox.',
      actions: html`<a class="button primary" href="/bindings/new">Bind a credential</a>`,
    })}
    ${flash(done)} ${explainBox(view.question, view.explanation)}
    <section class="panel flush" aria-labelledby="bindings-title">
      <div class="panel-head"><h2 id="bindings-title">Bindings</h2></div>
      ${bindings.items.length === 0 ? noBindings() : table(bindings.items)}
    </section>
    ${pager('/bindings', { cursor }, bindings.next_cursor)}`;
  return layout('Host bindings', content);
}

function noBindings(): Html {
  return emptyState({
    title: 'No credential is bound to a host',
    next: 'Without a binding or a connector, every request is forwarded unmodified.',
    command: 'svc binding add api.github.com --scheme bearer --credential vault://user/demo',
    action: html`<a class="button primary" href="/bindings/new">Bind a credential</a>`,
  });
}

function table(bindings: readonly HostBindingRecord[]): Html {
  return dataTable<HostBindingRecord>({
    caption: 'Host bindings',
    rows: bindings,
    columns: [
      {
        title: 'Host',
        cell: ({ id, host, description }) =>
          html`<a class="mono" href="/bindings/${id}">${host}</a>
            ${description === undefined ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      { title: 'Credential', cell: ({ credential_ref: reference }) => html`<code>${reference}</code>` },
      {
        title: 'How',
        cell: ({ scheme, emit_mechanism: emit }) =>
          html`<span class="tag">${scheme}</span> ${emit === 'inject' ? '' : html`<span class="tag">${emit}</span>`}`,
      },
      { title: 'Effect', cell: ({ effect }) => (effect === 'read' ? badge('plain', 'read only') : (effect ?? '')) },
      { title: 'Owner', cell: ({ owner }) => html`<span class="tag">${owner}</span>` },
      {
        title: 'Delete',
        isActions: true,
        cell: ({ id, host }) =>
          html`<a class="button compact danger" href="/bindings/${id}/delete"
            >Delete<span class="hidden-but-read"> the binding for ${host}</span></a
          >`,
      },
    ],
  });
}

/** One binding, whole. */
export function bindingPage(binding: HostBindingRecord): Page {
  const { id, host, sentinel, allowed_hosts: allowed } = binding;
  const content = html`${pageHeader({
      title: html`<span class="mono">${host}</span>`,
      lead: binding.description === undefined ? '' : foreignText(binding.description),
      above: BINDINGS_PAGE,
      actions: html`<a class="button danger" href="/bindings/${id}/delete">Delete</a>`,
    })}
    <div class="panel">
      ${definitionList([
        ['Credential', code(binding.credential_ref)],
        ['Scheme', code(binding.scheme)],
        ['User name', code(binding.username)],
        ['Header', code(binding.header)],
        ['Template', code(binding.template)],
        ['Query parameter', code(binding.query_param)],
        ['Access key id', code(binding.access_key_id)],
        ['Region', code(binding.region)],
        ['Service', code(binding.service)],
        ['Session token', code(binding.session_token_ref)],
        ['Emit mechanism', code(binding.emit_mechanism)],
        ['Stand-in of the agent', code(sentinel?.value)],
        ['In the variable', code(sentinel?.env)],
        ['Effect', binding.effect === undefined ? 'every method' : code(binding.effect)],
        [
          'Allowed hosts',
          allowed.length === 0 ? 'all that the pattern matches' : html`<code>${allowed.join(', ')}</code>`,
        ],
        ['Request body', code(binding.body)],
        ['Owner', binding.owner],
        ['Created', exactTime(binding.created_at)],
        ['Changed', exactTime(binding.updated_at)],
        ['Id', code(id)],
      ])}
    </div>`;
  return layout(host, content, 'narrow');
}

export function bindingDeletionPage({ id, host }: HostBindingRecord, form: FormState = EMPTY_FORM): Page {
  return confirmPage({
    title: 'Delete a host binding?',
    consequence: html`Requests to <code>${host}</code> get no credential by it any more. The secret stays in the vault.`,
    name: host,
    action: `/bindings/${id}/delete`,
    button: 'Delete it',
    hidden: {},
    above: BINDINGS_PAGE,
    form,
  });
}

function code(text: string | undefined): Html | null {
  return text === undefined ? null : html`<code>${text}</code>`;
}
