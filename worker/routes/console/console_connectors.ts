import { err, ok, type Result } from '../../../shared/model/result.ts';
import { parseVaultReference } from '../../../shared/model/vault_path.ts';
import { listFittingSecrets } from '../../../shared/resolve/sent_secrets.ts';
import { toHostBinding } from '../../../shared/wire/host_binding.ts';
import type { ConnectorSpecRecord } from '../../../shared/wire/connectors/connector_spec.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorRecord, InstallReply } from '../../../shared/wire/connectors/connectors.ts';
import { ownerQuery } from '../../../shared/wire/secrets.ts';
import { listQueryOf } from '../../pages/components/arranged_list.ts';
import { EMPTY_FORM, type FormState, utcTime } from '../../pages/components/form_field.ts';
import { connectorPage, connectorRemovalPage } from '../../pages/connectors/connector.ts';
import { connectorsPage, installPage, type InstallView } from '../../pages/connectors/connectors.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { type Caller, mayActAs, ownerId, writableOwner } from '../../kernel/caller.ts';
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

/** The connector that a form changes, as it is installed now; null in a form for a new one. */
type Changed = ConnectorRecord | null;

/** `GET /connectors/install`: with `from`, the spec of an installed connector, for those who may change it. */
export const getSpecForm = forReader(async (c, caller) => {
  const changed = await findChanged(c, caller, c.req.query('from') ?? '');
  if (!changed.ok) return problem(c, caller, changed.error);
  if (changed.value === null) return consolePage(c, caller, specPage(c, caller, { form: EMPTY_FORM }, null));
  const { id, spec, content_hash: read } = changed.value;
  return answerChecked(c, caller, { fields: { from: id, read, spec: textOfSpec(spec) }, changed: changed.value }, spec);
});

/** Refuses with `not_found`, `admin_required`. */
async function findChanged(c: AppContext, caller: Caller, from: string): Promise<Result<Changed, ApiError>> {
  if (from === '') return ok(null);
  const installed = await getConnector(c.get('context'), caller, from);
  if (!installed.ok) return installed;
  const owner = writableOwner(caller, installed.value.owner);
  return owner.ok ? installed : err(owner.error);
}

function textOfSpec(spec: ConnectorSpecRecord): string {
  return JSON.stringify(spec, null, 2);
}

type SpecView = Partial<InstallView> & Pick<InstallView, 'form'>;

function specPage(c: AppContext, caller: Caller, view: SpecView, changed: Changed): Page {
  return installPage({
    specProblems: [],
    checked: null,
    installedMeanwhile: null,
    changed,
    owners: ownerChoice(c, caller),
    ...view,
  });
}

/** `POST /connectors`: installs the spec, only checks it, or adds a rule to it. */
export const submitSpec = forChange(async (c, caller, fields) => {
  const found = await findChanged(c, caller, fields['from'] ?? '');
  if (!found.ok)
    return found.error.code === 'not_found'
      ? answerGone(c, caller, fields, found.error)
      : problem(c, caller, found.error);
  const changed = found.value;
  const spec = readSpecText(fields['spec'] ?? '');
  if (!spec.ok) return formAgain(c, caller, specPage(c, caller, wrongSpec(fields, spec.error), changed));
  const sent = { fields, changed };
  if (fields['step'] === 'check') return answerChecked(c, caller, sent, spec.value);
  if (fields['step'] === 'rule') return answerRule(c, caller, sent, spec.value);
  return changed === null
    ? installNew(c, caller, fields, spec.value)
    : installOver(c, caller, fields, { changed, spec: spec.value });
});

interface SentSpec {
  readonly fields: Fields;
  readonly changed: Changed;
}

async function installNew(c: AppContext, caller: Caller, fields: Fields, spec: ConnectorSpecRecord) {
  const owner = ownerQuery.safeParse({ owner: fields['owner'] });
  if (!owner.success) {
    const form = invalidForm(fields, owner.error);
    return formAgain(c, caller, specPage(c, caller, { form }, null));
  }
  const installed = await installConnector(c.get('context'), caller, owner.data.owner, spec);
  if (installed.ok) return answerInstalled(c, caller, installed.value.value.reply);
  const form = toRefusedForm(fields, installed.error);
  return formAgain(c, caller, specPage(c, caller, { form }, null), installed.error);
}

/** Installs the spec in the place of the one that the form showed. */
async function installOver(
  c: AppContext,
  caller: Caller,
  fields: Fields,
  { changed, spec }: { readonly changed: ConnectorRecord; readonly spec: ConnectorSpecRecord },
) {
  const { id, owner, fqn } = changed;
  if (spec.connector.fqn !== fqn) {
    const message = `names ${spec.connector.fqn}, but this form changes ${fqn}: install the other one as a new connector`;
    const form = { values: fields, problems: [{ field: 'spec', message }], refusal: null };
    return formAgain(c, caller, specPage(c, caller, { form }, changed));
  }
  const over = { id, content_hash: fields['read'] ?? '' };
  const installed = await installConnector(c.get('context'), caller, owner, spec, over);
  if (installed.ok) return answerInstalled(c, caller, installed.value.value.reply);
  if (installed.error.code === 'conflict') return answerConflict(c, caller, fields, installed.error);
  const form = toRefusedForm(fields, installed.error);
  return formAgain(c, caller, specPage(c, caller, { form }, changed), installed.error);
}

/** Shows the text beside the spec that somebody installed meanwhile; installing again replaces that one. */
async function answerConflict(c: AppContext, caller: Caller, fields: Fields, error: ApiError) {
  const now = await findChanged(c, caller, fields['from'] ?? '');
  if (!now.ok) return answerGone(c, caller, fields, now.error);
  if (now.value === null) throw new Error('a form that changes a connector names none');
  const form = { ...EMPTY_FORM, values: { ...fields, read: now.value.content_hash } };
  const view = { form, installedMeanwhile: textOfSpec(now.value.spec) };
  return formAgain(c, caller, specPage(c, caller, view, now.value), error);
}

/** The connector was removed meanwhile: the text stays, in the form for a new one. */
function answerGone(c: AppContext, caller: Caller, fields: Fields, error: ApiError) {
  const refusal = 'The connector that you changed was removed meanwhile. Installing the spec makes a new connector.';
  const form = { values: { ...fields, from: '', read: '' }, problems: [], refusal };
  return formAgain(c, caller, specPage(c, caller, { form }, null), error);
}

/** Newly allowed hosts are shown once, here: the connector's page does not know the previous version. */
async function answerInstalled(c: AppContext, caller: Caller, { warnings, ...connector }: InstallReply) {
  if (warnings.length === 0) return redirectDone(c, `/connectors/${connector.id}`, 'connector_installed');
  return consolePage(c, caller, await connectorView(c, caller, connector, { warnings, done: 'connector_installed' }));
}

/** The text with the rule, and which requests each operation would have matched. */
async function answerRule(c: AppContext, caller: Caller, { fields, changed }: SentSpec, spec: ConnectorSpecRecord) {
  const added = addJsonRule(spec, {
    operation: fields['rule_operation'] ?? '',
    pointer: fields['rule_pointer'] ?? '',
    equals: fields['rule_equals'] ?? '',
    atLeast: fields['rule_at_least'] ?? '',
    atMost: fields['rule_at_most'] ?? '',
  });
  if (added.ok) {
    const { from = '', read = '', owner = '', rule_operation: operation = '' } = fields;
    const kept = { from, read, owner, rule_operation: operation, spec: textOfSpec(added.value) };
    return answerChecked(c, caller, { fields: kept, changed }, added.value);
  }
  const form = { values: fields, problems: added.error, refusal: null };
  return formAgain(c, caller, specPage(c, caller, { form }, changed));
}

async function answerChecked(c: AppContext, caller: Caller, { fields, changed }: SentSpec, spec: ConnectorSpecRecord) {
  const checked = await validateConnector(spec);
  if (checked.ok) {
    const matches = await matchNewest(c.get('context'), caller, spec);
    const view = { form: { ...EMPTY_FORM, values: fields }, checked: { reply: checked.value, matches } };
    return consolePage(c, caller, specPage(c, caller, view, changed));
  }
  const form = toRefusedForm(fields, checked.error);
  return formAgain(c, caller, specPage(c, caller, { form }, changed), checked.error);
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
