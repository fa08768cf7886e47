import { ok } from '../../../shared/model/result.ts';
import { parseVaultReference } from '../../../shared/model/vault_path.ts';
import { listFittingSecrets } from '../../../shared/resolve/sent_secrets.ts';
import { toHostBinding } from '../../../shared/wire/host_binding.ts';
import type { ConnectorSpecRecord } from '../../../shared/wire/connectors/connector_spec.ts';
import type { ConnectorRecord, InstallReply } from '../../../shared/wire/connectors/connectors.ts';
import { ownerQuery } from '../../../shared/wire/secrets.ts';
import { listQueryOf } from '../../pages/components/arranged_list.ts';
import { EMPTY_FORM, type FormState, utcTime } from '../../pages/components/form_field.ts';
import { connectorPage, connectorRemovalPage } from '../../pages/connectors/connector.ts';
import { connectorsPage, installPage, type InstallView } from '../../pages/connectors/connectors.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { type Caller, mayActAs, ownerId } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { previewConnectorRemoval } from '../../services/vault/removal_preview.ts';
import { describeVaultUse } from '../../services/vault/credential_uses.ts';
import {
  getConnector,
  installConnector,
  listConnectorPage,
  removeConnector,
  validateConnector,
} from '../../services/connectors/connectors.ts';
import { addJsonRule } from '../../services/connectors/add_json_rule.ts';
import { readSpecText, type SpecProblem } from '../../services/connectors/read_spec_text.ts';
import { describeNames } from '../../services/audit/names.ts';
import { listAllHostBindings } from '../../services/bindings/host_bindings.ts';
import { CALLBACK_PATH, beginAuthorisation } from '../../services/oauth/oauth_authorisation.ts';
import { advanceDevice } from '../../services/oauth/oauth_device.ts';
import { revokeBefore } from '../../services/oauth/oauth_revocation.ts';
import { matchNewest } from '../../services/connectors/match_newest.ts';
import type { AppContext } from '../http/app_env.ts';
import { redirectOrigin } from '../api/connector_authorisation.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  toRefusedForm,
  dropEmpty,
  ownerChoice,
} from './console.ts';
import { consolePage } from './pages.ts';
import { connectorCredentialInput } from '../../../shared/wire/connectors/connector_credentials.ts';
import {
  CREDENTIAL_SECRETS,
  credentialDeletionPage,
  deviceCodePage,
} from '../../pages/connectors/connector_credential.ts';
import {
  removeConnectorCredential,
  storeConnectorCredential,
} from '../../services/connectors/connector_credentials.ts';

/** `GET /connectors?q=&sort=&page=` */
export const getConnectorsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const [connectors, use] = await Promise.all([
    readAll((query) => listConnectorPage(context, caller, query)),
    describeVaultUse(context, caller),
  ]);
  const query = listQueryOf(c.req.query());
  const view = { connectors, query, use, done: c.req.query('done'), nowMs: context.clock.now() };
  return consolePage(c, caller, connectorsPage(view));
});

/** `GET /connectors/install`: with `from`, the spec of an installed connector, to change it. */
export const getSpecForm = forReader(async (c, caller) => {
  const from = c.req.query('from') ?? '';
  if (from === '') return consolePage(c, caller, specPage(c, caller, { form: EMPTY_FORM }));
  const installed = await getConnector(c.get('context'), caller, from);
  if (!installed.ok) return problem(c, caller, installed.error);
  const { id, owner, spec } = installed.value;
  return answerChecked(c, caller, { from: id, owner, spec: textOfSpec(spec) }, spec);
});

function textOfSpec(spec: ConnectorSpecRecord): string {
  return JSON.stringify(spec, null, 2);
}

type SpecView = Partial<InstallView> & Pick<InstallView, 'form'>;

/** A form that was begun at an installed connector leads back to it. */
function specPage(c: AppContext, caller: Caller, view: SpecView, fqn?: string): Page {
  const { from = '' } = view.form.values;
  const changed = /^con_\w+$/.test(from) ? { id: from, fqn: fqn ?? 'Connector' } : null;
  return installPage({ specProblems: [], checked: null, changed, owners: ownerChoice(c, caller), ...view });
}

/** `POST /connectors`: installs the spec, only checks it, or adds a rule to it. */
export const submitSpec = forChange(async (c, caller, fields) => {
  const spec = readSpecText(fields['spec'] ?? '');
  if (!spec.ok) return formAgain(c, caller, specPage(c, caller, wrongSpec(fields, spec.error)));
  if (fields['step'] === 'check') return answerChecked(c, caller, fields, spec.value);
  if (fields['step'] === 'rule') return answerRule(c, caller, fields, spec.value);
  const owner = ownerQuery.safeParse({ owner: fields['owner'] });
  if (!owner.success) {
    const form = invalidForm(fields, owner.error);
    return formAgain(c, caller, specPage(c, caller, { form }));
  }
  const installed = await installConnector(c.get('context'), caller, owner.data.owner, spec.value);
  if (installed.ok) return answerInstalled(c, caller, installed.value.value.reply);
  const form = toRefusedForm(fields, installed.error);
  return formAgain(c, caller, specPage(c, caller, { form }), installed.error);
});

/** Newly allowed hosts are shown once, here: the connector's page does not know the previous version. */
async function answerInstalled(c: AppContext, caller: Caller, { warnings, ...connector }: InstallReply) {
  if (warnings.length === 0) return redirectDone(c, `/connectors/${connector.id}`, 'connector_installed');
  return consolePage(c, caller, await connectorView(c, caller, connector, { warnings, done: 'connector_installed' }));
}

/** The text with the rule, and which requests each operation would have matched. */
async function answerRule(c: AppContext, caller: Caller, fields: Fields, spec: ConnectorSpecRecord) {
  const changed = addJsonRule(spec, {
    operation: fields['rule_operation'] ?? '',
    pointer: fields['rule_pointer'] ?? '',
    equals: fields['rule_equals'] ?? '',
    atLeast: fields['rule_at_least'] ?? '',
    atMost: fields['rule_at_most'] ?? '',
  });
  if (changed.ok) {
    const { from = '', owner = '', rule_operation: operation = '' } = fields;
    const kept = { from, owner, rule_operation: operation, spec: textOfSpec(changed.value) };
    return answerChecked(c, caller, kept, changed.value);
  }
  const form = { values: fields, problems: changed.error, refusal: null };
  return formAgain(c, caller, specPage(c, caller, { form }));
}

async function answerChecked(c: AppContext, caller: Caller, fields: Fields, spec: ConnectorSpecRecord) {
  const checked = await validateConnector(spec);
  if (checked.ok) {
    const matches = await matchNewest(c.get('context'), caller, spec);
    const view = { form: { ...EMPTY_FORM, values: fields }, checked: { reply: checked.value, matches } };
    return consolePage(c, caller, specPage(c, caller, view, spec.connector.fqn));
  }
  return formAgain(c, caller, specPage(c, caller, { form: toRefusedForm(fields, checked.error) }), checked.error);
}

function wrongSpec(fields: Fields, specProblems: readonly SpecProblem[]) {
  const count = specProblems.length === 1 ? 'a problem, which is' : `${specProblems.length} problems, which are`;
  const problems = [{ field: 'spec', message: `has ${count} listed above` }];
  return { form: { values: fields, problems, refusal: null }, specProblems };
}

/** `GET /connectors/{id}`. Also redeems the code of a device authorisation. */
export const getConnectorPage = forReader(async (c, caller) => {
  const id = c.req.param('id') ?? '';
  await advanceDevice(c.get('context'), caller, id);
  const connector = await getConnector(c.get('context'), caller, id);
  if (!connector.ok) return problem(c, caller, connector.error);
  return consolePage(c, caller, await connectorView(c, caller, connector.value));
});

/** The page of a connector, with the form for its credential. */
async function connectorView(
  c: AppContext,
  caller: Caller,
  connector: ConnectorRecord,
  shown: { readonly form?: FormState; readonly warnings?: readonly string[]; readonly done?: string } = {},
) {
  const context = c.get('context');
  const origin = redirectOrigin(context, c.req.url);
  const validated = await validateConnector(connector.spec);
  return connectorPage({
    connector,
    nameOf: await describeNames(context, caller, [connector.installed_by]),
    warnings: shown.warnings ?? (validated.ok ? validated.value.warnings : []),
    isWritable: connector.owner === 'personal' || mayActAs(caller, 'admin'),
    references: await listServing(c, caller, connector),
    redirectUrl: origin.ok ? origin.value.origin + CALLBACK_PATH : null,
    form: shown.form ?? EMPTY_FORM,
    done: shown.done ?? c.req.query('done'),
    nowMs: context.clock.now(),
  });
}

/** The secrets of its owner that fit a connector; not those that the service stores itself. */
async function listServing(c: AppContext, caller: Caller, { owner, credential, hosts }: ConnectorRecord) {
  if (credential.kind !== 'api_key') return [];
  const bindings = await listAllHostBindings(c.get('context'), [ownerId(caller, owner)]);
  const fitting = listFittingSecrets(bindings.map(toHostBinding), hosts).map(({ reference }) => reference);
  return fitting.filter((reference) => parseVaultReference(reference).ok);
}

/** `/connectors/{id}/remove` */
export const connectorRemoval = confirmedChange({
  find: async (c, caller) => {
    const context = c.get('context');
    const id = c.req.param('id') ?? '';
    const preview = await previewConnectorRemoval(context, caller, id);
    return preview.ok ? ok({ id, preview: preview.value, nowMs: context.clock.now() }) : preview;
  },
  name: ({ preview }) => preview.name,
  page: connectorRemovalPage,
  make: (context, caller, { id }) => revokeBefore(context, caller, id, () => removeConnector(context, caller, id)),
  happened: 'removed',
  next: (_, { left }) => ['/connectors', left ? 'connector_removed_tokens_valid' : 'connector_removed'],
});

/** `POST /connectors/{id}/credential` */
export const submitCredential = forChange(async (c, caller, fields) => {
  const context = c.get('context');
  const connector = await getConnector(context, caller, c.req.param('id') ?? '');
  if (!connector.ok) return problem(c, caller, connector.error);
  const { id, credential } = connector.value;
  const parsed = connectorCredentialInput.safeParse({ ...inputOf(fields), kind: credential.kind });
  if (!parsed.success) {
    const form = invalidForm(fields, parsed.error, CREDENTIAL_SECRETS);
    return formAgain(c, caller, await connectorView(c, caller, connector.value, { form }));
  }
  const stored = await storeConnectorCredential(context, caller, id, parsed.data);
  if (stored.ok) return redirectDone(c, `/connectors/${id}`, 'credential_stored');
  const form = toRefusedForm(fields, stored.error, CREDENTIAL_SECRETS);
  return formAgain(c, caller, await connectorView(c, caller, connector.value, { form }), stored.error);
});

function inputOf(fields: Fields): Record<string, unknown> {
  const { scopes, expires_at: expires, ...plain } = dropEmpty(fields);
  return {
    ...plain,
    ...(expires !== undefined && { expires_at: utcTime(expires) }),
    ...(scopes !== undefined && { scopes: scopes.split(/\s+/).filter((scope) => scope !== '') }),
  };
}

/**
 * `POST /connectors/{id}/authorize`: with a device code. In a browser, use the link `/auth/connectors/{id}/authorize`.
 */
export const submitDeviceAuthorisation = forChange(async (c, caller) => {
  const context = c.get('context');
  const connector = await getConnector(context, caller, c.req.param('id') ?? '');
  if (!connector.ok) return problem(c, caller, connector.error);
  const origin = redirectOrigin(context, c.req.url);
  if (!origin.ok) return problem(c, caller, origin.error);
  const how = { grant: 'device' as const, ...origin.value };
  const begun = await beginAuthorisation(context, caller, connector.value.id, how);
  if (begun.ok && begun.value.grant === 'device') {
    return consolePage(c, caller, deviceCodePage(connector.value, begun.value));
  }
  if (begun.ok) throw new Error('a device authorisation returned no code');
  const form = toRefusedForm({}, begun.error);
  return formAgain(c, caller, await connectorView(c, caller, connector.value, { form }), begun.error);
});

/** `/connectors/{id}/credential/delete` */
export const credentialDeletion = confirmedChange({
  find: (c, caller) => getConnector(c.get('context'), caller, c.req.param('id') ?? ''),
  name: ({ fqn }) => fqn,
  page: credentialDeletionPage,
  make: (context, caller, { id }) =>
    revokeBefore(context, caller, id, () => removeConnectorCredential(context, caller, id)),
  happened: 'deleted',
  next: ({ id }, { left }) => [`/connectors/${id}`, left ? 'credential_deleted_tokens_valid' : 'credential_deleted'],
});
