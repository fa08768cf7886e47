import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorSummaryRow, WithCredential } from '../../store/connectors.ts';
import { findSealedSecret } from '../../store/secrets.ts';
import { credentialProblem, nothingStoredError } from './connector_problems.ts';
import { accessToken } from '../oauth/oauth_access_token.ts';
import { currentValue } from '../sources/minted_value.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** The bearer token of a connector's requests: its API key or a current access token, never a refresh token. */
export interface ConnectorAccess {
  readonly token: Secret;
  /** Expiry of an access token. */
  readonly expiresAt: string | null;
  /** The version of the vault entry that it came from. */
  readonly secret: { readonly id: string; readonly version: number };
}

/** Refuses with `binding_required`, `reauthorisation_required`, `oauth_provider_failed`, `credential_unavailable`. */
export async function connectorAccess(
  context: ServiceContext,
  row: WithCredential<ConnectorSummaryRow>,
): Promise<Result<ConnectorAccess, ApiError>> {
  const { connector, credential } = row;
  const problem = credentialProblem(row);
  if (problem !== null || credential === null) return err(problem ?? nothingStoredError(connector));
  if (credential.kind === 'oauth2') return accessToken(context, connector.id);
  const secret = await findSealedSecret(context.database, credential);
  if (secret === null) return err(nothingStoredError(connector));
  const current = await currentValue(context, secret);
  return current.ok ? ok({ token: current.value.secret, expiresAt: current.value.expiresAt, secret }) : current;
}
