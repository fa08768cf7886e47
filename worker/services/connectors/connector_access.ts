import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorRow, ConnectorSummaryRow, WithCredential } from '../../store/connectors.ts';
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

/** A connector that a user's requests use. */
export interface UsableConnector extends WithCredential<ConnectorRow> {
  /** The colleague's own, if one shares it. */
  readonly sharedFrom?: WithCredential<ConnectorRow>;
}

/**
 * The same of a connector that a colleague may share. A failure then names neither the colleague's path nor the provider, and
 * nothing that only the colleague can do.
 */
export async function usableAccess(
  context: ServiceContext,
  { sharedFrom, ...own }: UsableConnector,
): Promise<Result<ConnectorAccess, ApiError>> {
  if (sharedFrom === undefined) return connectorAccess(context, own);
  const access = await connectorAccess(context, sharedFrom);
  return access.ok ? access : err(ofColleague(access.error));
}

/** What the receiver of something shared is told when its credential cannot be used. */
export const ASK_COLLEAGUE = 'the credential of what a colleague shares is not available: ask whoever shares it';

export function ofColleague({ code }: ApiError): ApiError {
  return apiError(code, ASK_COLLEAGUE);
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
