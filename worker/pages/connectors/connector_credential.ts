import { html } from 'hono/html';
import type { AuthorizeReply } from '../../../shared/wire/connectors/connector_credentials.ts';
import type { ConnectorCredentialRecord, ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import { parseVaultReference } from '../../../shared/model/vault_path.ts';
import { codeBlock } from '../components/code_block.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignLink, foreignText } from '../components/foreign_text.ts';
import { referenceList } from '../bindings/reference_words.ts';
import { type FormState, formRefusal, textField, timeField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import { credentialBadge } from './connectors.ts';
import type { NameOf } from '../../services/audit/names.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { clientSecretFields } from './oauth_client_fields.ts';

export interface ConnectorView {
  readonly connector: ConnectorRecord;
  readonly nameOf: NameOf;
  readonly warnings: readonly string[];
  /** Whether the user may change it. */
  readonly isWritable: boolean;
  /** The references of stored secrets that may serve it. */
  readonly references: readonly string[];
  /** The redirect URL for providers; null if it is not known. */
  readonly redirectUrl: string | null;
  readonly form: FormState;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** Fields that are never returned to the browser. */
export const CREDENTIAL_SECRETS = ['value', 'client_secret', 'access_token', 'refresh_token'];

const EXTRA_FIELDS = [
  'authorization_url',
  'token_url',
  'device_authorization_url',
  'scopes',
  'access_token',
  'refresh_token',
  'expires_at',
];
const SHOWN = ['value', 'credential_ref', 'client_id', 'client_secret', 'client_authentication', ...EXTRA_FIELDS];

/** The state of a connector's credential, and the form that replaces it. */
export function credentialPanel(view: ConnectorView): Html {
  const { connector, isWritable, nowMs } = view;
  const { credential } = connector;
  return html`<section class="panel" aria-labelledby="credential-title">
    <div class="panel-head">
      <h2 id="credential-title">Credential</h2>
      ${credentialBadge(credential.state)}
    </div>
    ${facts(credential, nowMs)} ${isWritable ? changes(view) : notYours()}
  </section>`;
}

function facts(credential: ConnectorCredentialRecord, nowMs: number): Html {
  const { kind, updated_at: updated, expires_at: expires, client_id: clientId, token_url: tokenUrl } = credential;
  const isAuthorised = kind === 'oauth2' && credential.state === 'ready';
  return definitionList([
    ['Kind', kind === 'oauth2' ? 'OAuth 2' : 'API key'],
    ['Stored', updated === null ? null : timeAgo(updated, nowMs)],
    ['Client id', clientId === null ? null : html`<code>${foreignText(clientId)}</code>`],
    ['Tokens from', tokenUrl === null ? null : html`<code>${foreignText(tokenUrl)}</code>`],
    ['Scopes', credential.scopes.length === 0 ? null : html`<code>${foreignText(credential.scopes.join(' '))}</code>`],
    ['Access token', isAuthorised && expires !== null ? html`expires ${timeAgo(expires, nowMs)}` : null],
    ['Renewed', isAuthorised ? (credential.renewable ? 'automatically' : 'never: it has no refresh token') : null],
    ['Reference', html`<code>${credential.ref}</code>`],
  ]);
}

function notYours(): Html {
  return html`<p class="quiet">Your enterprise owns this connector: its admins change the credential.</p>`;
}

function changes(view: ConnectorView): Html {
  const { connector } = view;
  const isSet = connector.credential.state !== 'missing';
  const isOAuth = connector.credential.kind === 'oauth2';
  const form = isOAuth ? clientForm(view, isSet) : keyForm(view, isSet);
  return html`${isOAuth && isSet ? authorisation(connector) : ''}
    <hr />
    ${form}
    ${isSet ? html`<p><a class="button compact danger" href="/connectors/${connector.id}/credential/delete">Delete the credential</a></p>` : ''}`;
}

function keyForm({ connector, form, references }: ConnectorView, isSet: boolean): Html {
  const list = references.length === 0 ? {} : { list: 'references' };
  return html`${formRefusal(form, SHOWN)}
    <form class="stack" method="post" action="/connectors/${connector.id}/credential">
      ${textField(form, {
        name: 'value',
        label: isSet ? 'New API key' : 'API key',
        hint: 'Stored in the vault for this connector alone. No page shows it again.',
        isSecret: true,
        isMono: true,
      })}
      ${textField(form, {
        name: 'credential_ref',
        label: 'Or a stored secret',
        hint: `A reference: the secret serves this connector as well as its bindings, and goes to ${connector.hosts.join(', ')}. Offered are those that bindings send to all of these hosts`,
        placeholder: 'vault://user/github',
        isMono: true,
        ...list,
      })}
      ${referenceList(references)}
      <div class="actions"><button class="primary">${isSet ? 'Replace' : 'Store'}</button></div>
    </form>`;
}

function authorisation({ id, spec, credential }: ConnectorRecord): Html {
  const { authorization_url: browser, device_authorization_url: device } = spec.credential;
  const isAgain = credential.state === 'ready' ? ' again' : '';
  const showBrowser = browser !== undefined || device === undefined;
  const showDevice = device !== undefined || browser === undefined;
  return html`<div class="actions">
    ${showBrowser ? html`<a class="button primary" href="/auth/connectors/${id}/authorize">Authorise${isAgain}</a>` : ''}
    ${
      showDevice
        ? html`<form method="post" action="/connectors/${id}/authorize">
            <button>Authorise${isAgain} with a code</button>
          </form>`
        : ''
    }
  </div>`;
}

function clientForm({ connector, form, redirectUrl }: ConnectorView, isSet: boolean): Html {
  return html`${formRefusal(form, SHOWN)}
    <form class="stack" method="post" action="/connectors/${connector.id}/credential">
      <div class="stack">
        <h3>${isSet ? 'Another OAuth client' : 'Your OAuth client'}</h3>
        ${
          redirectUrl === null
            ? ''
            : html`<p class="quiet small">Register it with the provider, for this redirect URL:</p>
                ${codeBlock(redirectUrl)}`
        }
      </div>
      ${textField(form, { name: 'client_id', label: 'Client id', isRequired: true, isMono: true })}
      ${clientSecretFields(form)} ${extraFields(form)}
      <div class="actions"><button class="primary">${isSet ? 'Replace' : 'Store'}</button></div>
    </form>`;
}

function extraFields(form: FormState): Html {
  const problems = form.problems.map(({ field }) => field.split('.')[0] ?? '');
  const isUsed = EXTRA_FIELDS.some((name) => (form.values[name] ?? '') !== '' || problems.includes(name));
  const url = { isMono: true, hint: 'Empty: that of the spec' } as const;
  return html`<details class="more" ${isUsed ? 'open' : ''}>
    <summary>Other URLs and scopes, existing tokens</summary>
    <div class="stack">
      ${textField(form, { name: 'authorization_url', label: 'Authorization URL', ...url })}
      ${textField(form, { name: 'token_url', label: 'Token URL', ...url })}
      ${textField(form, { name: 'device_authorization_url', label: 'Device authorization URL', ...url })}
      ${textField(form, { name: 'scopes', label: 'Scopes', isMono: true, hint: 'Separated by spaces; empty: those of the spec' })}
      ${textField(form, { name: 'access_token', label: 'Access token', isSecret: true, isMono: true })}
      ${textField(form, { name: 'refresh_token', label: 'Refresh token', isSecret: true, isMono: true })}
      ${timeField(form, { name: 'expires_at', label: 'The access token ends (UTC)' })}
    </div>
  </details>`;
}

/** The code to type at the provider. It is redeemed when somebody opens the connector's page. */
export function deviceCodePage(
  { id, fqn }: ConnectorRecord,
  { user_code: code, verification_uri: url, expires_at: expires }: Extract<AuthorizeReply, { grant: 'device' }>,
): Page {
  const content = html`${pageHeader({ title: 'Authorise with a code', above: { path: `/connectors/${id}`, title: fqn } })}
    <div class="panel">
      <p>Open ${foreignLink(url)} and type this code:</p>
      ${codeBlock(code)}
      <p class="quiet">It is valid until ${writtenTime(expires)}. After you have approved it there, return here.</p>
      <div class="actions"><a class="button primary" href="/connectors/${id}">I have approved it: check again</a></div>
    </div>`;
  return layout('Authorise with a code', content, 'narrow');
}

/** True if a stored secret serves the connector, which others may use too. */
export function isShared({ ref }: ConnectorCredentialRecord): boolean {
  return parseVaultReference(ref).ok;
}

export function credentialDeletionPage({ id, fqn, credential }: ConnectorRecord, form: FormState): Page {
  const isMissing = credential.state === 'missing';
  return confirmPage({
    title: 'Delete the credential?',
    consequence: isMissing
      ? html`<code>${fqn}</code> has no credential, so there is nothing to delete.`
      : html`The operations of <code>${fqn}</code> are refused until it has another credential.
          ${isShared(credential) ? 'The stored secret that serves it stays.' : 'Its own credential is permanently deleted.'}
          The connector stays active.`,
    name: fqn,
    action: `/connectors/${id}/credential/delete`,
    button: 'Delete it',
    hidden: {},
    above: { path: `/connectors/${id}`, title: fqn },
    form,
    isNeedless: isMissing,
  });
}
