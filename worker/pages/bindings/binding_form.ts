import { html } from 'hono/html';
import { EFFECTS, INJECTION_SCHEMES, type InjectionScheme, type Owner } from '../../../shared/model/host_binding.ts';
import { capitalise } from '../../../shared/model/sentence.ts';
import { VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import type { OwnedReference, ReferenceState } from '../../services/bindings/reference_states.ts';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import { SCHEME_PARAMETERS } from '../../../shared/wire/host_binding_rules.ts';
import { type Choice, type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { foreignLink } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { tabs } from '../components/tabs.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from './owner_field.ts';
import { referenceList, referenceWords } from './reference_words.ts';
import { SCHEMES } from './scheme_words.ts';

export const BINDINGS_PAGE = { path: '/bindings', title: 'Host rules' };

interface Parameter {
  readonly label: string;
  readonly placeholder: string;
  readonly hint?: string;
}

/** The fields that a scheme requires or accepts. */
const PARAMETERS: Readonly<Record<string, Parameter>> = {
  username: { label: 'User name', placeholder: 'x-access-token' },
  header: { label: 'Header', placeholder: 'X-Api-Key' },
  template: { label: 'Template', placeholder: '{token}' },
  query_param: { label: 'Query parameter', placeholder: 'key' },
  access_key_id: { label: 'Access key id (minted, if AWS mints the secret)', placeholder: 'AKIAIOSFODNN7EXAMPLE' },
  region: {
    label: 'Region',
    placeholder: 'eu-central-1',
    hint: 'Or a set of regions, such as * or us-east-1,eu-*: requests are then signed with version 4a',
  },
  service: { label: 'Service', placeholder: 's3' },
  session_token_ref: { label: 'Session token (optional)', placeholder: 'vault://user/aws-session-token' },
};

const LABELS: Readonly<Record<string, string>> = {
  host: 'Host',
  credential_ref: 'Credential',
  scheme: 'Scheme',
  effect: 'Effect',
  allowed_hosts: 'Allowed hosts',
  description: 'Description',
  sentinel_value: 'Placeholder',
  sentinel_env: 'Variable of the placeholder',
  body: 'Request body',
  keep_cookies: 'Cookies of replies',
  requests_per_minute: 'Requests a minute',
  requests_per_day: 'Requests a day',
  bytes_per_day: 'Bytes a day',
};

/** What stands in the form's field for the credential; the state is null if that is no reference. */
export interface TypedReference extends OwnedReference {
  readonly state: ReferenceState | null;
}

interface CredentialChoice {
  readonly references: readonly string[];
  readonly reference: TypedReference;
}

interface BindingFormView {
  readonly form: FormState;
  readonly scheme: InjectionScheme;
  /** References of stored secrets to choose from. */
  readonly references: readonly string[];
  readonly reference: TypedReference;
  /** Ready bindings to start from. */
  readonly templates: readonly BindingTemplate[];
  /** Whether the user may create one for the enterprise. */
  readonly owners: OwnerChoice;
}

/** The fields that are rarely used. */
const MORE = [
  'allowed_hosts',
  'description',
  'sentinel_value',
  'sentinel_env',
  'body',
  'keep_cookies',
  'requests_per_minute',
  'requests_per_day',
  'bytes_per_day',
];

const COMMON = ['owner', 'host', 'credential_ref', 'scheme', 'effect', ...MORE];

/** The form of a binding for one scheme. */
export function newBindingPage({ form, scheme, references, reference, templates, owners }: BindingFormView): Page {
  const content = html`${pageHeader({ title: 'New binding', above: BINDINGS_PAGE })}
    ${templates.length === 0 ? '' : templateForm(form, templates)} ${schemeTabs(scheme, (each) => newPath(form, each))}
    ${formRefusal(form, bindingFormFields(scheme))}
    <form class="panel stack" method="post" action="/bindings" ${liveReference()}>
      ${bindingControls(form, scheme, { references, reference }, ownerField(form, owners))}
      <div class="actions"><button class="primary">Bind</button> <a class="button" href="/bindings">Cancel</a></div>
    </form>`;
  return layout('New binding', content, 'narrow');
}

/** The controls for a binding of a scheme; `more` comes before the rarely used ones. */
export function bindingControls(
  form: FormState,
  scheme: InjectionScheme,
  credential: CredentialChoice,
  more: Html | string = '',
): Html {
  const { required, optional } = SCHEME_PARAMETERS[scheme];
  const own = [...required, ...optional];
  return html`<input type="hidden" name="scheme" value="${scheme}" />
    <p class="quiet small">On the wire: <code>${SCHEMES[scheme].wire}</code></p>
    ${textField(form, { name: 'host', label: 'Host', hint: 'Exact, or with one leading *. for all below it; with :PORT for another port than 443', placeholder: 'api.github.com', isRequired: true, isMono: true })}
    ${credentialField(form, credential)} ${own.map((name) => parameterField(form, name, required.includes(name)))}
    ${selectField(form, { name: 'effect', label: 'Effect', hint: 'Read allows only GET, HEAD and OPTIONS', choices: effectChoices() })}
    ${more} ${moreFields(form)}`;
}

/** The fields of a scheme's form. */
export function bindingFormFields(scheme: InjectionScheme): readonly string[] {
  const { required, optional } = SCHEME_PARAMETERS[scheme];
  return [...COMMON, ...required, ...optional];
}

/** A field's label. */
export function bindingFieldLabel(name: string): string {
  return PARAMETERS[name]?.label ?? LABELS[name] ?? name;
}

/** Selects a template in a form of its own, which then fills the form below. */
function templateForm(form: FormState, templates: readonly BindingTemplate[]): Html {
  const chosen = templates.find(({ name }) => name === form.values['from']);
  const choices = [{ value: '', title: 'None' }, ...templates.map(({ name, title }) => ({ value: name, title }))];
  return html`<section class="panel" aria-label="Ready bindings">
    <form method="get" action="/bindings/new" class="one-line">
      ${selectField(form, { name: 'from', label: 'Start from a template', choices })}
      <button>Fill in</button>
    </form>
    ${chosen === undefined ? '' : templateNotes(chosen)}
  </section>`;
}

function templateNotes({ notes, source }: BindingTemplate): Html {
  return html`<ul class="small">
      ${notes.map((note) => html`<li>${note}</li>`)}
    </ul>
    <p class="small">As documented in ${foreignLink(source.url, source.title)}</p>`;
}

/** One form per scheme; `pathOf` gives its path. */
export function schemeTabs(current: InjectionScheme, pathOf: (scheme: InjectionScheme) => string): Html {
  const all = INJECTION_SCHEMES.map((scheme) => ({
    path: pathOf(scheme),
    title: SCHEMES[scheme].title,
    isCurrent: scheme === current,
  }));
  return tabs('How the credential is written', all);
}

function newPath({ values }: FormState, scheme: InjectionScheme): string {
  const { host, credential_ref, owner } = values;
  return pathWith('/bindings/new', { scheme, host, credential_ref, owner });
}

/** Says whether a reference is stored while it is typed. Anything else that is typed is not sent: it may be a credential. */
export function liveReference(owner?: Owner): Html {
  const ask = pathWith('/bindings/new', { owner });
  const fields = owner === undefined ? 'credential_ref owner' : 'credential_ref';
  return html`data-island="live-form" data-answer="credential-state" data-ask="${ask}" data-fields="${fields}"
  data-begins="credential_ref=${VAULT_SCHEME}"`;
}

function credentialField(form: FormState, { references, reference: typed }: CredentialChoice): Html {
  return html`${textField(form, {
      name: 'credential_ref',
      label: 'Credential',
      hint: html`A stored secret's reference; <a href="/secrets/new">store one</a> first`,
      placeholder: 'vault://user/github',
      isRequired: true,
      isMono: true,
      list: 'references',
    })}
    <p id="credential-state" class="small" aria-live="polite">
      ${typed.state === null ? '' : referenceWords(typed, typed.state)}
    </p>
    ${referenceList(references)}`;
}

function parameterField(form: FormState, name: string, isRequired: boolean): Html {
  const parameter = PARAMETERS[name] ?? { label: name, placeholder: '' };
  return textField(form, { name, ...parameter, isMono: true, ...(isRequired && { isRequired: true }) });
}

/** The choices of a field for an effect, which may have none. */
export function effectChoices(): readonly Choice[] {
  return [
    { value: '', title: 'Every method' },
    ...EFFECTS.map((effect) => ({ value: effect, title: capitalise(effect) })),
  ];
}

function moreFields(form: FormState): Html {
  const isUsed = MORE.some((name) => (form.values[name] ?? '') !== '');
  return html`<details class="more" ${isUsed ? 'open' : ''}>
    <summary>
      Allowed hosts, limits, a placeholder for the agent, the request's body, cookies of replies, description
    </summary>
    <div class="stack">
      ${textField(form, { name: 'allowed_hosts', label: 'Allowed hosts', hint: 'Exact hosts, separated by commas; empty: all that the pattern matches', isMono: true })}
      ${textField(form, { name: 'requests_per_minute', label: 'Requests a minute', hint: 'The most that get the credential, on each machine; empty: no limit' })}
      ${textField(form, { name: 'requests_per_day', label: 'Requests a day' })}
      ${textField(form, { name: 'bytes_per_day', label: 'Bytes a day', placeholder: '500MB', hint: 'Of these requests and their replies; when they are used up, no further request gets the credential' })}
      ${textField(form, { name: 'sentinel_value', label: 'Placeholder', hint: 'For clients that need a credential to start: not a secret; the proxy swaps it for the real one', isMono: true })}
      ${textField(form, { name: 'sentinel_env', label: 'Variable of the placeholder', placeholder: 'GITHUB_TOKEN', isMono: true })}
      ${selectField(form, {
        name: 'body',
        label: 'Request body',
        hint: 'Held up to a limit of size; streamed, for example for git push',
        choices: [
          { value: '', title: 'held until it is complete' },
          { value: 'stream', title: 'streamed' },
        ],
      })}
      ${selectField(form, {
        name: 'keep_cookies',
        label: 'Cookies of replies',
        hint: 'A session cookie lets the agent act without the proxy; sign-in challenges are treated the same way',
        choices: [
          { value: '', title: 'removed' },
          { value: 'true', title: 'kept' },
        ],
      })}
      ${textField(form, { name: 'description', label: 'Description', maxLength: 500 })}
    </div>
  </details>`;
}
