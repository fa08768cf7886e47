import { connectorVaultPath } from '../../shared/model/connector.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { ConnectorRow } from '../store/connectors.ts';
import type { Statement } from '../store/database.ts';
import { findSecret, insertSecret, replaceSecret } from '../store/secrets.ts';
import { ownerName } from './caller.ts';
import { sealedRow } from './secrets.ts';
import type { ServiceContext } from './service_context.ts';

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
