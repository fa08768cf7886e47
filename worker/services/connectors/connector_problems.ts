import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorSummaryRow, WithCredential } from '../../store/connectors.ts';

type Named = Pick<ConnectorSummaryRow, 'id' | 'fqn'>;

/** Where a signed-in browser begins an authorisation. */
export function authorisePath(connectorId: string): string {
  return `/auth/connectors/${connectorId}/authorize`;
}

/** Why a connector's credential cannot be used, as far as its row tells; null when it may be. */
export function credentialProblem({ connector, credential }: WithCredential<ConnectorSummaryRow>): ApiError | null {
  if (credential === null) return nothingStored(connector);
  if (credential.state === 'ready') return null;
  return credential.state === 'authorisation_required' ? notAuthorised(connector) : reauthorisationRequired(connector);
}

export function nothingStored({ id, fqn }: Named): ApiError {
  const message = `${fqn} has no credential: store one with PUT /v1/connectors/${id}/credential`;
  return apiError('binding_required', message, { connector_id: id });
}

function notAuthorised(connector: Named): ApiError {
  const message = `${connector.fqn} was not authorised yet: ${howToAuthorise(connector)}`;
  return apiError('binding_required', message, authoriseDetails(connector));
}

export function reauthorisationRequired(connector: Named): ApiError {
  const message = `the provider does not take the authorisation of ${connector.fqn} any more: ${howToAuthorise(connector)}`;
  return apiError('reauthorisation_required', message, authoriseDetails(connector));
}

/** The path alone: a link made of the name a call came by could be somebody else's. */
function howToAuthorise({ id, fqn }: Named): string {
  return `run "svc connector authorize ${fqn}", or open ${authorisePath(id)} on the control plane`;
}

function authoriseDetails({ id }: Named): Readonly<Record<string, unknown>> {
  return { connector_id: id, authorise_path: authorisePath(id) };
}

/** `name`: of the connector or MCP server that the credential is of. */
export function providerFailed({ name }: { readonly name: string }, why: string): ApiError {
  return apiError('oauth_provider_failed', `${name} has no access token now: ${why}`);
}
