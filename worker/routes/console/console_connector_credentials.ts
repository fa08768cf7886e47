import { connectorCredentialInput } from '../../../shared/wire/connector_credentials.ts';
import {
  CREDENTIAL_SECRETS,
  credentialDeletionPage,
  deviceCodePage,
} from '../../pages/connectors/connector_credential.ts';
import {
  removeConnectorCredential,
  storeConnectorCredential,
} from '../../services/connectors/connector_credentials.ts';
import { getConnector } from '../../services/connectors/connectors.ts';
import { beginAuthorisation } from '../../services/oauth/oauth_authorisation.ts';
import { redirectOrigin } from '../api/connector_authorisation.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  invalidForm,
  problem,
  toRefusedForm,
  dropEmpty,
} from './console.ts';
import { connectorView } from './console_connectors.ts';
import { consolePage } from './pages.ts';

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
  const { scopes, ...plain } = dropEmpty(fields);
  return { ...plain, ...(scopes !== undefined && { scopes: scopes.split(/\s+/).filter((scope) => scope !== '') }) };
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
  make: (context, caller, { id }) => removeConnectorCredential(context, caller, id),
  happened: 'deleted',
  next: ({ id }) => [`/connectors/${id}`, 'credential_deleted'],
});
