import { html } from 'hono/html';
import type { Explanation, ExplainedBinding } from '../../../shared/explain/explain.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { ReadList } from '../../kernel/read_all.ts';
import type { FoundReference } from '../../services/bindings/reference_states.ts';
import type { VaultUse } from '../../services/vault/credential_uses.ts';
import { alert, flash } from '../components/alert.ts';
import { arrangedList, byNewest, byText, type ListQuery } from '../components/arranged_list.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { referenceWords } from './reference_words.ts';
import { LAST_USED_NOTE, lastUsedWords } from './use_words.ts';
import { emitWords, schemeTitle } from './scheme_words.ts';
import { tag } from '../components/tag.ts';

export interface BindingsView {
  readonly bindings: ReadList<HostBindingRecord>;
  readonly query: ListQuery;
  readonly use: VaultUse;
  readonly referencesOf: (binding: HostBindingRecord) => readonly FoundReference[];
  readonly nowMs: number;
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
  const { done } = view;
  const content = html`${pageHeader({
      title: 'Host rules',
      lead: 'A binding adds one credential to the requests to one host. The agent never has it.',
      actions: html`<a class="button primary" href="/bindings/new">New binding</a>`,
    })}
    ${flash(done)} ${limits(view)} ${explainBox(view.question, view.explanation)}
    <section class="stack" aria-labelledby="bindings-title">
      <h2 id="bindings-title">Bindings</h2>
      ${list(view)} ${view.bindings.items.length === 0 ? '' : LAST_USED_NOTE}
    </section>`;
  return layout('Host rules', content);
}

function list(view: BindingsView): Html {
  const { bindings, query, use } = view;
  return arrangedList<HostBindingRecord>({
    kind: {
      path: '/bindings',
      words: ['binding', 'bindings'],
      placeholder: 'a host, a secret, a scheme …',
      textOf: ({ host, description = '', credential_ref: reference, scheme, effect = '', owner }) =>
        [host, description, reference, scheme, effect, owner].join(' '),
      orders: [
        { name: 'host', title: 'By host', compare: byText(({ host }) => host) },
        { name: 'used', title: 'Last used first', compare: byNewest((binding) => use.lastFetchBy(binding)) },
        {
          name: 'problems',
          title: 'Without a secret first',
          compare: byText((binding) => (listProblems(binding, view).length > 0 ? 'a' : 'b')),
        },
        { name: 'secret', title: 'By secret', compare: byText(({ credential_ref: reference }) => reference) },
        { name: 'changed', title: 'Last changed first', compare: byNewest(({ updated_at: updated }) => updated) },
      ],
    },
    query,
    ...bindings,
    table: (shown) => table(view, shown),
    none: noBindings(),
  });
}

/** The references of a binding that resolve to no secret. */
function listProblems(binding: HostBindingRecord, { referencesOf }: BindingsView): Html[] {
  return referencesOf(binding)
    .filter(({ state }) => state !== 'stored')
    .map(({ state, ...reference }) => referenceWords(reference, state));
}

function noBindings(): Html {
  return emptyState({
    title: 'No credential is bound to a host',
    next: 'Without a binding or a connector, every request is forwarded unmodified.',
    command: 'svc binding add api.github.com --scheme bearer --credential vault://user/demo',
    action: html`<a class="button primary" href="/bindings/new">New binding</a>`,
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

function table(view: BindingsView, shown: readonly HostBindingRecord[]): Html {
  const { mayChange, use, nowMs } = view;
  return dataTable<HostBindingRecord>({
    caption: 'Bindings',
    rows: shown,
    key: ({ id }) => id,
    columns: [
      {
        title: 'Host',
        cell: ({ id, host, description }) =>
          html`<a class="mono" href="/bindings/${id}" data-result>${host}</a>
            ${description === undefined ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      {
        title: 'Credential',
        cell: (binding) =>
          html`<code>${binding.credential_ref}</code> ${listProblems(binding, view)}
            ${accountNote(binding, view.bindings.items)}`,
      },
      {
        title: 'How',
        cell: ({ scheme, emit_mechanism: emit }) =>
          html`${tag(schemeTitle(scheme))} ${emit === 'inject' ? '' : tag(emitWords(emit))}`,
      },
      { title: 'Effect', cell: (binding) => effectCell(binding, view) },
      { title: 'Last used', cell: (binding) => lastUsedWords(use.lastFetchBy(binding), nowMs) },
      { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
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
      ${badge(kind, word)}
      <span class="mono">${foreignText(`${method} ${host}${path}`)}</span>
    </p>
    <ol class="reasons">
      ${reasons.map((reason) => html`<li>${foreignText(reason)}</li>`)}
    </ol>
    ${code === null ? '' : html`<p class="quiet small">Programs get this refusal as <code>${code}</code>.</p>`}
    ${bindings.length === 0 ? '' : html`<p class="small">${bindings.map((binding) => bindingLink(binding))}</p>`}`;
}

function bindingLink({ id, host }: ExplainedBinding): Html {
  return html`<a href="/bindings/${id}">The binding for ${host}</a> `;
}
