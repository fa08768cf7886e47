import { enterpriseInput, type EnterpriseSettings } from '../../../shared/wire/enterprise.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { TICKED } from '../../pages/components/checkbox_field.ts';
import { type Choice, EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import {
  ENTERPRISE_SECRETS,
  enterprisePage,
  listUnsaved,
  PROVIDER_FIELD,
  settingsFields,
} from '../../pages/people/enterprise.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import { listUsage } from '../../services/people/usage.ts';
import { describeSettings, replaceSettings } from '../../sign_in/enterprise_settings.ts';
import { listMethods } from '../../sign_in/methods.ts';
import { PASSWORD } from '../../sign_in/password_identity.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  changedMeanwhile,
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  toRefusedForm,
} from './console.ts';
import { consolePage } from './pages.ts';
import { publicOrigin } from '../auth/public_origin.ts';

/** `GET /enterprise` */
export const getEnterprisePage = forReader(async (c, caller) => consolePage(c, caller, await settingsPage(c, caller)));

/** `POST /enterprise`: replaces the settings, if nobody has changed them since the form was read. */
export const submitSettings = forChange(async (c, caller, fields) => {
  const { revision = '' } = fields;
  const stored = await describeSettings(c.get('context'), caller);
  const parsed = enterpriseInput.safeParse(inputOf(fields, stored));
  if (!parsed.success) {
    const form = placeProblems(invalidForm(fields, parsed.error, ENTERPRISE_SECRETS));
    return formAgain(c, caller, await settingsPage(c, caller, { form, revision }));
  }
  const replaced = await replaceSettings(c.get('context'), caller, parsed.data, revision);
  if (replaced.ok) return redirectDone(c, '/enterprise', 'settings_changed');
  if (replaced.error.code === 'conflict') {
    return formAgain(c, caller, await settingsPage(c, caller, { overtaken: fields }), replaced.error);
  }
  const form = toExplainedForm(
    placeProblems(toRefusedForm(fields, replaced.error, ENTERPRISE_SECRETS)),
    replaced.error,
  );
  return formAgain(c, caller, await settingsPage(c, caller, { form, revision }), replaced.error);
});

/** What a person typed over the settings of a revision, or over settings that somebody has changed meanwhile. */
type Typed = { readonly form: FormState; readonly revision: string } | { readonly overtaken: Fields };

async function settingsPage(c: AppContext, caller: Caller, typed: Typed | null = null) {
  const context = c.get('context');
  const settings = await describeSettings(context, caller);
  const origin = publicOrigin(c);
  const used = mayActAs(caller, 'admin') ? await listUsage(context, caller) : [];
  return enterprisePage({
    settings,
    methods: waysToSignIn(context, settings.allowed_providers ?? []),
    isLocal: context.local !== null,
    isAdmin: mayActAs(caller, 'admin'),
    isOwner: mayActAs(caller, 'owner'),
    origin: origin.ok ? origin.value : null,
    ...formOf(settings, typed),
    done: c.req.query('done'),
    usage: used.filter((each) => each.of !== 'account' && each.used > 0),
  });
}

/** The stored settings, also for a form that was overtaken: saving what it has would undo the other change unseen. */
function formOf(settings: EnterpriseSettings, typed: Typed | null) {
  if (typed !== null && 'form' in typed) return { ...typed, unsaved: null };
  const values = settingsFields(settings);
  const refusal = typed === null ? null : changedMeanwhile('the settings');
  const unsaved = typed === null ? null : listUnsaved(values, typed.overtaken);
  return { form: { ...EMPTY_FORM, values, refusal }, revision: settings.revision ?? '', unsaved };
}

/** Configured providers, and those in the settings that are not configured, so that saving loses none. */
function waysToSignIn(context: ProgramContext, named: readonly string[]): Choice[] {
  const { providers, password } = listMethods(context);
  const known = providers.map(({ name, title }) => ({ value: name, title }));
  if (password) known.push({ value: PASSWORD, title: 'Password' });
  const others = named.filter((name) => !known.some(({ value }) => value === name));
  return [...known, ...others.map((name) => ({ value: name, title: `${name} (not set up)` }))];
}

function inputOf(fields: Fields, stored: EnterpriseSettings) {
  const ticked = Object.keys(fields).filter((name) => name.startsWith(PROVIDER_FIELD) && fields[name] === TICKED);
  return {
    name: fields['name'] ?? '',
    billing_email: (fields['billing_email'] ?? '') === '' ? null : fields['billing_email'],
    allowed_domains: lines(fields['allowed_domains']),
    allowed_providers: fields['providers'] === 'these' ? ticked.map((name) => name.slice(PROVIDER_FIELD.length)) : null,
    sso_required: fields['sso_required'] === TICKED,
    domain_joining: fields['domain_joining'],
    provider_mcp_clients: 'provider_mcp_clients' in fields ? lines(fields['provider_mcp_clients']) : undefined,
    oidc: PROVIDER_FIELDS.some((name) => name in fields) ? providerOf(fields) : toStoredProvider(stored),
    saml: SAML_FIELDS.some((name) => name in fields)
      ? samlOf(fields, stored)
      : stored.saml && { domains: stored.saml.domains },
  };
}

const PROVIDER_FIELDS = ['oidc_issuer', 'oidc_client_id', 'oidc_client_secret', 'oidc_domains'];

const SAML_FIELDS = ['saml_metadata_url', 'saml_metadata', 'saml_domains'];

/** Null if it is to be removed, or if there is none and no field is filled in. */
function samlOf(fields: Fields, { saml: stored }: EnterpriseSettings) {
  if (fields['saml_remove'] === TICKED) return null;
  const { saml_metadata_url: url = '', saml_metadata: metadata = '' } = fields;
  const domains = lines(fields['saml_domains']);
  if (url === '' && metadata === '' && domains.length === 0 && stored === null) return null;
  return { domains, ...(url !== '' && { metadata_url: url }), ...(metadata !== '' && { metadata }) };
}

/** The provider is unchanged if the form has no fields for it, as for an admin. */
function toStoredProvider({ oidc }: EnterpriseSettings) {
  return oidc && { issuer: oidc.issuer, client_id: oidc.client_id, domains: oidc.domains };
}

/** Null if no provider field is filled in. */
function providerOf(fields: Fields) {
  const { oidc_issuer: issuer = '', oidc_client_id: clientId = '', oidc_client_secret: secret = '' } = fields;
  const domains = lines(fields['oidc_domains']);
  if (issuer === '' && clientId === '' && secret === '' && domains.length === 0) return null;
  return { issuer, client_id: clientId, domains, ...(secret !== '' && { client_secret: secret }) };
}

function lines(text = ''): string[] {
  return text.split(/[\s,]+/).filter((line) => line !== '');
}

/** Maps problems of `oidc.issuer` and `saml.metadata` to the form's fields. */
function placeProblems(form: FormState): FormState {
  const problems = form.problems.map(({ field, message }) => ({ field: formField(field), message }));
  return { ...form, problems };
}

function formField(field: string): string {
  if (field.startsWith('provider_mcp_clients')) return 'provider_mcp_clients';
  return field === 'saml' ? 'saml_metadata' : field.replace(/^(oidc|saml)\./, '$1_');
}

/** Shows a refusal beside the field that it concerns. */
function toExplainedForm(form: FormState, error: ApiError): FormState {
  const field = fieldOf(error, form.values);
  if (field === null) return form;
  return { ...form, refusal: null, problems: [{ field, message: `cannot be saved: ${error.message}` }] };
}

function fieldOf({ code }: ApiError, values: Fields): string | null {
  const isSaml = (values['oidc_issuer'] ?? '') === '';
  if (code === 'domain_not_proven' || code === 'domain_taken') return isSaml ? 'saml_domains' : 'oidc_domains';
  if (code !== 'would_lock_out') return null;
  if (values['sso_required'] === TICKED) return 'sso_required';
  if (values['providers'] === 'these') return 'allowed_providers';
  return (values['allowed_domains'] ?? '') === '' ? (isSaml ? 'saml_metadata' : 'oidc_issuer') : 'allowed_domains';
}
