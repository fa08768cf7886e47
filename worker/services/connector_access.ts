import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { ConnectorRow, ConnectorSummaryRow, WithCredential } from '../store/connectors.ts';
import { findSealedSecret } from '../store/secrets.ts';
import { opened } from './secrets.ts';
import type { ServiceContext } from './service_context.ts';

/** Why a connector's credential cannot be used, as far as its row tells; null when it can. */
export function credentialProblem({ connector, credential }: WithCredential<ConnectorSummaryRow>): ApiError | null {
  return credential === null ? nothingStored(connector) : null;
}

/** What a connector's requests carry as bearer token. Refuses with `binding_required`. */
export async function connectorCredential(
  context: ServiceContext,
  { connector, credential }: WithCredential<ConnectorRow>,
): Promise<Result<Secret, ApiError>> {
  if (credential === null) return err(nothingStored(connector));
  const row = await findSealedSecret(context.database, credential);
  return row === null ? err(nothingStored(connector)) : ok(await opened(context, row));
}

function nothingStored({ id, fqn }: Pick<ConnectorRow, 'id' | 'fqn'>): ApiError {
  const message = `${fqn} has no credential: store one with PUT /v1/connectors/${id}/credential`;
  return apiError('binding_required', message, { connector_id: id });
}
