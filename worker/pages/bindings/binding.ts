import { html } from 'hono/html';
import { listRequestLimits, toRequestLimits } from '../../../shared/model/request_limits.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { BindingDetails } from '../../services/bindings/binding_details.ts';
import { BINDINGS_PAGE } from './binding_form.ts';
import { emitWords, schemeTitle } from './scheme_words.ts';
import { removalEffects, type RemovalView } from './removal_effects.ts';
import { referenceWords } from './reference_words.ts';
import { flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { tag } from '../components/tag.ts';

interface BindingView {
  readonly details: BindingDetails;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** One binding: what it matches, how the credential is written, which secret it uses, and who changed it. */
export function bindingPage({ details, done, nowMs }: BindingView): Page {
  const { binding, mayChange } = details;
  const { id, host, description } = binding;
  const actions = html`<a class="button" href="${explainPath(host)}">Explain a request</a> ${
      mayChange
        ? html`<a class="button primary" href="/bindings/${id}/edit">Edit</a>
            <a class="button danger" href="/bindings/${id}/delete">Delete</a>`
        : ''
    }`;
  const content = html`${pageHeader({
      title: html`<span class="mono">${host}</span>`,
      lead: description === undefined ? '' : foreignText(description),
      above: BINDINGS_PAGE,
      actions,
    })}
    ${flash(done)}
    <section class="panel" aria-labelledby="matches-title">
      <h2 id="matches-title">What it matches</h2>
      <ul class="reasons">
        ${matchSentences(binding).map((sentence) => html`<li>${sentence}</li>`)}
      </ul>
    </section>
    ${secretSection(details)} ${writtenSection(binding)} ${changeSection(details, nowMs)}
    ${mayChange ? '' : html`<p class="quiet">Your enterprise’s admins change it.</p>`}`;
  return layout(host, content, 'narrow');
}

/** A request to a host that the pattern matches, for the explanation. */
function explainPath(host: string): string {
  return pathWith('/bindings', { method: 'GET', url: `https://${host.replace(/^\*\./, 'www.')}/` });
}

/** Which requests it matches, in sentences. */
function matchSentences({ host, allowed_hosts: allowed, effect, sentinel }: HostBindingRecord): Html[] {
  const below = host.startsWith('*.') ? host.slice(2) : null;
  return [
    below === null
      ? html`Requests to <code>${host}</code> only.`
      : html`Requests to every host below <code>${below}</code>, at any depth, but not to
          <code>${below}</code> itself.`,
    ...(allowed.length === 0 ? [] : [html`Of these only <code>${allowed.join(', ')}</code>; others are refused.`]),
    effect === 'read' ? html`Only GET, HEAD and OPTIONS: other methods are refused.` : everyMethod(effect),
    ...(sentinel === undefined ? [] : [html`If several bindings match, the client’s placeholder selects one.`]),
    html`Operations of connectors take precedence.`,
  ];
}

function everyMethod(effect: string | undefined): Html {
  const note = effect === undefined ? '' : html` Its effect is <code>${effect}</code>, which refuses no method.`;
  return html`Every method.${note}`;
}

function secretSection({ binding, references }: BindingDetails): Html {
  const words = (reference: string) => {
    const found = references.find((each) => each.reference === reference);
    return html`<code>${reference}</code> ${found === undefined ? '' : referenceWords(found, found.state)}`;
  };
  return html`<section class="panel" aria-labelledby="secret-title">
    <h2 id="secret-title">Which secret</h2>
    ${definitionList([
      ['Credential', words(binding.credential_ref)],
      ['Session token', binding.session_token_ref === undefined ? null : words(binding.session_token_ref)],
      ['Owner', tag(binding.owner), 'hosted-only'],
    ])}
  </section>`;
}

function writtenSection(binding: HostBindingRecord): Html {
  const { sentinel } = binding;
  return html`<section class="panel" aria-labelledby="written-title">
    <h2 id="written-title">How it is written</h2>
    ${definitionList([
      ['Scheme', schemeTitle(binding.scheme)],
      ['User name', code(binding.username)],
      ['Header', code(binding.header)],
      ['Template', code(binding.template)],
      ['Query parameter', code(binding.query_param)],
      ['Access key id', code(binding.access_key_id)],
      ['Region', code(binding.region)],
      ['Service', code(binding.service)],
      ['How it is added', emitWords(binding.emit_mechanism)],
      ['Placeholder of the agent', code(sentinel?.value)],
      ['In the variable', code(sentinel?.env)],
      ['Request body', binding.body === 'stream' ? 'streamed' : 'held until it is complete'],
      [
        'Cookies of replies',
        binding.keep_cookies === true ? 'kept, with challenges to sign in' : 'removed, with challenges to sign in',
      ],
      ['Most requests', requestLimits(binding)],
    ])}
  </section>`;
}

function requestLimits(binding: HostBindingRecord): string | null {
  const limits = listRequestLimits(toRequestLimits(binding));
  return limits.length === 0 ? null : `${limits.join(', ')}; on each machine`;
}

function changeSection({ binding, lastChange }: BindingDetails, nowMs: number): Html {
  const by = lastChange?.by ?? null;
  return html`<section class="panel" aria-labelledby="changes-title">
    <h2 id="changes-title">Who changed it</h2>
    ${definitionList([
      ['Created', writtenTime(binding.created_at)],
      [
        'Changed',
        html`${writtenTime(binding.updated_at)} <span class="quiet">(${timeAgo(binding.updated_at, nowMs)})</span>`,
      ],
      ['By', by === null ? 'unknown: no longer in the audit log' : personWords(by)],
      [
        'Event',
        lastChange === null
          ? null
          : html`<a class="mono" href="/audit/${lastChange.eventId}">${lastChange.eventId}</a>`,
      ],
      ['Id', code(binding.id)],
    ])}
  </section>`;
}

/** The name of a user of the enterprise, or an id. */
export function personWords({ id, name }: { readonly id: string; readonly name: string | null }): Html {
  return name === null ? html`<code>${id}</code>` : html`${foreignText(name)} <code>${id}</code>`;
}

export function bindingDeletionPage(
  { id, preview, nowMs }: RemovalView & { readonly id: string },
  form: FormState,
): Page {
  return confirmPage({
    title: 'Delete a binding?',
    consequence: html`This deletes the binding of <code>${preview.name}</code>.`,
    effects: removalEffects(preview, nowMs),
    name: preview.name,
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
