import { html } from 'hono/html';
import { DOMAIN_JOINING, type DomainJoining, type EnterpriseSettings } from '../../../shared/wire/enterprise.ts';
import { formatQuota, type UsedBy } from '../../../shared/model/quotas/quotas.ts';
import type { UsageRecord } from '../../../shared/wire/usage.ts';
import { alert, flash } from '../components/alert.ts';
import { checkboxField, TICKED } from '../components/checkbox_field.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { type Difference, differenceTable } from '../components/difference_table.ts';
import { definitionList } from '../components/definition_list.ts';
import {
  type Choice,
  type FormState,
  formRefusal,
  problemOf,
  radioField,
  revisionField,
  textField,
} from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The file that proves a domain's owner. */
const PROOF_PATH = '/.well-known/svc-enterprise.txt';
/** The name of a provider's checkbox. */
export const PROVIDER_FIELD = 'provider ';
/** Never returned to the browser. */
export const ENTERPRISE_SECRETS = ['oidc_client_secret'];

const SHOWN = [
  'name',
  'billing_email',
  'allowed_domains',
  'providers',
  'allowed_providers',
  'sso_required',
  'domain_joining',
  'provider_mcp_clients',
  'oidc_issuer',
  'oidc_client_id',
  'oidc_client_secret',
  'oidc_domains',
  'saml_metadata_url',
  'saml_metadata',
  'saml_domains',
];

interface EnterpriseView {
  readonly settings: EnterpriseSettings;
  /** The ways to sign in that can be selected. */
  readonly methods: readonly Choice[];
  readonly isLocal: boolean;
  readonly isAdmin: boolean;
  /** Whether the user may change the provider too: whoever runs it can sign in as anybody. */
  readonly isOwner: boolean;
  /** The origin for redirect URLs; null if it is not known. */
  readonly origin: string | null;
  readonly form: FormState;
  /** Of the settings that the form was filled with. */
  readonly revision: string;
  /** What the user typed over older settings, where it differs from those that are stored now; null if nothing was refused for that. */
  readonly unsaved: readonly Difference[] | null;
  readonly done: string | undefined;
  /** What the enterprise and its people keep; empty for members. */
  readonly usage: readonly UsageRecord[];
}

/** The form's values from stored settings, which never contain the client secret. */
export function settingsFields(settings: EnterpriseSettings): Readonly<Record<string, string>> {
  const { oidc, saml, allowed_providers: providers } = settings;
  const ticked = (providers ?? []).map((name) => [PROVIDER_FIELD + name, TICKED] as const);
  return {
    name: settings.name,
    billing_email: settings.billing_email ?? '',
    allowed_domains: settings.allowed_domains.join('\n'),
    providers: providers === null ? 'every' : 'these',
    ...Object.fromEntries(ticked),
    ...(settings.sso_required && { sso_required: TICKED }),
    domain_joining: settings.domain_joining,
    provider_mcp_clients: settings.provider_mcp_clients.join('\n'),
    oidc_issuer: oidc?.issuer ?? '',
    oidc_client_id: oidc?.client_id ?? '',
    oidc_domains: oidc?.domains.join('\n') ?? '',
    saml_domains: saml?.domains.join('\n') ?? '',
  };
}

const LABELS: Readonly<Record<string, string>> = {
  name: 'Name',
  billing_email: 'Billing email',
  allowed_domains: 'Email domains',
  providers: 'Ways to sign in',
  sso_required: 'Single sign-on is required',
  domain_joining: 'Joining by a proven domain',
  provider_mcp_clients: 'MCP clients of the provider',
  oidc_issuer: 'Issuer',
  oidc_client_id: 'Client id',
  oidc_domains: 'Domains of the OpenID provider',
  saml_metadata_url: 'SAML metadata URL',
  saml_metadata: 'SAML metadata (XML)',
  saml_domains: 'SAML domains',
  saml_remove: 'Remove the SAML provider',
};

function settingLabel(field: string): string {
  return LABELS[field] ?? `Sign-in by ${field.slice(PROVIDER_FIELD.length)}`;
}

/** The typed fields that differ from the stored ones, with boxes that were unticked, and without secrets. */
export function listUnsaved(
  stored: Readonly<Record<string, string>>,
  typed: Readonly<Record<string, string>>,
): readonly Difference[] {
  const boxes = Object.keys(stored).filter((field) => stored[field] === TICKED);
  const fields = [...new Set([...Object.keys(typed), ...boxes])].filter(
    (field) => Object.hasOwn(LABELS, field) || field.startsWith(PROVIDER_FIELD),
  );
  const differences = fields.map((field) => ({ field, stored: stored[field] ?? '', typed: typed[field] ?? '' }));
  return differences.filter((each) => each.stored !== each.typed.replaceAll('\r\n', '\n'));
}

const JOINING: Readonly<Record<DomainJoining, string>> = {
  automatic: 'People with a verified address of our domains join at their first sign-in; those who have an account ask',
  request: 'They ask to join, and an admin decides',
  closed: 'Nobody joins by a domain: people are invited, or come by the provider',
};

/** The enterprise and its sign-in settings. */
export function enterprisePage(view: EnterpriseView): Page {
  const { settings, isAdmin, isLocal, done } = view;
  const content = html`${pageHeader({ title: 'Enterprise settings', lead: 'The name of your enterprise, and how its people sign in.' })}
  ${flash(done)}
  ${isLocal ? alert('info', html`<p>This control plane is on your own machine: you sign in by the link that <code data-command>svc up</code> prints, whatever is set here.</p>`) : ''}
  ${isAdmin ? settingsForm(view) : html`${alert('info', 'Your enterprise’s admins change these settings.')} ${currentSettings(settings)}`}`;
  const usage = view.usage.length === 0 ? '' : usagePanel(view.usage);
  return layout('Enterprise settings', html`${content} ${usage} ${view.isOwner && !isLocal ? DELETION : ''}`, 'narrow');
}

const WHOSE: Readonly<Record<UsedBy, string>> = {
  account: 'You',
  enterprise: 'The enterprise itself',
  everybody: 'All of its people',
};

/** How much is kept, what is nearest to its limit first. */
function usagePanel(usage: readonly UsageRecord[]): Html {
  const rows = usage.toSorted((one, other) => other.used / other.limit - one.used / one.limit);
  return html`<section class="panel stack" aria-labelledby="usage-title">
    <h2 id="usage-title">Usage</h2>
    <p class="quiet">What would go over a limit is refused. Whoever runs this control plane can raise the limits.</p>
    ${dataTable<UsageRecord>({
      caption: 'What is kept, and how much may be',
      rows,
      columns: [
        { title: 'What', cell: ({ what }) => what },
        { title: 'Of', cell: ({ of }) => WHOSE[of] },
        { title: 'Used', cell: ({ kind, used }) => formatQuota(kind, used) },
        { title: 'Limit', cell: ({ kind, limit }) => formatQuota(kind, limit) },
      ],
    })}
  </section>`;
}

const DELETION = html`<section class="panel stack" aria-labelledby="deletion-title">
  <h2 id="deletion-title">Delete the enterprise</h2>
  <p class="quiet">For all of its members, with all that is theirs here. The next page shows what goes.</p>
  <div class="actions"><a class="button danger" href="/enterprise/delete">Delete…</a></div>
</section>`;

function currentSettings(settings: EnterpriseSettings): Html {
  const { allowed_domains: domains, allowed_providers: providers } = settings;
  return html`<div class="panel">
    ${definitionList([
      ['Name', settings.name],
      ['Billing email', settings.billing_email ?? 'none'],
      ['Email domains', domains.length === 0 ? 'any' : domains.join(', ')],
      ['Ways to sign in', providers === null ? 'all configured ones' : providers.join(', ') || 'none'],
      ['Single sign-on', settings.sso_required ? 'required' : 'not required'],
      ['Joining by domain', JOINING[settings.domain_joining]],
      ...ownProvider(settings, 'Own provider'),
      ['MCP clients of the provider', settings.provider_mcp_clients.join(', ') || 'none'],
      ['Id', html`<code>${settings.id}</code>`],
    ])}
  </div>`;
}

/** The provider's name and domains, for people who cannot change it. */
function ownProvider({ oidc, saml }: EnterpriseSettings, label: string): (readonly [string, string | Html | null])[] {
  const issuer = oidc?.issuer ?? saml?.entity_id;
  return [
    [label, issuer === undefined ? 'none' : html`<code>${issuer}</code>`],
    ['Its domains', (oidc ?? saml)?.domains.join(', ') ?? null],
  ];
}

function settingsForm(view: EnterpriseView): Html {
  const { form, methods, settings } = view;
  return html`${formRefusal(form, SHOWN)} ${view.unsaved === null ? '' : differenceTable(view.unsaved, settingLabel)}
    <form class="stack" method="post" action="/enterprise">
      ${revisionField(view.revision)}
      <section class="panel stack" aria-labelledby="general-title">
        <h2 id="general-title">General</h2>
        ${textField(form, { name: 'name', label: 'Name', isRequired: true, maxLength: 200 })}
        ${textField(form, { name: 'billing_email', label: 'Billing email (optional)', maxLength: 254 })}
        <p class="quiet small">Id <code>${settings.id}</code></p>
      </section>
      <section class="panel stack" aria-labelledby="sign-in-title">
        <h2 id="sign-in-title">Who signs in</h2>
        ${textArea(form, {
          name: 'allowed_domains',
          label: 'Email domains',
          hint: 'One per line; only verified addresses of these can sign in. Empty: any.',
          rows: 3,
          isMono: true,
        })}
        ${waysField(form, methods)}
        ${checkboxField(form, {
          name: 'sso_required',
          label: 'Single sign-on is required',
          hint: 'Everybody must use the provider below. Users who signed in another way are signed out.',
        })}
        ${radioField(form, {
          name: 'domain_joining',
          label: 'Joining by a proven domain',
          choices: DOMAIN_JOINING.map((value) => ({ value, title: JOINING[value] })),
        })}
      </section>
      ${view.isLocal ? '' : mcpClientsSection(form)}
      ${view.isOwner ? html`${providerSection(view)} ${samlSection(view)}` : providerAsItIs(view.settings)}
      <div class="actions"><button class="primary">Save the settings</button></div>
    </form>`;
}

/** An admin's too: the clients get no more than the members of the enterprise have. */
function mcpClientsSection(form: FormState): Html {
  return html`<section class="panel stack" aria-labelledby="mcp-clients-title">
    <h2 id="mcp-clients-title">MCP clients that your OpenID provider connects</h2>
    <p class="quiet">
      The provider vouches for a member to these clients (ID-JAG), and they get the member’s tools at
      <code>/mcp</code> without asking the member. Members see and disconnect them under Sign-ins and tokens.
    </p>
    ${textArea(form, {
      name: 'provider_mcp_clients',
      label: 'MCP clients of the provider',
      hint: 'One per line: the URL of a client’s metadata document, or the client_id that it registered here. Empty: none.',
      rows: 3,
      isMono: true,
    })}
  </section>`;
}

/** For admins, who cannot change it: their form has no fields for it. */
function providerAsItIs(settings: EnterpriseSettings): Html {
  return html`<section class="panel stack" aria-labelledby="provider-title">
    <h2 id="provider-title">Your own provider</h2>
    <p class="quiet">Only an owner can change it, because whoever runs it can sign in as any user.</p>
    ${definitionList(ownProvider(settings, 'Issuer'))}
  </section>`;
}

function waysField(form: FormState, methods: readonly Choice[]): Html {
  const isWrong = form.problems.some(({ field }) => field.startsWith('allowed_providers'));
  const choices = [
    { value: 'every', title: 'All configured ways' },
    { value: 'these', title: 'Only the selected ways' },
  ];
  return html`${radioField(form, { name: 'providers', label: 'Ways to sign in', choices, hint: 'In addition to the provider below.' })}
    <fieldset class="field" ${isWrong ? html`aria-describedby="allowed_providers-problem"` : ''}>
      <legend class="hidden-but-read">Selected ways</legend>
      <div class="scopes">
        ${methods.map(({ value, title }) => checkboxField(form, { name: PROVIDER_FIELD + value, label: title }))}
      </div>
      ${problemOf(form, 'allowed_providers')}
    </fieldset>`;
}

function providerSection({ form, settings, origin }: EnterpriseView): Html {
  const { oidc, id } = settings;
  const callback = `/auth/${id}/callback`;
  return html`<section class="panel stack" aria-labelledby="provider-title">
    <h2 id="provider-title">Your own provider (OpenID Connect)</h2>
    <p class="quiet">Only an owner can change it, because whoever runs it can sign in as any user. Empty: none.</p>
    ${
      origin === null
        ? ''
        : html`<p class="small">Register this redirect URL with the provider:</p>
            ${codeBlock(origin + callback)}`
    }
    ${textField(form, { name: 'oidc_issuer', label: 'Issuer', placeholder: 'https://id.acme.com', isMono: true })}
    ${textField(form, { name: 'oidc_client_id', label: 'Client id', isMono: true })}
    ${textField(form, {
      name: 'oidc_client_secret',
      label: 'Client secret',
      hint:
        oidc === null ? 'No page shows it again.' : 'Empty: keeps the stored secret, for the same issuer and client.',
      isSecret: true,
      isMono: true,
    })}
    ${textArea(form, {
      name: 'oidc_domains',
      label: 'Its domains',
      hint: html`One per line; users with these addresses sign in with this provider. Each new domain must serve
        <code>${id}</code> as a line of <code>${PROOF_PATH}</code>`,
      rows: 3,
      isMono: true,
    })}
  </section>`;
}

function samlSection({ form, settings, origin }: EnterpriseView): Html {
  const { saml, id } = settings;
  return html`<section class="panel stack" aria-labelledby="saml-title">
    <h2 id="saml-title">Your own provider (SAML 2.0)</h2>
    <p class="quiet">Instead of OpenID Connect. The provider must sign its assertions.</p>
    ${
      origin === null
        ? ''
        : html`<p class="small">Give the provider our metadata:</p>
            ${codeBlock(`${origin}/auth/${id}/metadata`)}`
    }
    ${saml === null ? '' : storedSaml(saml)}
    ${textField(form, {
      name: 'saml_metadata_url',
      label: 'SAML metadata URL',
      hint: `Read once, when you save. ${saml === null ? 'Or paste the document below.' : 'Empty: keeps the stored provider.'}`,
      isMono: true,
    })}
    ${textArea(form, { name: 'saml_metadata', label: 'SAML metadata (XML)', rows: 3, isMono: true })}
    ${textArea(form, {
      name: 'saml_domains',
      label: 'SAML domains',
      hint: 'One per line; as for OpenID Connect, each new domain must be proved.',
      rows: 3,
      isMono: true,
    })}
    ${saml === null ? '' : checkboxField(form, { name: 'saml_remove', label: 'Remove the SAML provider' })}
  </section>`;
}

function storedSaml(saml: NonNullable<EnterpriseSettings['saml']>): Html {
  return definitionList([
    ['Entity id', html`<code>${saml.entity_id}</code>`],
    ['Sign-in page', html`<code>${saml.sso_url}</code>`],
    ['Certificates (SHA-256)', html`${saml.certificates.map((it) => html`<code>${it}</code> `)}`],
  ]);
}
