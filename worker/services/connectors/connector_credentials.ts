import { isRefreshPlaceholder } from '../../../shared/connect/token_request.ts';
import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference, parseVaultReference } from '../../../shared/model/vault_path.ts';
import { toConnectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import type {
  ValidConnectorCredential,
  ValidOAuth2Credential,
} from '../../../shared/wire/connectors/connector_credentials.ts';
import type { ConnectorCredentialRecord } from '../../../shared/wire/connectors/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import {
  type ConnectorCredentialRow,
  type ConnectorRow,
  deleteOwnValue,
  guardNoCredential,
  putConnectorCredential,
  type WithCredential,
} from '../../store/connectors.ts';
import { findSecret } from '../../store/secrets.ts';
import { type Caller, ownerName, requireScope } from '../../kernel/caller.ts';
import { listAllHostBindings } from '../bindings/host_bindings.ts';
import { parseStoredSpec, toCredentialRecord } from './connector_records.ts';
import { connectorEvent, credentialDeletion, writableConnector } from './connectors.ts';
import { writeBundle } from '../oauth/oauth_bundle.ts';
import { clientOf } from '../oauth/oauth_client.ts';
import type { Change } from '../../kernel/commit.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { timeOfChange, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { refuseTaken } from '../vault/secrets.ts';
import { planVaultWrite, type ReservedPlace } from '../vault/vault_write.ts';

/**
 * Stores the credential of a connector, or lets a stored secret of its owner serve it, and replaces an earlier one. From then on
 * the connector is active. With `onlyNew`, it replaces none. Refuses with `insufficient_scope`, `not_found`, `admin_required`, `invalid_input`, `conflict`.
 */
export async function storeConnectorCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: ValidConnectorCredential,
  { onlyNew = false }: { readonly onlyNew?: boolean } = {},
): Promise<Result<Changed<ConnectorCredentialRecord>, ApiError>> {
  if (input.kind === 'api_key' && input.credential_ref !== undefined) {
    // Before any lookup, so that the answer does not tell which secrets are stored.
    const allowed = requireScope(caller, 'host-bindings:write', 'it decides where a stored secret is sent');
    if (!allowed.ok) return allowed;
  }
  return commitPolicy(context, caller, async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    const same = input.kind === 'oauth2' ? checkSpec(row.value, input.content_hash) : ok(undefined);
    if (!same.ok || !onlyNew) return same.ok ? credentialStoring(context, caller, row.value, input) : same;
    if (row.value.credential !== null) return err(refuseTaken(connectorVaultPath(row.value.connector.fqn)));
    const storing = await credentialStoring(context, caller, row.value, input);
    if (!storing.ok) return storing;
    const first = guardNoCredential(id);
    return ok({ ...storing.value, statements: [...first, ...storing.value.statements] });
  });
}

/**
 * A person has decided to store a credential for the hosts of one spec: another one, which may send it elsewhere, does not get
 * it. To be called in the commit that stores it. Refuses with `conflict`.
 */
export function checkSpec(
  { connector }: WithCredential<ConnectorRow>,
  hash: string | undefined,
): Result<undefined, ApiError> {
  if (hash === undefined || hash === connector.contentHash) return ok(undefined);
  const message = `${connector.fqn} was replaced meanwhile by version ${connector.version}, with another content: nothing was stored`;
  return err(apiError('conflict', message));
}

/** What stores the credential of a connector, for a caller who may. */
export async function credentialStoring(
  context: ServiceContext,
  caller: Caller,
  row: WithCredential<ConnectorRow>,
  input: ValidConnectorCredential,
): Promise<Result<Change<ConnectorCredentialRecord>, ApiError>> {
  const { connector, credential: before } = row;
  const made = await credentialOf(context, row, input);
  if (!made.ok) return made;
  const { credential, value } = made.value;
  const replaced = before !== null && before.path !== credential.path ? before : null;
  const stored = value === null ? null : await planVaultWrite(context, vaultPlace(connector), value);
  const statements = [
    ...(stored?.statements ?? []),
    ...putConnectorCredential(context.database, credential),
    ...(replaced === null ? [] : deleteOwnValue(context.database, replaced)),
    bumpPolicy(context.database, connector),
  ];
  const note = (type: 'credential_deleted' | 'credential_stored', path: string) =>
    connectorEvent(`control.connector.${type}`, caller.userId, connector, path);
  const events = [
    ...(replaced === null ? [] : [note('credential_deleted', replaced.path)]),
    note('credential_stored', credential.path),
  ];
  return ok({ statements, events, adds: stored?.adds ?? [], value: toCredentialRecord({ connector, credential }) });
}

/** Deletes the credential of a connector, which stays active: its operations are refused. Refuses with `not_found`, `admin_required`. */
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

/** The metadata of a credential, and the part that is encrypted; null if a stored secret serves the connector. */
interface MadeCredential {
  readonly credential: ConnectorCredentialRow;
  readonly value: Secret | null;
}

async function credentialOf(
  context: ServiceContext,
  row: WithCredential<ConnectorRow>,
  input: ValidConnectorCredential,
): Promise<Result<MadeCredential, ApiError>> {
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
    updatedAt: row.credential === null ? now : timeOfChange(now, row.credential.updatedAt),
  };
  if (input.kind === 'oauth2') return oauthCredential(context, connector, input, common);
  const credential = { ...common, state: 'ready' as const, client: null, expiresAt: null, renewable: false };
  if (input.credential_ref === undefined) return ok({ credential, value: new Secret(input.value ?? '') });
  const path = await findStoredPath(context, connector, input.credential_ref);
  return path.ok ? ok({ credential: { ...credential, path: path.value }, value: null }) : path;
}

/** The path of a secret that a person stored for the connector's owner. Reserved paths belong to other connectors and servers. */
async function findStoredPath(
  context: ServiceContext,
  { ownerId }: ConnectorRow,
  reference: string,
): Promise<Result<string, ApiError>> {
  const path = parseVaultReference(reference);
  if (!path.ok) return err(invalidReference(path.error.message));
  const secret = await findSecret(context.database, { ownerId, path: path.value });
  if (secret !== null) return (await isSigningKey(context, ownerId, path.value)) ? err(invalidReference(SIGNS)) : path;
  return err(invalidReference(`names no stored ${ownerName(ownerId)} secret: store it, or choose another`));
}

const SIGNS = 'names a signing key of a sigv4-resign binding, which is never sent: choose another secret';

async function isSigningKey(context: ServiceContext, ownerId: string, path: string): Promise<boolean> {
  const bindings = await listAllHostBindings(context, [ownerId]);
  return bindings.some((binding) => {
    return binding.scheme === 'sigv4-resign' && binding.credential_ref === formatVaultReference(path);
  });
}

type Common = Omit<ConnectorCredentialRow, 'state' | 'client' | 'expiresAt' | 'renewable'>;

function oauthCredential(
  context: ServiceContext,
  connector: ConnectorRow,
  input: ValidOAuth2Credential,
  common: Common,
): Result<MadeCredential, ApiError> {
  if (isRefreshPlaceholder(input.refresh_token ?? '')) {
    const message = 'is a placeholder of svc, not a token';
    return err(
      apiError('invalid_input', `refresh_token ${message}`, { fields: [{ field: 'refresh_token', message }] }),
    );
  }
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

function invalidReference(message: string): ApiError {
  const fields = [{ field: 'credential_ref', message }];
  return apiError('invalid_input', `credential_ref ${message}`, { fields });
}

function nothingToDelete({ connector }: WithCredential<ConnectorRow>): ApiError {
  return apiError('not_found', `${connector.fqn} has no credential`);
}
