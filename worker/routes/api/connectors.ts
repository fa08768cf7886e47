import { connectorCredentialInput } from '../../../shared/wire/connectors/connector_credentials.ts';
import { connectorSpec, connectorSpecJsonSchema } from '../../../shared/wire/connectors/connector_spec.ts';
import {
  connectorCredentialRecord,
  connectorParams,
  connectorRecord,
  connectorsPage,
  connectorsQuery,
  installReply,
  revocationReply,
  runReply,
  runRequest,
  validateReply,
} from '../../../shared/wire/connectors/connectors.ts';
import { ownerQuery } from '../../../shared/wire/secrets.ts';
import {
  removeConnectorCredential,
  storeConnectorCredential,
} from '../../services/connectors/connector_credentials.ts';
import { runOperation } from '../../services/connectors/run_operation.ts';
import {
  getConnector as findConnector,
  installConnector,
  listConnectorPage,
  removeConnector,
  validateConnector,
} from '../../services/connectors/connectors.ts';
import { revokeConnectorTokens } from '../../services/oauth/oauth_revocation.ts';
import { advanceDevice } from '../../services/oauth/oauth_device.ts';
import type { AppContext } from '../http/app_env.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { previewConnectorRemoval } from '../../services/vault/removal_preview.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postConnector = forUser({
  summary: 'Install a connector spec',
  description:
    'The body is the spec. Another version replaces the installed one; other content under the same version is refused with connector_version_conflict.',
  query: ownerQuery,
  body: connectorSpec,
  replies: { 201: installReply, 200: installReply },
  async handle({ context, who, query, body }) {
    const installed = await installConnector(context, who, query.owner, body);
    return changeReply(installed, ({ reply, isNew }) => ({ status: isNew ? 201 : 200, json: reply }));
  },
});

export const postConnectorValidation = forUser({
  summary: 'Check a connector spec without installing it',
  body: connectorSpec,
  replies: { 200: validateReply },
  async handle({ body }) {
    return jsonReply(await validateConnector(body));
  },
});

export const getConnectors = forUser({
  summary: 'List connectors, without their operations',
  query: connectorsQuery,
  replies: { 200: connectorsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listConnectorPage(context, who, query));
  },
});

export const getConnector = forUser({
  summary: 'Get a connector with its spec',
  description: 'If its credential is being authorised with a device code, this call also redeems the code.',
  params: connectorParams,
  replies: { 200: connectorRecord },
  async handle({ context, who, params }) {
    await advanceDevice(context, who, params.id);
    return jsonReply(await findConnector(context, who, params.id));
  },
});

export const deleteConnector = forUser({
  summary: 'Remove a connector and its credential',
  params: connectorParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return changeReply(await removeConnector(context, who, params.id), () => ({ status: 204 }));
  },
});

export const getConnectorDeletion = forUser({
  summary: 'Show what deleting a connector would do',
  description:
    'Names what would stop working, and what would apply instead. Changes nothing. Needs the scope of the deletion itself.',
  params: connectorParams,
  replies: { 200: removalPreview },
  async handle({ context, who, params }) {
    return jsonReply(await previewConnectorRemoval(context, who, params.id));
  },
});

export const putConnectorCredential = forUser({
  summary: "Store a connector's credential",
  description: 'Replaces an earlier one. No reply ever contains a value.',
  params: connectorParams,
  body: connectorCredentialInput,
  replies: { 200: connectorCredentialRecord },
  async handle({ context, who, params, body }) {
    const stored = await storeConnectorCredential(context, who, params.id, body);
    return changeReply(stored, (credential) => ({ status: 200, json: credential }));
  },
});

export const deleteConnectorCredential = forUser({
  summary: "Delete a connector's credential",
  params: connectorParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changeReply(await removeConnectorCredential(context, who, params.id), () => ({ status: 204 }));
  },
});

export const postConnectorRevocation = forUser({
  summary: "Revoke a connector's tokens at their provider",
  description:
    'Sends the refresh token, else the access token, to the revocation URL that was stored with it (RFC 7009). Deletes nothing; if the provider revokes the tokens, they are not used any more.',
  params: connectorParams,
  replies: { 200: revocationReply },
  async handle({ context, who, params }) {
    return jsonReply(await revokeConnectorTokens(context, who, params.id));
  },
});

export const postConnectorRun = forUser({
  summary: 'Run an operation of a connector',
  description:
    "Sends the operation's request with the connector's credential. Returns the upstream's status, content type and body, sanitised and scrubbed of the credential.",
  body: runRequest,
  replies: { 200: runReply },
  async handle({ context, who, body }) {
    return jsonReply(await runOperation(context, who, body));
  },
});

export const SPEC_SCHEMA_PATH = '/schemas/connector-spec-1.json';

/** The JSON Schema of specs, for editors; public. */
export function getConnectorSpecSchema(c: AppContext): Response {
  const schema = connectorSpecJsonSchema(new URL(SPEC_SCHEMA_PATH, c.req.url).href);
  return c.json(schema, 200, { 'content-type': 'application/schema+json', 'cache-control': 'max-age=300' });
}
