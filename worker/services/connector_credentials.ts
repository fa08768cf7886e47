import type { z } from 'zod';
import { connectorVaultPath } from '../../shared/model/connector.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { apiKeyInput } from '../../shared/wire/connector_credentials.ts';
import type { ConnectorCredentialRecord } from '../../shared/wire/connectors.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { bumpPolicy } from '../store/accounts.ts';
import {
  type ConnectorCredentialRow,
  type ConnectorRow,
  putConnectorCredential,
  type WithCredential,
} from '../store/connectors.ts';
import { findSecret, insertSecret, replaceSecret } from '../store/secrets.ts';
import type { Statement } from '../store/database.ts';
import { type Caller, ownerName } from './caller.ts';
import { commit } from './commit.ts';
import { connectorEvent, credentialDeletion, writableConnector } from './connectors.ts';
import { toCredentialRecord } from './connector_records.ts';
import { type Changed, controlChain, withPolicyVersion } from './policy_change.ts';
import { sealedRow } from './secrets.ts';
import { nowText, type ServiceContext } from './service_context.ts';

/** Stores the credential of a connector, in place of the one before. Refuses with `not_found`, `admin_required`, `invalid_input`. */
export async function storeConnectorCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: z.output<typeof apiKeyInput>,
): Promise<Result<Changed<ConnectorCredentialRecord>, ApiError>> {
  const stored = await commit(context, controlChain(caller), async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    const { connector } = row.value;
    if (connector.credentialKind !== input.kind) return err(otherKind(connector));
    const credential = credentialRow(context, connector);
    const statements = [
      ...(await vaultWrite(context, connector, new Secret(input.value))),
      ...putConnectorCredential(context.database, credential),
      bumpPolicy(context.database, connector),
    ];
    const events = [connectorEvent('control.connector.credential_stored', caller, connector)];
    return ok({ statements, events, value: toCredentialRecord({ connector, credential }) });
  });
  return withPolicyVersion(context, caller, stored);
}

/** What puts a value at a connector's place in the vault, which nothing else writes to. */
export async function vaultWrite(
  context: ServiceContext,
  connector: Pick<ConnectorRow, 'ownerId' | 'enterpriseId' | 'fqn'>,
  value: Secret,
): Promise<Statement[]> {
  const { ownerId, enterpriseId } = connector;
  const place = { ownerId, path: connectorVaultPath(connector.fqn) };
  const before = await findSecret(context.database, place);
  const description = `credential of the connector ${connector.fqn}`;
  const input = { ...place, value, description, owner: ownerName(ownerId) };
  const row = await sealedRow(context, { enterpriseId }, input, before);
  return before === null ? insertSecret(context.database, row) : replaceSecret(context.database, row);
}

/** Deletes the credential of a connector. Refuses with `not_found`, `admin_required`. */
export async function removeConnectorCredential(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  const removed = await commit(context, controlChain(caller), async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    if (row.value.credential === null) return err(nothingStored(row.value));
    const { statements, events } = credentialDeletion(context, caller, row.value);
    return ok({ statements: [...statements, bumpPolicy(context.database, row.value.connector)], events, value: null });
  });
  return withPolicyVersion(context, caller, removed);
}

function credentialRow(context: ServiceContext, connector: ConnectorRow): ConnectorCredentialRow {
  return {
    connectorId: connector.id,
    ownerId: connector.ownerId,
    path: connectorVaultPath(connector.fqn),
    kind: 'api_key',
    state: 'ready',
    client: null,
    expiresAt: null,
    renewable: false,
    lease: null,
    leaseUntil: null,
    updatedAt: nowText(context),
  };
}

function otherKind(connector: ConnectorRow): ApiError {
  const message = `must be "${connector.credentialKind}", which is what the spec of ${connector.fqn} says`;
  return apiError('invalid_input', `kind ${message}`, { fields: [{ field: 'kind', message }] });
}

function nothingStored({ connector }: WithCredential<ConnectorRow>): ApiError {
  return apiError('not_found', `${connector.fqn} has no credential`);
}
