import { z } from 'zod';
import { connectorVaultPath, CREDENTIAL_KINDS, type InstalledConnector } from '../../model/connector.ts';
import type { CredentialRef } from '../../model/host_binding.ts';
import { err, ok, type Result } from '../../model/result.ts';
import { parseOwnVaultPath } from '../../model/vault_path.ts';
import { connectorSpec, toConnectorSpec } from './connector_spec.ts';
import { contentHash, id, owner, page, pageQuery, time } from '../primitives.ts';

/**
 * The status of a connector's credential. `missing`: nothing is stored. `authorisation_required`: an oauth2 client is stored
 * but not authorised yet. `reauthorisation_required`: the provider withdrew the authorisation.
 */
const CONNECTOR_CREDENTIAL_STATES = ['missing', 'authorisation_required', 'ready', 'reauthorisation_required'] as const;
export type ConnectorCredentialState = (typeof CONNECTOR_CREDENTIAL_STATES)[number];

const credentialState = z.enum(CONNECTOR_CREDENTIAL_STATES);

/** The credential of a connector as shown by the API: never a value. */
export const connectorCredentialRecord = z
  .object({
    kind: z.enum(CREDENTIAL_KINDS),
    /** `vault://connectors/<publisher>/<name>`, or the owner's secret that serves the connector. */
    ref: z.string(),
    state: credentialState,
    updated_at: time.nullable(),
    /** The following fields are only for oauth2. When the access token expires; it is refreshed before. */
    expires_at: time.nullable(),
    client_id: z.string().nullable(),
    token_url: z.string().nullable(),
    scopes: z.array(z.string()),
    /** Whether there is a refresh token; without one the authorisation ends with the access token. */
    renewable: z.boolean(),
  })
  .meta({ id: 'ConnectorCredential' });
export type ConnectorCredentialRecord = z.infer<typeof connectorCredentialRecord>;

const summary = {
  id: id('con'),
  owner,
  fqn: z.string(),
  version: z.string(),
  title: z.string(),
  content_hash: contentHash,
  /** Every host that gets its credential, also those that only single operations name. */
  hosts: z.array(z.string()),
  operation_count: z.number().int(),
  /**
   * False until it first has a credential. Until then it changes nothing for requests; later it stays active. A control plane of
   * an earlier version does not say it: there each is active.
   */
  active: z.boolean().default(true),
  credential: connectorCredentialRecord,
  /** The user who installed this version. */
  installed_by: z.string(),
  created_at: time,
  updated_at: time,
};

/** An installed connector in a list. */
const connectorSummary = z.object(summary).meta({ id: 'ConnectorSummary' });
export type ConnectorSummary = z.infer<typeof connectorSummary>;

/** An installed connector with its spec. */
export const connectorRecord = z.object({ ...summary, spec: connectorSpec }).meta({ id: 'Connector' });
export type ConnectorRecord = z.output<typeof connectorRecord>;

/** Warnings for a person: operations that can never match, hosts that a new version adds. */
const warnings = z.array(z.string());

/**
 * `POST /v1/connectors?owner=`: the body is the spec. 201 if it was not installed, 200 if it was: the same content changes
 * nothing; another version replaces it, and keeps the credential if its kind is the same.
 */
export const installReply = connectorRecord.extend({ warnings }).meta({ id: 'InstalledConnector' });
export type InstallReply = z.output<typeof installReply>;

/** `POST /v1/connectors/validate`: what an install would reply; changes nothing. */
export const validateReply = z
  .object({
    fqn: z.string(),
    version: z.string(),
    content_hash: contentHash,
    operation_count: z.number().int(),
    warnings,
  })
  .meta({ id: 'ValidConnector' });
export type ValidateReply = z.infer<typeof validateReply>;

/** `GET /v1/connectors`: in the order of owner and name. */
export const connectorsQuery = z.strictObject({
  ...pageQuery,
  owner: owner.optional(),
  fqn: z.string().max(128).optional(),
});
export const connectorsPage = page(connectorSummary).meta({ id: 'ConnectorsPage' });
export const connectorParams = z.strictObject({ id: id('con') });

const MAX_FQN = 128;

/**
 * `POST /v1/connectors/{id}/credential/revoke`: what became of the tokens at their provider. `not_named`: no revocation URL was
 * stored with them; `nothing`: there is no token.
 */
export const revocationReply = z
  .object({ outcome: z.enum(['revoked', 'failed', 'not_named', 'nothing']), message: z.string().nullable() })
  .meta({ id: 'Revocation' });
export type RevocationReply = z.infer<typeof revocationReply>;

/**
 * The caller's name for the tool that the run is made for, recorded as given and used for nothing else. Allows the names of
 * MCP tools (letters, digits, `_`, `-`, `.`, `/`), and nothing that could be mistaken for something else in a log.
 */
const callersTool = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_./-]*$/, 'is not a tool name: begin with a letter or digit, then also _ - . and /');

/** `POST /v1/connector-operations/run`, on the control plane and on the sidecar. */
export const runRequest = z
  .strictObject({
    connector_fqn: z.string().min(1).max(MAX_FQN),
    tool: callersTool.optional(),
    operation: z.string().min(1).max(128),
    /** By the names of the operation's inputs; checked, and refused with `invalid_args`. */
    args: z.record(z.string(), z.unknown()).default({}),
    /** One of the operation's hosts; by default the first. */
    host: z.string().min(1).max(255).optional(),
  })
  .meta({ id: 'ConnectorRun' });
export type RunRequest = z.output<typeof runRequest>;

/** The sanitised, scrubbed reply of the upstream, with any status. */
export const runReply = z
  .object({
    status: z.literal('proxied'),
    audit_id: id('evt'),
    connector_fqn: z.string(),
    operation: z.string(),
    upstream_status: z.number().int(),
    /** Empty if the upstream sent none. */
    content_type: z.string(),
    body_base64: z.string(),
  })
  .meta({ id: 'ConnectorRunReply' });
export type RunReply = z.infer<typeof runReply>;

/** A connector in a sidecar's snapshot. Strict: a spec that this version cannot read is never used in part. */
const snapshotConnector = z.strictObject({
  id: id('con'),
  owner,
  content_hash: contentHash,
  spec: connectorSpec,
  credential: z.strictObject({ owner, path: z.string(), state: credentialState }),
});
export type SnapshotConnectorRecord = z.input<typeof snapshotConnector>;

/** An installed connector as a sidecar knows it. */
interface SnapshotConnector {
  readonly connector: InstalledConnector;
  readonly credentialState: ConnectorCredentialState;
}

/**
 * The connectors of a snapshot: those that are active, and those that are not yet. An unreadable active one refuses all of them,
 * with a sentence; the sidecar then answers `connector_specs_invalid`, because a request to an omitted connector would take another
 * path (specification section 7).
 */
export function readSnapshotConnectors(
  active: readonly unknown[],
  inactive: readonly unknown[] = [],
): Result<readonly SnapshotConnector[], string> {
  const connectors: SnapshotConnector[] = [];
  for (const [index, record] of [...active, ...inactive].entries()) {
    const parsed = snapshotConnector.safeParse(record);
    // An inactive one changes nothing for requests, so nothing takes another path without it.
    if (!parsed.success && index >= active.length) continue;
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return err(`connector ${index} of the snapshot: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
    }
    const { spec, content_hash: hash, credential, ...rest } = parsed.data;
    const reference: CredentialRef = { owner: credential.owner, path: credential.path };
    if (credential.owner !== rest.owner || !mayServe(credential.path, spec.connector.fqn)) {
      return err(`connector ${index} of the snapshot names the credential of another connector`);
    }
    const installed = { ...rest, spec: toConnectorSpec(spec), contentHash: hash, credential: reference };
    const connector = index < active.length ? installed : { ...installed, inactive: true as const };
    connectors.push({ connector, credentialState: credential.state });
  }
  return ok(connectors);
}

/** A connector uses a secret of its owner, or its own place. The places of other connectors and of MCP servers are reserved. */
function mayServe(path: string, fqn: string): boolean {
  return path === connectorVaultPath(fqn) || parseOwnVaultPath(path).ok;
}
