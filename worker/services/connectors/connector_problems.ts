import { programOfLogin } from '../../../shared/model/connector.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorSummaryRow, WithCredential } from '../../store/connectors.ts';

type Named = Pick<ConnectorSummaryRow, 'id' | 'fqn'>;

/** The page where a signed-in browser starts an authorisation. */
function authorisePath(connectorId: string): string {
  return `/auth/connectors/${connectorId}/authorize`;
}

/** Why a connector's credential cannot be used, judged by its row; null if it may be. */
export function credentialProblem({ connector, credential }: WithCredential<ConnectorSummaryRow>): ApiError | null {
  if (credential === null) return nothingStoredError(connector);
  if (credential.state === 'ready') return null;
  return credential.state === 'authorisation_required'
    ? notAuthorisedError(connector)
    : reauthorisationRequired(connector);
}

export function nothingStoredError({ id, fqn }: Named): ApiError {
  const message = `${fqn} has no credential: store one with PUT /v1/connectors/${id}/credential, or name a stored secret there`;
  return apiError('binding_required', message, { connector_id: id });
}

function notAuthorisedError(connector: Named): ApiError {
  const message = `${connector.fqn} is not authorised yet: ${authorisationHint(connector)}`;
  return apiError('binding_required', message, authoriseDetails(connector));
}

export function reauthorisationRequired(connector: Named): ApiError {
  const message = `the provider no longer accepts the authorisation of ${connector.fqn}: ${authorisationHint(connector)}`;
  return apiError('reauthorisation_required', message, authoriseDetails(connector));
}

/** Only the path: a URL made from the Host header could point to somebody else's host. */
function authorisationHint({ id, fqn }: Named): string {
  const program = programOfLogin(fqn);
  if (program !== null) return `log in with ${program} itself, then run "svc login ${program} --import"`;
  return `run "svc connector authorize ${fqn}", or open ${authorisePath(id)} on the control plane`;
}

function authoriseDetails({ id }: Named): Readonly<Record<string, unknown>> {
  return { connector_id: id, authorise_path: authorisePath(id) };
}

/** `name`: of the connector or MCP server with this credential. */
export function providerFailed({ name }: { readonly name: string }, why: string): ApiError {
  return apiError('oauth_provider_failed', `${name} has no valid access token: ${why}`);
}
