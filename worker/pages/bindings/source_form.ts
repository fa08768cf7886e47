import { html } from 'hono/html';
import { SOURCE_KINDS, type SourceKind } from '../../../shared/model/source_kind.ts';
import { requiredSourceFields, SOURCE_FIELDS, type SourcePlan } from '../../../shared/wire/secret_sources.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { tabs } from '../components/tabs.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from './owner_field.ts';
import { placeOf, planPanel } from './source.ts';
import { choicesOf, SOURCE_FIELD_WORDS, SOURCE_TITLES } from './source_words.ts';

interface SourceFormView {
  readonly form: FormState;
  readonly kind: SourceKind;
  /** What the source in the form would mint, after a dry run. */
  readonly plan: SourcePlan | null;
  readonly owners: OwnerChoice;
}

/** The form of a source: its kind, then the fields of that kind. The key is never returned, not even after an error. */
export function sourceFormPage({ form, kind, plan, owners }: SourceFormView): Page {
  const { path, owner } = form.values;
  const above = placeOf(path ?? '');
  const content = html`${pageHeader({ title: 'Add a minted secret', above, lead: 'A provider issues the value when a request needs it, and it ends after minutes.' })}
    ${tabs(
      'Who issues the value',
      SOURCE_KINDS.map((each) => ({
        path: pathWith('/secrets/sources/new', { kind: each, path, owner }),
        title: SOURCE_TITLES[each].title,
        isCurrent: each === kind,
      })),
    )}
    <p>${SOURCE_TITLES[kind].lead}</p>
    ${formRefusal(form, ['path', 'key', 'description', 'owner', ...Object.keys(SOURCE_FIELDS[kind])])}
    ${plan === null ? '' : planPanel(plan)}
    <form class="panel stack" method="post" action="/secrets/sources">
      <input type="hidden" name="kind" value="${kind}" />
      ${textField(form, { name: 'path', label: 'Path', hint: html`The name in bindings, such as <code>ci/github</code> for <code>vault://ci/github</code>`, isRequired: true, isMono: true, maxLength: 255 })}
      ${kindFields(form, kind)}
      ${textField(form, { name: 'key', label: 'Key', hint: keyHint(kind, plan !== null), isSecret: true, isMono: true })}
      ${textField(form, { name: 'description', label: 'Description (optional)', maxLength: 500 })}
      ${ownerField(form, owners)}
      <div class="actions">
        <button class="primary" name="do" value="store">Store</button>
        <button name="do" value="plan">Dry run</button>
        <a class="button" href="${above.path}">Cancel</a>
      </div>
      <p class="quiet small">A dry run asks no provider and stores nothing.</p>
    </form>`;
  return layout('Add a minted secret', content, 'narrow');
}

const SEVERAL =
  'With a client secret or an actor token: a JSON object with private_key or token, client_secret and actor_token, as needed.';
const VAULT_KEY = 'The token, the secret id of the AppRole, or the private key that signs the JWT, in PEM.';

const KEYS: { readonly [K in SourceKind]: string } = {
  client_credentials: 'The client secret, or the private key of private_key_jwt.',
  jwt_bearer: `The private key, in PEM. ${SEVERAL}`,
  token_exchange: `The private key in PEM that signs for issuer and subject; without the two, the token to exchange. ${SEVERAL}`,
  google_service_account: 'The private key of the account, in PEM: private_key in its key file.',
  github_app: 'The private key of the app, in PEM: the file that GitHub gave you.',
  aws_assume_role: 'The secret access key of the caller.',
  aws_web_identity: 'The private key, in PEM, whose public key the issuer publishes.',
  vault_lease: VAULT_KEY,
  vault_kv: VAULT_KEY,
  aws_secrets_manager: 'The secret access key of the caller.',
  google_secret_manager: 'The private key of the account, in PEM: private_key in its key file.',
  onepassword_connect: 'A token of the Connect server that may read the vault.',
  doppler: 'A service token of the config, or another token that may read it.',
  infisical: 'The client secret of the machine identity.',
};

function keyHint(kind: SourceKind, isAgain: boolean): string {
  return `${KEYS[kind]} No page shows it again${isAgain ? '; type it again to store the source' : ''}. To change a source, give it again.`;
}

function kindFields(form: FormState, kind: SourceKind): Html {
  const required = requiredSourceFields(kind);
  const names = Object.keys(SOURCE_FIELDS[kind]);
  const isRare = (name: string) => SOURCE_FIELD_WORDS[name]?.isRare === true && !required.has(name);
  const rare = names.filter((name) => isRare(name));
  const isUsed = (name: string) =>
    (form.values[name] ?? '') !== '' || form.problems.some(({ field }) => field.split('.')[0] === name);
  const [often, seldom] = [names.filter((name) => !isRare(name)), rare].map((each) =>
    each.map((name) => kindField(form, kind, name, required.has(name))),
  );
  if (rare.length === 0) return html`${often}`;
  return html`${often}
    <details class="more" ${rare.some((name) => isUsed(name)) ? 'open' : ''}>
      <summary>${rare.map((name) => SOURCE_FIELD_WORDS[name]?.label ?? name).join(', ')}</summary>
      <div class="stack">${seldom}</div>
    </details>`;
}

function kindField(form: FormState, kind: SourceKind, name: string, isNeeded: boolean): Html {
  const { label = name, hint, placeholder } = SOURCE_FIELD_WORDS[name] ?? {};
  const choices = choicesOf(kind, name);
  const field = {
    name,
    label: isNeeded || choices !== null ? label : `${label} (optional)`,
    ...(hint !== undefined && { hint }),
    ...(placeholder !== undefined && { placeholder }),
    ...(isNeeded && { isRequired: true as const }),
  };
  if (choices !== null) return selectField(form, { ...field, choices });
  if (name === 'policy') return textArea(form, { ...field, rows: 4, isMono: true });
  return textField(form, { ...field, isMono: true });
}
