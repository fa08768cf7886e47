import { err, ok, type Result } from '../../../shared/model/result.ts';
import {
  SNAPSHOT_PROOF_TYP,
  SNAPSHOT_SECONDS,
  SNAPSHOT_TYP,
  type SnapshotPayload,
  type SnapshotProof,
} from '../../../shared/wire/channel.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import { SECRET_FOR_A_NEWER_SIDECAR } from '../../../shared/model/request_limits.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { isRegionSet, SET_FOR_A_NEWER_SIDECAR } from '../../../shared/model/region_set.ts';
import { HTTPS_PORT, portOfHost } from '../../../shared/net/host_port.ts';
import type { SnapshotConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { policyVersion } from '../../store/accounts.ts';
import type { ConnectorRow, WithCredential } from '../../store/connectors.ts';
import { listSourceKinds, type SourceRow } from '../../store/sources/secret_sources.ts';
import { listReferredSecrets, type SecretSummary, type VaultPlace } from '../../store/secrets.ts';
import { findSidecar, type SidecarStanding } from '../../store/sidecars.ts';
import { ownerName, visibleOwners } from '../../kernel/caller.ts';
import { toSnapshotRecord } from '../connectors/connector_records.ts';
import { listAllHostBindings } from '../bindings/host_bindings.ts';
import { listAllClientCertificates } from '../bindings/client_certificates.ts';
import { listAllTunnelHosts } from '../bindings/tunnel_hosts.ts';
import { findSharedSecrets, listSharedBindings } from '../sharing/shared_bindings.ts';
import { listUsableConnectors } from '../sharing/shared_connectors.ts';
import { listSharedServers } from '../sharing/shared_servers.ts';
import { findLentSecrets } from '../sharing/lent_secrets.ts';
import { toSnapshotServers } from '../mcp/mcp_server_records.ts';
import { listAllMcpServers } from '../mcp/mcp_servers.ts';
import { reviewedToolsOf } from '../mcp/mcp_tools.ts';
import { LOOK_MS, lookNow } from '../../kernel/policy_looks.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { hasEnded, refuseRevoked, type SidecarCaller } from './sidecar_calls.ts';

/** The newest snapshot, or a proof that the sidecar already has it; both are signed. */
export type SnapshotReply =
  | { readonly kind: 'snapshot'; readonly version: number; readonly jws: string }
  | { readonly kind: 'unchanged'; readonly version: number; readonly proof: string };

interface SnapshotPoll {
  readonly held: number | null;
  readonly waitSeconds: number;
  readonly signal: AbortSignal;
  /** Whether the sidecar understands inactive connectors; one of an earlier version refuses a snapshot that has the field. */
  readonly knowsInactive: boolean;
  /** The same for the hosts that are not intercepted; for an earlier version they are intercepted. */
  readonly knowsTunnels: boolean;
  /** Whether it understands hosts at other ports than 443; one of an earlier version refuses a snapshot that has such a binding. */
  readonly knowsOtherPorts: boolean;
  /** Whether it understands sets of regions; one of an earlier version refuses a snapshot that has one. */
  readonly knowsRegionSets: boolean;
  /** The same for limits of bytes. */
  readonly knowsByteLimits: boolean;
  /** The same for reviewed tools. */
  readonly knowsTools: boolean;
  /** The same for client certificates: to an earlier version, its hosts have none. */
  readonly knowsCertificates: boolean;
}

/**
 * Answers a poll as soon as the version differs from `held`, or after `waitSeconds`. Refuses with `sidecar_revoked`,
 * also if the sidecar is revoked while it waits.
 */
export async function pollSnapshot(
  context: ServiceContext,
  caller: SidecarCaller,
  poll: SnapshotPoll,
): Promise<Result<SnapshotReply, ApiError>> {
  const deadline = context.clock.now() + poll.waitSeconds * 1000;
  let version = await policyVersion(context.database, caller.userId);
  while (version === poll.held) {
    const left = deadline - context.clock.now();
    if (left <= 0 || poll.signal.aborted) return ok(await confirmUnchanged(context, caller, version));
    const standing = await lookAgain(context, caller, { left, signal: poll.signal });
    if (standing === null || hasEnded(context, standing)) return err(await refuseGone(context, caller));
    version = standing.policyVersion;
  }
  return ok(await signSnapshot(context, caller, poll));
}

/** What is true after a while: at the next look, or at the poll's end if that is sooner. */
async function lookAgain(
  { clock, database, policyLooks }: ServiceContext,
  { sidecarId }: SidecarCaller,
  { left, signal }: { readonly left: number; readonly signal: AbortSignal },
): Promise<SidecarStanding | null> {
  if (left >= LOOK_MS) return policyLooks.next({ sidecarId, database, signal });
  await clock.sleep(left, signal);
  return lookNow(database, sidecarId);
}

async function refuseGone(context: ServiceContext, caller: SidecarCaller): Promise<ApiError> {
  const row = await findSidecar(context.database, caller.sidecarId);
  if (row === null) throw new Error('a sidecar vanished from the database');
  return refuseRevoked(context, row, caller.nonce);
}

async function confirmUnchanged(
  context: ServiceContext,
  caller: SidecarCaller,
  version: number,
): Promise<SnapshotReply> {
  const payload: SnapshotProof = { ...addressOf(context, caller), version };
  return { kind: 'unchanged', version, proof: await context.controlPlane.sign(SNAPSHOT_PROOF_TYP, payload) };
}

async function signSnapshot(
  context: ServiceContext,
  caller: SidecarCaller,
  knows: SnapshotPoll,
): Promise<SnapshotReply> {
  const { knowsInactive, knowsTunnels, knowsOtherPorts, knowsRegionSets, knowsTools, knowsCertificates } = knows;
  const read = await consistentRead(context, caller);
  const { version, tunnelHosts, certificates, connectors, mcpServers, mcpTools, secrets, shared } = read;
  const bindings = [...read.bindings, ...shared.bindings.map(({ record }) => record)];
  const payload: SnapshotPayload = {
    ...addressOf(context, caller),
    version,
    host_bindings: bindings
      .filter(({ host }) => knowsOtherPorts || portOfHost(host) === HTTPS_PORT)
      .map((binding) => (knowsRegionSets ? binding : withOneRegion(binding)))
      .map((binding) => (knows.knowsByteLimits ? binding : withoutSecretIfLimited(binding))),
    connectors: recordsOf(connectors.filter(({ connector }) => connector.activatedAt !== null)),
    ...(knowsInactive && {
      inactive_connectors: recordsOf(connectors.filter(({ connector }) => connector.activatedAt === null)).filter(
        ({ spec }) => knowsOtherPorts || !namesOtherPort(spec),
      ),
    }),
    ...(knowsTunnels && { tunnel_hosts: tunnelHosts }),
    ...(knowsCertificates && { client_certificates: certificates }),
    mcp_servers: mcpServers,
    ...(knowsTools && { mcp_tools: mcpTools }),
    credentials: [...secrets.map((row) => toVersion(read, row, row)), ...sharedVersions(caller, read)],
  };
  return { kind: 'snapshot', version, jws: await context.controlPlane.sign(SNAPSHOT_TYP, payload) };
}

const NO_SECRET = formatVaultReference(SECRET_FOR_A_NEWER_SIDECAR);

type Read = Awaited<ReturnType<typeof consistentRead>>;

function withOneRegion<B extends { readonly region?: string | undefined }>(binding: B): B {
  const { region } = binding;
  return region !== undefined && isRegionSet(region) ? { ...binding, region: SET_FOR_A_NEWER_SIDECAR } : binding;
}

function withoutSecretIfLimited({ bytes_per_day: limit, ...binding }: HostBindingRecord): HostBindingRecord {
  return limit === undefined ? binding : { ...binding, credential_ref: NO_SECRET };
}

function toVersion(
  { sources }: Read,
  secret: SecretSummary,
  place: VaultPlace,
): SnapshotPayload['credentials'][number] {
  return {
    owner: ownerName(place.ownerId),
    path: place.path,
    version: credentialVersion(secret),
    ...sourceFacts(sources.get(secret.id)),
  };
}

/** Where the value comes from, if it is not stored. */
function sourceFacts(kind: SourceRow['kind'] | undefined) {
  if (kind === undefined) return {};
  return kind === BORROWED_KIND ? { borrowed: true } : { minted: true };
}

/** To a sidecar, what colleagues share is the enterprise's. */
function sharedVersions({ enterpriseId: ownerId }: SidecarCaller, read: Read): SnapshotPayload['credentials'] {
  return read.shared.secrets.map(({ row, path }) => toVersion(read, row, { ownerId, path }));
}

/** The sidecar, the call that this answers, and until when it may be used. */
function addressOf(context: ServiceContext, caller: SidecarCaller) {
  const now = context.clock.now();
  return {
    sidecar_id: caller.sidecarId,
    nonce: caller.nonce,
    issued_at: new Date(now).toISOString(),
    expires_at: new Date(now + SNAPSHOT_SECONDS * 1000).toISOString(),
  };
}

/** Lets the sidecar detect a changed value; also differs if a secret was deleted and created again. */
export function credentialVersion(secret: Pick<SecretSummary, 'id' | 'version'>): string {
  return `${secret.id}.${secret.version}`;
}

/** Reads everything of one policy version. Later changes belong to the next one. */
function consistentRead(context: ServiceContext, caller: SidecarCaller) {
  const owners = visibleOwners(caller);
  return context.database.readTogether(async (database) => {
    const together = { ...context, database };
    const lentServers = await listSharedServers(together, caller);
    const servers = [...(await listAllMcpServers(together, owners)), ...lentServers];
    const connectors = await listUsableConnectors(together, caller);
    const shared = await listSharedBindings(together, caller);
    const lent = [
      ...(await findSharedSecrets(together, shared)),
      ...(await findLentSecrets(together, { connectors, servers: lentServers })),
    ];
    const sharers = [...new Set(lent.map(({ row }) => row.ownerId))];
    return {
      version: await policyVersion(database, caller.userId),
      bindings: await listAllHostBindings(together, owners),
      tunnelHosts: await listAllTunnelHosts(together, owners),
      certificates: await listAllClientCertificates(together, caller.userId),
      connectors,
      mcpServers: await toSnapshotServers(together, servers, caller.userId),
      mcpTools: await reviewedToolsOf(database, servers),
      secrets: await listReferredSecrets(database, owners),
      shared: { bindings: shared, secrets: lent },
      sources: await listSourceKinds(database, [...owners, ...sharers]),
    };
  });
}

/** While an active one does, an earlier sidecar refuses the requests of all connectors: its operations may need approvals. */
function namesOtherPort({ hosts, operations }: SnapshotConnectorRecord['spec']): boolean {
  const all = [...hosts, ...operations.flatMap((operation) => operation.hosts ?? [])];
  return all.some((host) => portOfHost(host) !== HTTPS_PORT);
}

function recordsOf(rows: readonly WithCredential<ConnectorRow>[]) {
  return rows.map((row) => toSnapshotRecord(row));
}
