import { html } from 'hono/html';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import type { RunReply } from '../../../shared/wire/connectors/connectors.ts';
import { type ReadyService, type Way, WAYS, waysOf } from '../../../shared/wire/ready_services.ts';
import { fieldsNeeded, type ServiceField } from '../../../shared/wire/sealed_service.ts';
import type { ReadyState } from '../../services/ready/seal_ready.ts';
import { type OwnerChoice, ownerField } from '../bindings/owner_field.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { checkboxField } from '../components/checkbox_field.ts';
import { codeBlock } from '../components/code_block.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, problemOf, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { capitalise, counted } from '../../../shared/model/sentence.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type FoundServers, SERVICES_PAGE, serversPanel } from './services.ts';
import { tag } from '../components/tag.ts';

/** What became of a test call: the service's reply, or why there is none. */
export type TestCall = { readonly reply: RunReply; readonly excerpt: string } | { readonly problem: string };

export interface ServiceView {
  readonly ready: ReadyService;
  readonly templates: readonly BindingTemplate[];
  readonly state: ReadyState;
  readonly servers: FoundServers;
  readonly form: FormState;
  readonly owners: OwnerChoice;
  readonly test: TestCall | null;
  readonly done: string | undefined;
}

const FIELD_LABELS: { readonly [F in ServiceField]: string } = {
  host: 'Host',
  username: 'User name',
  access_key_id: 'Access key id',
  region: 'Region',
  service: 'Service',
};

/** One service: how to connect it, a test call, and its MCP servers. */
export function servicePage(view: ServiceView): Page {
  const { ready, done, state } = view;
  const content = html`${pageHeader({
    title: ready.title,
    above: SERVICES_PAGE,
    lead: credentialWords(ready),
  })}
  ${flash(done)} ${isConnected(state) ? connectedPanel(view) : ''} ${connectForm(view)}
  ${serversPanel(ready.title, view.servers)}`;
  return layout(ready.title, content, 'narrow');
}

function isConnected({ connectors, bindings }: ReadyState): boolean {
  return connectors.length + bindings.length > 0;
}

function credentialWords({ service, connector }: ReadyService): Html | string {
  if (service === null) {
    return connector?.credential.kind === 'oauth2' ? 'You sign in to it with an OAuth client of your own.' : '';
  }
  const { credential, source } = service;
  return html`You need ${credential}. <a href="${source.url}" rel="noopener noreferrer">How to get one</a>`;
}

function connectedPanel(view: ServiceView): Html {
  const { state, ready } = view;
  return html`<section class="panel stack" aria-labelledby="connected-title">
    <h2 id="connected-title">Connected</h2>
    <ul class="plain stack">
      ${state.connectors.map(
        ({ id, fqn, owner, isReady }) =>
          html`<li>
            ${isReady ? badge('good', 'ready') : badge('warn', 'not ready')} Connector
            <a href="/connectors/${id}"><code>${fqn}</code></a> ${tag(owner, 'hosted-only')}
          </li>`,
      )}
      ${state.bindings.map(
        ({ id, host, owner }) =>
          html`<li>
            ${badge('good', 'bound')} <a href="/bindings/${id}"><code>${host}</code></a>
            ${tag(owner, 'hosted-only')}
          </li>`,
      )}
    </ul>
    ${testPart(view)}
    ${ready.service?.try === undefined || state.bindings.length === 0 ? '' : tryCommand(ready.service.try)}
  </section>`;
}

function tryCommand(command: string): Html {
  return html`<div class="stack">
    <p>Let a program call it:</p>
    ${codeBlock(`svc run -- ${command}`)}
  </div>`;
}

function testPart({ ready, state, test }: ServiceView): Html | string {
  if (state.test === null) return test === null ? '' : testResult(ready, test);
  const { method, url } = state.test;
  return html`<form method="post" action="/services/${ready.name}/test" class="actions">
      <button class="${test === null ? 'primary' : ''}">Make a test call</button>
      <span class="quiet small mono">${method} ${url}</span>
    </form>
    ${test === null ? '' : testResult(ready, test)}`;
}

function testResult({ title }: ReadyService, test: TestCall): Html {
  if ('problem' in test) return alert('bad', html`<p><strong>There is no reply.</strong> ${test.problem}</p>`);
  const { reply, excerpt } = test;
  const { upstream_status: status, audit_id: event } = reply;
  const isFine = status < 400;
  const words = isFine
    ? html`<strong>It works.</strong> ${title} answered ${status}.`
    : html`<strong>${title} answered ${status}.</strong>
        ${status === 401 || status === 403 ? 'It does not accept the credential for this: paste another one below.' : 'See the reply.'}`;
  return html`${alert(isFine ? 'good' : 'bad', html`<p>${words} <a href="/audit/${event}">See it in the audit log</a></p>`)}
  ${
    excerpt === ''
      ? ''
      : html`<details class="more">
          <summary>The reply</summary>
          <div class="code">
            <pre><code>${foreignText(excerpt)}</code></pre>
          </div>
        </details>`
  }`;
}

const SHOWN = ['way', 'token', 'owner', 'replace', ...Object.keys(FIELD_LABELS)];

function connectForm(view: ServiceView): Html {
  const { ready, form, owners, state, templates } = view;
  const ways = waysOf(ready);
  const isSignIn = ready.connector?.credential.kind === 'oauth2';
  const needsToken = ready.service !== null || !isSignIn;
  const asks = askedFields(ready, templates);
  return html`<section class="panel stack" aria-labelledby="connect-title">
    <h2 id="connect-title">${isConnected(state) ? 'Connect it again' : 'Connect it'}</h2>
    ${formRefusal(form, SHOWN)}
    <form class="stack" method="post" action="/services/${ready.name}">
      ${wayField(view, ways)}
      ${
        needsToken
          ? textField(form, {
              name: 'token',
              label: capitalise(ready.service?.credential ?? 'the API key or token'),
              hint: isSignIn
                ? 'Needed for “Every request to its hosts”. No page shows it again.'
                : 'It is stored encrypted. No page shows it again.',
              isSecret: true,
              isMono: true,
            })
          : ''
      }
      ${asks.map(({ field, hint, isOptional }) =>
        textField(form, {
          name: field,
          label: `${FIELD_LABELS[field]}${isOptional ? ' (optional)' : ''}`,
          hint: ready.connector === null ? capitalise(hint) : `Needed for “Every request to its hosts”: ${hint}`,
        }),
      )}
      ${state.hasValue && needsToken ? checkboxField(form, { name: 'replace', label: 'Replace the stored credential', hint: 'One is stored. Its value cannot be brought back.' }) : ''}
      ${ownerField(form, owners)}
      <div class="actions">
        <button class="${isConnected(state) ? '' : 'primary'}">Connect ${ready.title}</button>
        <a class="button" href="/services">Cancel</a>
      </div>
    </form>
  </section>`;
}

interface AskedField {
  readonly field: ServiceField;
  readonly hint: string;
  readonly isOptional: boolean;
}

/** The values that the bindings of a service leave open; optional if only optional bindings need them. */
function askedFields({ service }: ReadyService, templates: readonly BindingTemplate[]): readonly AskedField[] {
  if (service === null) return [];
  const needed = new Map<ServiceField, boolean>();
  for (const { template: name, optional } of service.bindings) {
    const template = templates.find((each) => each.name === name);
    for (const field of template === undefined ? [] : fieldsNeeded(template)) {
      needed.set(field, (needed.get(field) ?? true) && optional === true);
    }
  }
  return [...needed].map(([field, isOptional]) => ({
    field,
    hint: service.asks[field] ?? FIELD_LABELS[field],
    isOptional,
  }));
}

const WAY_TITLES: { readonly [W in Way]: string } = {
  connector: 'Listed operations only',
  bindings: 'Every request to its hosts',
};

function wayField(view: ServiceView, ways: readonly Way[]): Html {
  const chosen = WAYS.find((way) => way === view.form.values['way']) ?? ways[0];
  return html`<fieldset class="field">
    <legend>What agents may do</legend>
    <div class="stack ways">
      ${ways.map(
        (way, index) =>
          html`<label class="way"
            ><input type="radio" name="way" value="${way}" ${way === chosen ? 'checked' : ''} />
            <span
              ><strong>${WAY_TITLES[way]}</strong> ${index === 0 && ways.length > 1 ? badge('accent', 'narrowest') : ''}
              <span class="sub">${wayWords(view, way)}</span></span
            ></label
          >`,
      )}
    </div>
    ${problemOf(view.form, 'way')}
  </fieldset>`;
}

function wayWords({ ready, templates }: ServiceView, way: Way): Html {
  const { service, connector } = ready;
  if (way === 'connector' && connector !== null) {
    const count = connector.operations.length;
    const held = connector.operations.filter(({ approval }) => approval === 'required').length;
    const signIn = connector.credential.kind === 'oauth2' ? ' You sign in on the next page.' : '';
    return html`${counted(count, 'operation')} at <code>${connector.hosts.join(', ')}</code>.
      ${held === 0 ? 'None' : held} of them ${held === 1 ? 'waits' : 'wait'} for your approval. Other requests get no
      credential.${signIn}`;
  }
  const bound = (service?.bindings ?? []).flatMap(
    ({ template: name }) => templates.find((each) => each.name === name) ?? [],
  );
  return html`Programs such as those of the vendor work as they are. The credential goes to
  ${bound.map(({ title, binding }, index) => {
    const host = String(binding['host']);
    const effect = binding['effect'] === 'read' ? ' (reading only)' : '';
    return html`${index === 0 ? '' : ', '}${host.includes('<') ? title : html`<code>${host}</code>`}${effect}`;
  })}.`;
}
