import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { toConnectorSpec } from '../../../shared/wire/connector_spec.ts';
import type { ValidConnectorCredential, ValidOAuth2Credential } from '../../../shared/wire/connector_credentials.ts';
import type { ConnectorCredentialRecord } from '../../../shared/wire/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import {
  type ConnectorCredentialRow,
  type ConnectorRow,
  putConnectorCredential,
  type WithCredential,
} from '../../store/connectors.ts';
import type { Caller } from '../../kernel/caller.ts';
import { parseStoredSpec, toCredentialRecord } from './connector_records.ts';
import { connectorEvent, credentialDeletion, writableConnector } from './connectors.ts';
import { writeBundle } from '../oauth/oauth_bundle.ts';
import { clientOf } from '../oauth/oauth_client.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { timeAfter, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { type ReservedPlace, vaultWrite } from '../vault/vault_write.ts';

/**
 * Stores the credential of a connector and replaces an earlier one. Refuses with `not_found`, `admin_required`,
 * `invalid_input`.
 */
export async function storeConnectorCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: ValidConnectorCredential,
): Promise<Result<Changed<ConnectorCredentialRecord>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    const { connector } = row.value;
    const made = credentialOf(context, row.value, input);
    if (!made.ok) return made;
    const { credential, value } = made.value;
    const statements = [
      ...(await vaultWrite(context, vaultPlace(connector), value)),
      ...putConnectorCredential(context.database, credential),
      bumpPolicy(context.database, connector),
    ];
    const events = [connectorEvent('control.connector.credential_stored', caller.userId, connector)];
    return ok({ statements, events, value: toCredentialRecord({ connector, credential }) });
  });
}

/** Deletes the credential of a connector. Refuses with `not_found`, `admin_required`. */
export async function removeConnectorCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    if (row.value.credential === null) return err(nothingToDelete(row.value));
    const { statements, events } = credentialDeletion(context, caller, row.value);
    return ok({ statements: [...statements, bumpPolicy(context.database, row.value.connector)], events, value: null });
  });
}

/** The metadata of a credential, and the part that is encrypted. */
interface MadeCredential {
  readonly credential: ConnectorCredentialRow;
  readonly value: Secret;
}

function credentialOf(
  context: ServiceContext,
  row: WithCredential<ConnectorRow>,
  input: ValidConnectorCredential,
): Result<MadeCredential, ApiError> {
  const { connector } = row;
  if (connector.credentialKind !== input.kind) return err(otherKind(connector));
  const now = nowText(context);
  const common = {
    connectorId: connector.id,
    ownerId: connector.ownerId,
    path: connectorVaultPath(connector.fqn),
    kind: input.kind,
    lease: null,
    leaseUntil: null,
    updatedAt: row.credential === null ? now : timeAfter(now, row.credential.updatedAt),
  };
  if (input.kind === 'oauth2') return oauthCredential(context, connector, input, common);
  const credential = { ...common, state: 'ready' as const, client: null, expiresAt: null, renewable: false };
  return ok({ credential, value: new Secret(input.value) });
}

type Common = Omit<ConnectorCredentialRow, 'state' | 'client' | 'expiresAt' | 'renewable'>;

function oauthCredential(
  context: ServiceContext,
  connector: ConnectorRow,
  input: ValidOAuth2Credential,
  common: Common,
): Result<MadeCredential, ApiError> {
  const client = clientOf(input, toConnectorSpec(parseStoredSpec(connector)), context.local !== null);
  if (!client.ok) return client;
  const [accessToken, refreshToken] = [secretOf(input.access_token), secretOf(input.refresh_token)];
  const renewable = refreshToken !== null;
  const credential = {
    ...common,
    state: accessToken === null && !renewable ? ('authorisation_required' as const) : ('ready' as const),
    client: JSON.stringify(client.value),
    // Without an expiry, a token with a refresh token is refreshed first; one without is assumed not to expire.
    expiresAt: input.expires_at ?? (renewable ? common.updatedAt : null),
    renewable,
  };
  const value = writeBundle({ clientSecret: secretOf(input.client_secret), accessToken, refreshToken });
  return ok({ credential, value });
}

/** The vault place of a connector's credential. */
function vaultPlace({ enterpriseId, ownerId, fqn }: ConnectorRow): ReservedPlace {
  const description = `credential of the connector ${fqn}`;
  return { enterpriseId, ownerId, path: connectorVaultPath(fqn), description };
}

function secretOf(text: string | undefined): Secret | null {
  return text === undefined ? null : new Secret(text);
}

function otherKind(connector: ConnectorRow): ApiError {
  const message = `must be "${connector.credentialKind}", as in the spec of ${connector.fqn}`;
  return apiError('invalid_input', `kind ${message}`, { fields: [{ field: 'kind', message }] });
}

function nothingToDelete({ connector }: WithCredential<ConnectorRow>): ApiError {
  return apiError('not_found', `${connector.fqn} has no credential`);
}
