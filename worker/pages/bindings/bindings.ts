import { html } from 'hono/html';
import type { Explanation, ExplainedBinding } from '../../../shared/explain/explain.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { alert, flash } from '../components/alert.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager } from '../components/pager.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

export interface BindingsView {
  readonly bindings: ListPage<HostBindingRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly question: FormState;
  /** Null without a valid question. */
  readonly explanation: Explanation | null;
  /** Hosts on which bindings without an effect are read-only, by binding id. */
  readonly limited: ReadonlyMap<string, readonly string[]>;
  /** The owners whose bindings the user may change. */
  readonly mayChange: (binding: Pick<HostBindingRecord, 'owner'>) => boolean;
}

/** The bindings, and a form that explains what would happen to a request. */
export function bindingsPage(view: BindingsView): Page {
  const { bindings, cursor, done } = view;
  const content = html`${pageHeader({
      title: 'Host rules',
      lead: 'A binding adds one credential to requests to one host, outside of the sandbox.',
      actions: html`<a class="button primary" href="/bindings/new">Bind a credential</a>`,
    })}
    ${flash(done)} ${limits(view)} ${explainBox(view.question, view.explanation)}
    <section class="panel flush" aria-labelledby="bindings-title">
      <div class="panel-head"><h2 id="bindings-title">Bindings</h2></div>
      ${bindings.items.length === 0 ? noBindings() : table(view)}
    </section>
    ${pager('/bindings', { cursor }, bindings.next_cursor)}`;
  return layout('Host rules', content);
}

function noBindings(): Html {
  return emptyState({
    title: 'No credential is bound to a host',
    next: 'Without a binding or a connector, every request is forwarded unmodified.',
    command: 'svc binding add api.github.com --scheme bearer --credential vault://user/demo',
    action: html`<a class="button primary" href="/bindings/new">Bind a credential</a>`,
  });
}

/** Explains which bindings without an effect became read-only after an upgrade or a new connector. */
function limits({ limited }: BindingsView): Html | string {
  if (limited.size === 0) return '';
  const hosts = [...new Set([...limited.values()].flat())];
  return alert(
    'warn',
    html`On ${hosts.join(', ')}, operations of a connector need an approval. Bindings without an effect are read-only
      there: edit them and choose the effect <code>read</code>, or <code>write</code> to allow other requests without an
      approval.`,
  );
}

function effectCell({ id, effect }: HostBindingRecord, { limited }: BindingsView): Html | string {
  if (effect === 'read') return badge('plain', 'read only');
  const hosts = limited.get(id);
  if (hosts === undefined) return effect ?? '';
  return html`${badge('warn', 'none')}<span class="sub">only reads on ${hosts.join(', ')}</span>`;
}

/** Of several accounts of a host: which requests get this one, in a session that chooses none. */
function accountNote(
  { host, owner, emit_mechanism: emit }: HostBindingRecord,
  all: readonly HostBindingRecord[],
): Html | string {
  const same = all.filter((other) => other.host === host && other.owner === owner);
  if (new Set(same.map(({ credential_ref: reference }) => reference)).size < 2) return '';
  return emit === 'inject'
    ? html`<span class="sub">account of requests without a placeholder</span>`
    : html`<span class="sub">account of requests with its placeholder</span>`;
}

function table(view: BindingsView): Html {
  const { mayChange } = view;
  return dataTable<HostBindingRecord>({
    caption: 'Host bindings',
    rows: view.bindings.items,
    columns: [
      {
        title: 'Host',
        cell: ({ id, host, description }) =>
          html`<a class="mono" href="/bindings/${id}">${host}</a>
            ${description === undefined ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      {
        title: 'Credential',
        cell: (binding) => html`<code>${binding.credential_ref}</code>${accountNote(binding, view.bindings.items)}`,
      },
      {
        title: 'How',
        cell: ({ scheme, emit_mechanism: emit }) =>
          html`<span class="tag">${scheme}</span> ${emit === 'inject' ? '' : html`<span class="tag">${emit}</span>`}`,
      },
      { title: 'Effect', cell: (binding) => effectCell(binding, view) },
      { title: 'Owner', cell: ({ owner }) => html`<span class="tag">${owner}</span>` },
      {
        title: 'Change',
        isActions: true,
        cell: (binding) => (mayChange(binding) ? actions(binding) : ''),
      },
    ],
  });
}

function actions({ id, host }: HostBindingRecord): Html {
  return html`<div class="actions">
    <a class="button compact" href="/bindings/${id}/edit"
      >Edit<span class="hidden-but-read"> the binding for ${host}</span></a
    >
    <a class="button compact danger" href="/bindings/${id}/delete"
      >Delete<span class="hidden-but-read"> the binding for ${host}</span></a
    >
  </div>`;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

const DECISIONS: { readonly [D in Explanation['decision']]: { readonly kind: BadgeKind; readonly word: string } } = {
  connector: { kind: 'accent', word: 'Connector: its credential is added' },
  binding: { kind: 'accent', word: 'Binding: its credential is added' },
  passthrough: { kind: 'plain', word: 'Passthrough: forwarded unmodified' },
  refused: { kind: 'bad', word: 'Refused' },
};

/**
 * Explains what would happen to a request. The answer is below the form, and updates while typing if scripts run.
 * Nothing is sent.
 */
function explainBox(question: FormState, explanation: Explanation | null): Html {
  return html`<section class="panel" aria-labelledby="explain-title">
    <h2 id="explain-title">What would happen to a request?</h2>
    <form method="get" action="/bindings" class="explain" data-island="live-form" data-answer="explanation">
      ${selectField(question, { name: 'method', label: 'Method', choices: METHODS.map((value) => ({ value, title: value })) })}
      ${textField(question, { name: 'url', label: 'URL', placeholder: 'https://api.github.com/user', isMono: true, maxLength: 16_384 })}
      <button>Explain</button>
    </form>
    <div id="explanation" class="stack" aria-live="polite">
      ${formRefusal(question, ['method', 'url'])} ${explanation === null ? nothingAsked() : answer(explanation)}
    </div>
  </section>`;
}

function nothingAsked(): Html {
  return html`<p class="quiet small">
    No request is sent; the answer follows from the current bindings and connectors.
  </p>`;
}

function answer({ decision, reasons, code, method, host, path, bindings }: Explanation): Html {
  const { kind, word } = DECISIONS[decision];
  return html`<p>
      ${badge(kind, word)} ${code === null ? '' : html`<code>${code}</code>`}
      <span class="mono">${foreignText(`${method} ${host}${path}`)}</span>
    </p>
    <ol class="reasons">
      ${reasons.map((reason) => html`<li>${foreignText(reason)}</li>`)}
    </ol>
    ${bindings.length === 0 ? '' : html`<p class="small">${bindings.map((binding) => bindingLink(binding))}</p>`}`;
}

function bindingLink({ id, host }: ExplainedBinding): Html {
  return html`<a href="/bindings/${id}">The binding for ${host}</a> `;
}
