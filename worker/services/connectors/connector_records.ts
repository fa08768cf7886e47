import { connectorHosts, connectorVaultPath, type InstalledConnector } from '../../../shared/model/connector.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { canonicalJson } from '../../../shared/audit/canonical_json.ts';
import { type ConnectorSpecRecord, toConnectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import type {
  ConnectorCredentialRecord,
  ConnectorCredentialState,
  ConnectorRecord,
  ConnectorSummary,
  SnapshotConnectorRecord,
} from '../../../shared/wire/connectors/connectors.ts';
import type { ConnectorRow, ConnectorSummaryRow, WithCredential } from '../../store/connectors.ts';
import { ownerName } from '../../kernel/caller.ts';
import { findStoredClient } from '../oauth/oauth_client.ts';

/**
 * SHA-256 (hex) of a spec's canonical JSON with its defaults: different spellings of the same spec have the same hash.
 */
export async function contentHash(spec: ConnectorSpecRecord): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(spec));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A connector in a list. */
export function toSummary(row: WithCredential<ConnectorSummaryRow>): ConnectorSummary {
  const { connector } = row;
  return {
    id: connector.id,
    owner: ownerName(connector.ownerId),
    fqn: connector.fqn,
    version: connector.version,
    title: connector.title,
    content_hash: connector.contentHash,
    hosts: JSON.parse(connector.hosts),
    operation_count: connector.operationCount,
    active: connector.activatedAt !== null,
    credential: toCredentialRecord(row),
    installed_by: connector.installedBy,
    created_at: connector.createdAt,
    updated_at: connector.updatedAt,
  };
}

export function toRecord(row: WithCredential<ConnectorRow>): ConnectorRecord {
  const spec = parseStoredSpec(row.connector);
  return { ...toSummary(row), hosts: [...connectorHosts(toConnectorSpec(spec))], spec };
}

export function toCredentialRecord(row: WithCredential<ConnectorSummaryRow>): ConnectorCredentialRecord {
  const { connector, credential } = row;
  const client = credential === null ? null : findStoredClient(credential);
  return {
    kind: connector.credentialKind,
    ref: formatVaultReference(credentialPath(row)),
    state: stateOf(row),
    updated_at: credential?.updatedAt ?? null,
    expires_at: credential?.expiresAt ?? null,
    client_id: client?.client_id ?? null,
    token_url: client?.token_url ?? null,
    scopes: [...(client?.scopes ?? [])],
    renewable: credential?.renewable ?? false,
  };
}

/** A connector in a sidecar's snapshot. */
export function toSnapshotRecord(row: WithCredential<ConnectorRow>): SnapshotConnectorRecord {
  const owner = ownerName(row.connector.ownerId);
  return {
    id: row.connector.id,
    owner,
    content_hash: row.connector.contentHash,
    spec: withoutRevocation(parseStoredSpec(row.connector)),
    credential: { owner, path: credentialPath(row), state: stateOf(row) },
  };
}

/** No sidecar revokes tokens, and an earlier one would refuse all connectors because of a field that it does not know. */
function withoutRevocation({ credential, ...rest }: ConnectorSpecRecord): ConnectorSpecRecord {
  const { revocation_url: _, ...known } = credential;
  return { ...rest, credential: known };
}

/** A connector as the engine uses it. */
export function toInstalled(row: WithCredential<ConnectorRow>): InstalledConnector {
  const owner = ownerName(row.connector.ownerId);
  return {
    id: row.connector.id,
    owner,
    spec: toConnectorSpec(parseStoredSpec(row.connector)),
    contentHash: row.connector.contentHash,
    credential: { owner, path: credentialPath(row) },
    ...(row.connector.activatedAt === null && { inactive: true as const }),
  };
}

/** The vault path of a connector's credential: its own place, unless a secret of its owner serves it. */
function credentialPath({ connector, credential }: WithCredential<ConnectorSummaryRow>): string {
  return credential?.path ?? connectorVaultPath(connector.fqn);
}

/** The spec, validated when it was installed. */
export function parseStoredSpec(row: Pick<ConnectorRow, 'spec'>): ConnectorSpecRecord {
  const spec: ConnectorSpecRecord = JSON.parse(row.spec);
  return spec;
}

export function stateOf({ credential }: WithCredential<ConnectorSummaryRow>): ConnectorCredentialState {
  return credential?.state ?? 'missing';
}
