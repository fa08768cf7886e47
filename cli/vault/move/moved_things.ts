import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import type { ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import {
  type ClientCertificateInput,
  clientCertificateInput,
  type ClientCertificateRecord,
} from '../../../shared/wire/hosts/client_certificates.ts';
import {
  MCP_SERVER_FIELDS,
  type McpServerInput,
  mcpServerInput,
  type McpServerRecord,
} from '../../../shared/wire/mcp/mcp_servers.ts';
import type { MoveTarget } from '../../../shared/wire/vault_moves.ts';
import { dropUndefined } from '../../command_options.ts';
import type { VaultContents } from './vault_contents.ts';

/** The names of values in a plan. */
export const secretKey = (path: string): string => `secret ${path}`;
export const connectorKey = (fqn: string): string => `connector ${fqn}`;
export const serverKey = (server: string, credential: string): string => `mcp_server ${server} ${credential}`;

/** Whether a connector has tokens or a client of its provider. */
export function isAuthorised({ credential }: Pick<ConnectorRecord, 'credential'>): boolean {
  return credential.kind === 'oauth2' && credential.state !== 'missing';
}

/** Whether a connector has a key of its own, and no stored secret that serves it. */
export function hasOwnKey({ fqn, credential }: Pick<ConnectorRecord, 'fqn' | 'credential'>): boolean {
  const isStored = credential.kind === 'api_key' && credential.state !== 'missing';
  return isStored && credential.ref === formatVaultReference(connectorVaultPath(fqn));
}

/** A client certificate as an input for another control plane. */
export function certificateInput(record: ClientCertificateRecord): ClientCertificateInput {
  const { host, credential_ref, effect, http2 } = record;
  return clientCertificateInput.parse(dropUndefined({ host, credential_ref, effect, http2 }));
}

/** A server as an input for another control plane: the references to its own credentials name no id. */
export function serverInput(record: McpServerRecord): McpServerInput {
  const fields = Object.fromEntries(Object.entries(record).filter(([name]) => MCP_SERVER_FIELDS.includes(name)));
  const text = JSON.stringify(fields).replaceAll(`vault://mcp-servers/${record.id}/`, 'vault://mcp-servers/{id}/');
  return mcpServerInput.parse(JSON.parse(text));
}

/** A value that moves: what it is called in a plan, where it is, and where it goes. */
export interface MovedValue {
  readonly key: string;
  readonly from: MoveTarget;
  readonly to: MoveTarget;
}

/**
 * The values of one vault, with their places in the other. A credential of a connector or server that is not there has no place
 * yet, and is left out.
 */
export function listValues(here: VaultContents, there: VaultContents): readonly MovedValue[] {
  return [
    ...here.secrets.flatMap((secret) => secretValue(secret, here)),
    ...here.connectors.filter(hasOwnKey).flatMap(({ id, fqn }) => {
      const other = there.connectors.find((each) => each.fqn === fqn);
      if (other === undefined) return [];
      const kind = 'connector' as const;
      return [{ key: connectorKey(fqn), from: { kind, connector_id: id }, to: { kind, connector_id: other.id } }];
    }),
    ...here.servers.flatMap((server) => {
      const other = there.servers.find(({ name }) => name === server.name);
      return other === undefined ? [] : serverValues(server, other.id, here);
    }),
  ];
}

function secretValue(
  { path, description }: VaultContents['secrets'][number],
  { sources }: VaultContents,
): readonly MovedValue[] {
  const source = sources.find((each) => each.path === path)?.source;
  if (source?.kind === BORROWED_KIND) return [];
  const place = { path, ...(description !== null && { description }) };
  const target: MoveTarget = source === undefined ? { kind: 'secret', ...place } : { kind: 'source', ...place, source };
  return [{ key: secretKey(path), from: target, to: target }];
}

function serverValues(
  { id, name: server, credentials }: McpServerRecord,
  otherId: string,
  { sources }: VaultContents,
): readonly MovedValue[] {
  return credentials
    .filter(({ set }) => set)
    .map(({ name }) => {
      const source = sources.find(({ path }) => path === mcpVaultPath(id, name))?.source;
      const at = (serverId: string): MoveTarget =>
        source === undefined
          ? { kind: 'mcp_server', server_id: serverId, name }
          : { kind: 'source', path: mcpVaultPath(serverId, name), source };
      return { key: serverKey(server, name), from: at(id), to: at(otherId) };
    });
}
