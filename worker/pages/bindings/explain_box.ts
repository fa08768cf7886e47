import { html } from 'hono/html';
import type { ExplainedBinding, Explanation } from '../../../shared/explain/explain.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

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
export function explainBox(question: FormState, explanation: Explanation | null): Html {
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
